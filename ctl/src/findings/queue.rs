//! A queue as the checks look at it.

use super::finding::{Found, Severity};
use crate::board::{groups, Condition, Held, Row};
use crate::cli::doctor::DoctorArgs;
use crate::server::Failure;
use crate::text::{exact, millis};
use dq_client::blocking::Client;
use std::cell::OnceCell;
use std::time::Duration;

pub type Looked = Result<Option<Found>, Failure>;

/// A queue at one time.
pub struct Queue<'a> {
    pub client: &'a Client,
    pub name: &'a [u8],
    pub row: &'a Row,
    pub limits: &'a DoctorArgs,
    groups: OnceCell<Vec<Held>>,
}

impl<'a> Queue<'a> {
    pub fn new(client: &'a Client, name: &'a [u8], row: &'a Row, limits: &'a DoctorArgs) -> Queue<'a> {
        Queue { client, name, row, limits, groups: OnceCell::new() }
    }

    pub fn number(&self, name: &str) -> i64 {
        self.row.number(name)
    }

    /// A length of time that is at least `least`.
    pub fn since(&self, name: &str, least: Duration) -> Option<u64> {
        let age = self.row.info.int(name).and_then(|age| u64::try_from(age).ok());
        age.filter(|age| *age >= millis(least))
    }

    pub fn has(&self, wanted: Condition) -> bool {
        self.row.has(wanted)
    }

    /// A limit that is worth trying if this one is too low.
    pub fn doubled(&self, name: &str) -> i64 {
        self.number(name).saturating_mul(2)
    }

    /// The same of a rate: `200/1m`.
    pub fn doubled_rate(&self, name: &str) -> String {
        let period = u64::try_from(self.number(&format!("{name}-period"))).unwrap_or(0);
        format!("{}/{}", self.doubled(name), exact(period))
    }

    /// The groups that hold messages back.
    pub fn groups(&self) -> Result<&[Held], Failure> {
        if self.groups.get().is_none() {
            let _ = self.groups.set(groups::held(self.client, self.name, &self.row.info)?);
        }
        Ok(self.groups.get().map_or(&[], Vec::as_slice))
    }

    pub fn live(&self) -> i64 {
        self.number("delayed") + self.number("ready") + self.number("inflight")
    }
}

pub fn one(severity: Severity, what: impl Into<String>, why: &str, advice: impl Into<String>) -> Looked {
    Ok(Some(Found::new(severity, what, why, advice)))
}
