//! `dqctl groups`.

use super::exists;
use crate::cli::GroupsArgs;
use crate::failure::{Failure, Outcome};
use crate::groups::{each, Group};
use crate::message::distance;
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output, Table};
use crate::time::instant;
use dq_client::Client;
use serde_json::{json, Value as Json};
use std::ops::ControlFlow;

const COLUMNS: &[Column] =
    &[Name("group"), Number("waiting"), Number("occupied"), Word("oldest-due"), Word("paused"), Word("next-delivery")];

pub fn groups(client: &Client, args: &GroupsArgs, output: &Output) -> Result<Outcome, Failure> {
    let (mut table, mut found) = (Table::new(COLUMNS), 0);
    each(client, args.queue.as_bytes(), |group| {
        found += 1;
        if output.json {
            output.result("", json(group))?;
        } else {
            table.row(cells(group, output));
        }
        Ok(if args.count == Some(found) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if found == 0 && !exists(client, &args.queue)? {
        return Ok(Outcome::Nothing);
    }
    if !output.json {
        output.table(&table)?;
    }
    Ok(Outcome::Done)
}

fn cells(group: Group, output: &Output) -> Vec<String> {
    let paused = match group.paused_until {
        Some(0) => String::new(),
        Some(until) if output.is_for_people() => format!("ends {}", distance(until)),
        Some(until) => format!("until {}", instant(until)),
        None => "until resumed".to_owned(),
    };
    vec![
        group.name,
        group.waiting.to_string(),
        group.occupied.to_string(),
        group.oldest_due.map_or_else(|| "-".to_owned(), |at| output.instant(at)),
        paused,
        group.next_delivery.map_or_else(String::new, |at| output.instant(at)),
    ]
}

fn json(group: Group) -> Json {
    json!({
        "group": group.name,
        "waiting": group.waiting,
        "occupied": group.occupied,
        "oldest-due": group.oldest_due,
        "paused": i32::from(group.is_paused()),
        "paused-until": group.paused_until.filter(|until| *until > 0),
        "next-delivery": group.next_delivery,
    })
}
