//! `dqctl await`.

use crate::acts::{no_such_id, no_such_queue, where_the_dead_are};
use crate::board::dead::target_in_words;
use crate::board::message;
use crate::cli::AwaitArgs;
use crate::output::Output;
use crate::server::advice::{for_queue, tell};
use crate::server::failure::{Failure, Outcome};
use crate::server::reply;
use dq_client::{Client, Error, Raw, State};

pub fn await_done(client: &Client, args: &AwaitArgs, output: &Output) -> Result<Outcome, Failure> {
    let get = || reply::message(client, args.queue.as_bytes(), args.id.as_bytes());
    // A user who may not look is told less.
    let was_there = get().is_ok_and(|message| message.is_some());
    let waited = match client.queue::<Raw>(&args.queue).wait(&args.id, args.time) {
        Ok(waited) => waited,
        Err(Error::Gone(_)) => {
            gone(client, args, was_there)?;
            return Ok(Outcome::Nothing);
        }
        Err(error @ Error::TimedOut(_)) => {
            say!("dqctl: {error}");
            return Ok(Outcome::Nothing);
        }
        Err(error) => return Err(error.into()),
    };
    if args.result && waited.state == State::Done {
        output.raw(waited.result_bytes().unwrap_or_default())?;
        return Ok(Outcome::Done);
    }
    // With the names and the order of the server.
    let Some(fields) = get()? else {
        no_such_id(client, &args.queue, &args.id).iter().for_each(tell);
        return Ok(Outcome::Nothing);
    };
    if args.result {
        say!("dqctl: the message {} is dead: {} {}", args.id, fields.text("reason"), fields.text("error"));
    } else {
        message::details(&fields, output)?;
    }
    Ok(Outcome::found(waited.state == State::Done))
}

/// Reports that a message that was awaited is not there. The server does not know why.
fn gone(client: &Client, args: &AwaitArgs, was_there: bool) -> Result<(), Failure> {
    let (id, queue) = (&args.id, &args.queue);
    let Some(info) = reply::info(client, queue.as_bytes())? else {
        tell(no_such_queue(queue));
        return Ok(());
    };
    let hint = match info.int("retain") {
        Some(0) => for_queue("; dqctl alter QUEUE --retain TIME keeps what is completed", &queue.to_string()),
        _ => String::new(),
    };
    let moved = if target_in_words(&info).is_some() { ", or it died and was moved" } else { "" };
    if was_there {
        say!(
            "dqctl: the message {id} has left the queue {queue}: it was cancelled, or completed and not kept{moved}{hint}"
        );
    } else {
        tell(format!(
            "the queue {queue} has no message {id}: it was never pushed, cancelled, or completed and not kept{moved}{hint}"
        ));
    }
    where_the_dead_are(queue, &info).iter().for_each(tell);
    Ok(())
}
