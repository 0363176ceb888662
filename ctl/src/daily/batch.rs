//! `dqctl batch`.

use crate::board::{batches::find, batches::info, message::field};
use crate::cli::BatchArgs;
use crate::output::Column::{Name, Number, Text, Word};
use crate::output::{Column, Output};
use crate::server::{info, Failure, Fields, Outcome};
use crate::text::separated;
use dq_client::blocking::Client;

const COLUMNS: &[Column] = &[
    Name("batch"),
    Number("left"),
    Number("total"),
    Number("acked"),
    Number("dead"),
    Number("cancelled"),
    Word("state"),
    Word("created"),
    Name("then-id"),
    Text("then"),
];

/// Lists the batches of a queue, or shows one.
pub fn batch(client: &Client, args: &BatchArgs, output: &Output) -> Result<Outcome, Failure> {
    match &args.name {
        None => list(client, args, output),
        Some(name) => show(client, args, name, output),
    }
}

fn list(client: &Client, args: &BatchArgs, output: &Output) -> Result<Outcome, Failure> {
    let found = find(client, &args.queue)?;
    let object = |(name, fields): &(Vec<u8>, Fields)| {
        let mut object = fields.json();
        object.insert("batch".to_owned(), String::from_utf8_lossy(name).into());
        object
    };
    let row = |(name, fields): &(Vec<u8>, Fields)| {
        let mut row = vec![String::from_utf8_lossy(name).into_owned()];
        row.extend(["left", "total", "acked", "dead", "cancelled"].map(|name| fields.text(name)));
        row.push(if fields.int("closed") == Some(1) { "closed" } else { "open" }.to_owned());
        row.push(output.instant(fields.int("created")));
        row.extend(["then-id", "then"].map(|name| field(fields, name, output)));
        row
    };
    output.list(COLUMNS, &found, object, row)?;
    Ok(Outcome::Done)
}

fn show(client: &Client, args: &BatchArgs, name: &str, output: &Output) -> Result<Outcome, Failure> {
    let Some(fields) = info(client, args.queue.as_bytes(), name.as_bytes())? else {
        info::existing(client, &args.queue)?;
        let queue = &args.queue;
        return Err(Failure::nothing(format!(
            "the queue {queue} has no batch {name}: it has ended, or was never begun"
        )));
    };
    if output.json {
        output.object(&fields.json())?;
        return Ok(Outcome::Done);
    }
    let shown = |name: &str| match fields.int(name) {
        Some(number) if name != "created" && output.is_for_people => separated(number),
        _ => field(&fields, name, output),
    };
    output.pairs(&fields.0.iter().map(|(name, _)| (name.clone(), shown(name))).collect::<Vec<_>>())?;
    Ok(Outcome::Done)
}
