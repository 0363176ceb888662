//! `dqctl complete` and `dqctl await`.

use super::why::{no_such_id, not_in};
use super::{no_such_queue, payload, queue, queues, where_the_dead_are};
use crate::advice::{for_queue, tell};
use crate::cli::{AwaitArgs, CompleteArgs};
use crate::dead::target_in_words;
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::output::Output;
use crate::reply::Fields;
use dq_client::{cmd, Client, Error, Resend, State, Value};
use serde_json::json;

pub fn complete(client: &Client, args: &CompleteArgs, output: &Output) -> Result<Outcome, Failure> {
    let queue = queue(client, &args.queue);
    let mut complete = queue.complete(&args.id);
    if let Some(result) = &args.result {
        complete = complete.result(&payload(Some(result))?);
    }
    if let Some(time) = args.retain {
        complete = complete.retain(time);
    }
    if complete.send()? {
        output.result(&args.id.to_string(), json!({ "id": args.id, "completed": true }))?;
        return Ok(Outcome::Done);
    }
    not_in(client, &args.queue, &args.id, "in flight");
    Ok(Outcome::Nothing)
}

pub fn await_done(client: &Client, args: &AwaitArgs, output: &Output) -> Result<Outcome, Failure> {
    let get = cmd("DQ.GET").arg(args.queue.as_bytes()).arg(args.id.as_bytes()).clone();
    // A user who may not look is told less.
    let was_there = client.call(&get, Resend::Harmless).is_ok_and(|reply| reply != Value::Nil);
    let waited = match queue(client, &args.queue).wait(&args.id, args.time) {
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
    let Some(fields) = Fields::read(client.call(&get, Resend::Harmless)?)? else {
        no_such_id(client, &args.queue, &args.id);
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
    let Some(info) = queues::read(client, queue.as_bytes())? else {
        no_such_queue(queue);
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
    where_the_dead_are(queue, &info);
    Ok(())
}
