//! `dqctl groups`.

use super::exists;
use crate::cli::QueueArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output, Table};
use crate::reply::{int, list, text};
use crate::time::instant;
use dq_client::{cmd, Client, Resend, Value};
use serde_json::{json, Value as Json};

const COLUMNS: &[Column] =
    &[Name("group"), Number("waiting"), Number("occupied"), Word("oldest-due"), Word("paused"), Word("next-delivery")];
/// How many groups are read at a time.
const PAGE: u32 = 100;

pub fn groups(client: &Client, args: &QueueArgs, output: &Output) -> Result<Outcome, Failure> {
    let (mut table, mut found) = (Table::new(COLUMNS), false);
    let mut cursor = b"0".to_vec();
    loop {
        let command = cmd("DQ.GROUPS").arg(&args.queue).arg(&cursor).arg("COUNT").arg(PAGE).clone();
        let mut page = list(client.call(&command, Resend::Harmless)?)?.into_iter();
        let Some(Value::BulkString(next)) = page.next() else { break };
        for group in list(page.next().unwrap_or(Value::Nil))? {
            found = true;
            let group = Group::read(&list(group)?);
            if output.json {
                output.result("", group.json())?;
            } else {
                table.row(group.cells());
            }
        }
        cursor = next;
        if cursor == b"0" {
            break;
        }
    }
    if !found && !exists(client, &args.queue)? {
        return Ok(Outcome::Nothing);
    }
    if !output.json {
        output.table(&table)?;
    }
    Ok(Outcome::Done)
}

/// A row of `DQ.GROUPS`.
struct Group {
    name: String,
    waiting: i64,
    occupied: i64,
    oldest_due: Option<i64>,
    /// Zero if it is not paused, and `None` if it is paused until it is resumed.
    paused_until: Option<i64>,
    next_delivery: Option<i64>,
}

impl Group {
    fn read(row: &[Value]) -> Group {
        let number = |place: usize| row.get(place).and_then(int);
        Group {
            name: row.first().and_then(text).unwrap_or_default(),
            waiting: number(1).unwrap_or(0),
            occupied: number(2).unwrap_or(0),
            oldest_due: number(3),
            paused_until: row.get(4).map_or(Some(0), int),
            next_delivery: number(5),
        }
    }

    fn cells(self) -> Vec<String> {
        let paused = match self.paused_until {
            Some(0) => String::new(),
            Some(until) => format!("until {}", instant(until)),
            None => "until resumed".to_owned(),
        };
        vec![
            self.name,
            self.waiting.to_string(),
            self.occupied.to_string(),
            self.oldest_due.map_or_else(|| "-".to_owned(), instant),
            paused,
            self.next_delivery.map_or_else(String::new, instant),
        ]
    }

    fn json(self) -> Json {
        json!({
            "group": self.name,
            "waiting": self.waiting,
            "occupied": self.occupied,
            "oldest-due": self.oldest_due,
            "paused": i32::from(self.paused_until != Some(0)),
            "paused-until": self.paused_until.filter(|until| *until > 0),
            "next-delivery": self.next_delivery,
        })
    }
}
