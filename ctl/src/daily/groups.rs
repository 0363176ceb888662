//! `dqctl groups`.

use super::{exists, queue};
use crate::cli::QueueArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output, Table};
use crate::time::instant;
use dq_client::Client;
use serde_json::json;
use std::time::UNIX_EPOCH;

const COLUMNS: &[Column] = &[Name("group"), Number("waiting"), Number("occupied"), Word("oldest-due")];

pub fn groups(client: &Client, args: &QueueArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut table = Table::new(COLUMNS);
    let mut found = false;
    for group in queue(client, &args.queue).groups() {
        let group = group?;
        found = true;
        let name = String::from_utf8_lossy(&group.name).into_owned();
        let since = group.oldest_due.and_then(|due| due.duration_since(UNIX_EPOCH).ok());
        let due = since.and_then(|since| i64::try_from(since.as_millis()).ok());
        if output.json {
            output.result(
                "",
                json!({
                    "group": name,
                    "waiting": group.waiting,
                    "occupied": group.occupied,
                    "oldest-due": due,
                }),
            )?;
        } else {
            let due = due.map_or_else(|| "-".to_owned(), instant);
            table.row(vec![name, group.waiting.to_string(), group.occupied.to_string(), due]);
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
