//! `dqctl complete` and `dqctl await`.

use super::why::{no_such_id, not_in};
use super::{exists, payload, queue};
use crate::cli::{AwaitArgs, CompleteArgs};
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::output::Output;
use crate::reply::Fields;
use dq_client::{cmd, Client, Error, Resend, State};
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
    let waited = match queue(client, &args.queue).wait(&args.id, args.time) {
        Ok(waited) => waited,
        Err(Error::Gone(_)) => {
            // The server does not know which.
            if exists(client, &args.queue)? {
                let (id, queue) = (&args.id, &args.queue);
                eprintln!("dqctl: the queue {queue} has no message {id}: it was never pushed, cancelled, or completed and not kept");
            }
            return Ok(Outcome::Nothing);
        }
        Err(error @ Error::TimedOut(_)) => {
            eprintln!("dqctl: {error}");
            return Ok(Outcome::Nothing);
        }
        Err(error) => return Err(error.into()),
    };
    if args.result && waited.state == State::Done {
        output.raw(waited.result_bytes().unwrap_or_default())?;
        return Ok(Outcome::Done);
    }
    // With the names and the order of the server.
    let command = cmd("DQ.GET").arg(args.queue.as_bytes()).arg(args.id.as_bytes()).clone();
    let Some(fields) = Fields::read(client.call(&command, Resend::Harmless)?)? else {
        no_such_id(client, &args.queue, &args.id);
        return Ok(Outcome::Nothing);
    };
    if args.result {
        eprintln!("dqctl: the message {} is dead: {} {}", args.id, fields.text("reason"), fields.text("error"));
    } else {
        message::details(&fields, output)?;
    }
    Ok(Outcome::found(waited.state == State::Done))
}
