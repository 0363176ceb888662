//! `dqctl get` and `dqctl peek`.

use super::exists;
use super::why::no_such_id;
use crate::cli::{GetArgs, PeekArgs};
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::output::Output;
use crate::reply::{self, Fields};
use dq_client::{cmd, Client, Resend, State};

pub fn get(client: &Client, args: &GetArgs, output: &Output) -> Result<Outcome, Failure> {
    let command = cmd("DQ.GET").arg(args.queue.as_bytes()).arg(&args.id).clone();
    let Some(message) = Fields::read(client.call(&command, Resend::Harmless)?)? else {
        no_such_id(client, &args.queue, &args.id);
        return Ok(Outcome::Nothing);
    };
    if args.payload {
        output.raw(message.bytes("payload"))?;
    } else {
        message::details(&message, output)?;
    }
    Ok(Outcome::Done)
}

pub fn peek(client: &Client, args: &PeekArgs, output: &Output) -> Result<Outcome, Failure> {
    let states = args.state.map_or_else(|| State::ALL.to_vec(), |state| vec![state]);
    let mut messages = Vec::new();
    for state in states {
        let mut command = cmd("DQ.PEEK");
        command.arg(args.queue.as_bytes()).arg(state.as_str()).arg("COUNT").arg(args.count);
        if let Some(group) = &args.group {
            command.arg("GROUP").arg(group);
        }
        for message in reply::list(client.call(&command, Resend::Harmless)?)? {
            messages.extend(Fields::read(message)?);
        }
    }
    if messages.is_empty() && !exists(client, &args.queue)? {
        return Ok(Outcome::Nothing);
    }
    message::list(&messages, output)?;
    Ok(Outcome::Done)
}
