//! `dqctl await`.

use crate::acts::no_such_id;
use crate::board::message;
use crate::cli::AwaitArgs;
use crate::output::Output;
use crate::server::{Failure, Message, Outcome};
use dq_client::{blocking::Client, Error, Raw, State};

pub fn await_done(client: &Client, args: &AwaitArgs, output: &Output) -> Result<Outcome, Failure> {
    let gone = || Failure::nothing(no_such_id(client, &args.queue, &args.id));
    let waited = match client.queue::<Raw>(&args.queue).wait(&args.id, args.time) {
        Ok(waited) => waited,
        // It was never pushed, or it has left the queue: the server does not know why.
        Err(Error::Gone(_)) => return Err(gone()),
        Err(error @ Error::TimedOut(_)) => return Err(Failure::nothing(error)),
        Err(error) => return Err(error.into()),
    };
    if args.result && waited.state == State::Done {
        output.raw(waited.result_bytes().unwrap_or_default())?;
        return Ok(Outcome::Done);
    }
    // With the names and the order of the server.
    let message = Message::get(client, args.queue.as_bytes(), args.id.as_bytes())?.ok_or_else(gone)?;
    if args.result {
        print_error!("dqctl: the message {} is dead: {} {}", args.id, message.text("reason"), message.text("error"));
    } else {
        message::details(&message, output)?;
    }
    Ok(Outcome::done_if(waited.state == State::Done))
}
