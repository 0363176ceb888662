//! `dqctl groups`.

use crate::board::{groups::each, Group};
use crate::cli::GroupsArgs;
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output};
use crate::server::{info, Failure, Outcome};
use crate::text::{distance, instant, separated};
use dq_client::blocking::Client;
use serde_json::json;

const COLUMNS: &[Column] =
    &[Name("group"), Number("waiting"), Number("occupied"), Word("oldest-due"), Word("paused"), Word("next-delivery")];

pub fn groups(client: &Client, args: &GroupsArgs, output: &Output) -> Result<Outcome, Failure> {
    let (mut found, mut exist) = (Vec::new(), false);
    for group in each(client, args.queue.as_bytes()) {
        let group = group?;
        let is_named = args.contains.as_ref().is_none_or(|part| group.name.contains(part));
        exist = true;
        found.extend(Some(group).filter(|group| is_named && (group.is_paused() || !args.paused)));
    }
    if !exist {
        info::existing(client, &args.queue)?;
    }
    // What somebody has to resume comes first, then what waits most.
    found.sort_by(|a, b| (!a.is_paused(), b.waiting, &a.name).cmp(&(!b.is_paused(), a.waiting, &b.name)));
    let left =
        found.len().saturating_sub(args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)));
    found.truncate(found.len() - left);
    let object = |group: &Group| {
        json!({
            "group": group.name, "waiting": group.waiting, "occupied": group.occupied, "oldest-due": group.oldest_due,
            "paused": i32::from(group.is_paused()), "paused-until": group.paused_until.filter(|until| *until > 0),
            "next-delivery": group.next_delivery,
        })
    };
    output.list(COLUMNS, &found, object, |group| cells(group, output))?;
    if left > 0 && !output.json {
        output.remark(&format!("{} more", separated(left)))?;
    }
    Ok(Outcome::Done)
}

fn cells(group: &Group, output: &Output) -> Vec<String> {
    let paused = match group.paused_until {
        Some(0) => String::new(),
        Some(until) if output.is_for_people => format!("ends {}", distance(until)),
        Some(until) => format!("until {}", instant(until)),
        None => "until resumed".to_owned(),
    };
    vec![
        group.name.clone(),
        group.waiting.to_string(),
        group.occupied.to_string(),
        group.oldest_due.map_or_else(|| "-".to_owned(), |at| output.instant(at)),
        paused,
        output.instant(group.next_delivery),
    ]
}
