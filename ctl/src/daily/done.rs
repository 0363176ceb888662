//! `dqctl await`.

use crate::acts::no_such_id;
use crate::board::message;
use crate::cli::AwaitArgs;
use crate::output::Output;
use crate::server::advice::tell;
use crate::server::failure::{Failure, Outcome};
use crate::server::reply;
use dq_client::blocking::Client;
use dq_client::{Error, Raw, State};

pub fn await_done(client: &Client, args: &AwaitArgs, output: &Output) -> Result<Outcome, Failure> {
    let get = || reply::message(client, args.queue.as_bytes(), args.id.as_bytes());
    let waited = match client.queue::<Raw>(&args.queue).wait(&args.id, args.time) {
        Ok(waited) => waited,
        Err(Error::Gone(_)) => {
            // It was never pushed, or it has left the queue: the server does not know why.
            no_such_id(client, &args.queue, &args.id).iter().for_each(tell);
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
