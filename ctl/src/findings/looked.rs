//! A queue as the checks look at it.

use super::finding::{Diagnosis, Severity};
use super::writes::Writes;
use crate::board::{groups, Condition, HeldGroup, Holding, Row};
use crate::cli::doctor::DoctorArgs;
use crate::server::{quoted, Failure, QueueInfo};
use crate::text::{millis, shown};
use dq_client::blocking::Client;
use std::cell::OnceCell;
use std::time::Duration;

pub type Looked = Result<Option<Diagnosis>, Failure>;

/// A queue at one time.
pub struct Queue<'a> {
    pub client: &'a Client,
    pub name: &'a [u8],
    pub row: &'a Row,
    pub limits: &'a DoctorArgs,
    pub writes: &'a Writes,
    /// Those that hold messages back, once they have been read.
    pub holding: OnceCell<Holding>,
}

impl Queue<'_> {
    /// Its name as a word of a shell.
    pub fn quoted(&self) -> String {
        quoted(&shown(self.name))
    }

    pub fn info(&self) -> &QueueInfo {
        &self.row.info
    }

    pub fn has(&self, wanted: Condition) -> bool {
        self.row.has(wanted)
    }

    /// The groups that hold messages back.
    pub fn groups(&self) -> Result<&[HeldGroup], Failure> {
        if self.holding.get().is_none() {
            let holding = groups::held_back(self.client, self.name, &self.row.info, groups::MOST_EXAMINED)?;
            let _ = self.holding.set(holding);
        }
        Ok(self.holding.get().map_or(&[], |holding| holding.groups.as_slice()))
    }
}

/// An age of at least `least`, in ms.
pub fn at_least(age: Option<Duration>, least: Duration) -> Option<u64> {
    age.filter(|age| *age >= least).map(millis)
}

pub fn one(severity: Severity, what: impl Into<String>, why: &str, advice: impl Into<String>) -> Looked {
    Ok(Some(Diagnosis::new(severity, what, why, advice)))
}
