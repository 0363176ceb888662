//! The daily commands, which a person types.

pub mod batch;
mod bulk;
pub mod change;
mod confirm;
pub mod consumers;
pub mod delete;
pub mod done;
pub mod flow;
pub mod give_back;
pub mod groups;
pub mod look;
pub mod ls;
pub mod many;
pub mod push;
pub mod queues;
pub mod schedule;
pub mod settings;
pub mod several;
mod why;

use crate::advice::{quoted, tell};
use crate::dead::{target_in_words, target_queue, where_letters_are};
use crate::failure::Failure;
use crate::name::{shown, QueueName};
use crate::reply::Fields;
use dq_client::{Client, Queue, Raw};
use std::io::{self, IsTerminal, Read};

/// What failed if the user may not read each of many queues.
pub const NOT_ALL: &str = "not all queues could be read";

/// A queue of any payloads.
fn queue(client: &Client, name: &QueueName) -> Queue<Raw> {
    client.queue(name)
}

/// The payload: the argument, or standard input.
fn payload(argument: Option<&str>) -> Result<Raw, Failure> {
    let mut input = io::stdin();
    match argument {
        Some(text) if text != "-" => return Ok(Raw(text.as_bytes().to_vec())),
        None if input.is_terminal() => return Err(Failure::usage("no payload: name it, or pipe it into dqctl")),
        Some(_) | None => {}
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    Ok(Raw(bytes))
}

/// Reports on standard error that a queue does not exist.
pub fn no_such_queue(queue: &QueueName) {
    let patterns = match queue.as_bytes().contains(&b'*') {
        true => "; a pattern is taken by what changes queues, or many of their messages, and by dead --by-error",
        false => "",
    };
    tell(format!("there is no queue {queue}; dqctl ls lists the queues{patterns}"));
}

/// Says on standard error where the dead messages of a queue are that moves them away.
pub fn where_the_dead_are(queue: &QueueName, info: &Fields) {
    let Some(target) = target_in_words(info) else { return };
    let back = target_queue(info).map_or_else(String::new, |name| {
        let letters = format!("{} --letters --where {}", quoted(&shown(name)), quoted(&format!("from={queue}")));
        format!(": dqctl dead {letters} lists them, and dqctl redrive {letters} sends them back")
    });
    tell(format!("the dead messages of {queue} go to {target}{back}"));
}

/// Says on standard error where those of a queue are that has no dead messages.
fn where_no_dead_are(client: &Client, queue: &QueueName) -> Result<(), Failure> {
    if let Some(info) = queues::read(client, queue.as_bytes())? {
        where_the_dead_are(queue, &info);
        where_letters_are(client, queue);
    }
    Ok(())
}

/// Whether the queue in which a command found nothing exists. Reports on standard error if it does not.
fn exists(client: &Client, name: &QueueName) -> Result<bool, Failure> {
    let exists = queue(client, name).info()?.is_some();
    if !exists {
        no_such_queue(name);
    }
    Ok(exists)
}
