//! `dqctl bury` and `dqctl nack`.

use super::change::Change;
use super::why::{not_in, ALIVE};
use crate::cli::{BuryArgs, NackArgs};
use crate::dead::{self, Among};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::reply;
use crate::time::millis;
use dq_client::{cmd, Client, Resend, State};
use serde_json::json;

pub fn bury(client: &Client, args: &BuryArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.ids.is_empty() {
        return bury_selected(client, args, output);
    }
    let mut outcome = Outcome::Done;
    for id in &args.ids {
        let mut command = cmd("DQ.BURY");
        command.arg(args.queue.as_bytes()).arg(id.as_bytes());
        if let Some(error) = &args.error {
            command.arg("ERROR").arg(error);
        }
        if let Some(was) = reply::text(&client.call(&command, Resend::Harmless)?) {
            output.result(&id.to_string(), json!({ "id": id, "was": was }))?;
        } else {
            not_in(client, &args.queue, id, ALIVE);
            outcome = Outcome::Nothing;
        }
    }
    Ok(outcome)
}

fn bury_selected(client: &Client, args: &BuryArgs, output: &Output) -> Result<Outcome, Failure> {
    if matches!(args.state, State::Dead | State::Done) {
        return Err(Failure::usage("only ready, delayed and inflight messages are buried"));
    }
    let filter = args.select.filter(Among::State(args.state), args.count);
    let error = args.error.as_deref().map(str::as_bytes);
    let how = Change { verb: "Bury", done: "buried", is_dry: args.dry_run, confirm: &args.confirm };
    how.to_selected(client, &args.queue, filter, output, &|queue, filter, tell| {
        dead::bury(client, queue.as_bytes(), filter, error, tell)
    })
}

pub fn nack(client: &Client, args: &NackArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut command = cmd("DQ.NACK");
    command.arg(args.queue.as_bytes()).arg(args.id.as_bytes());
    if let Some(delay) = args.delay {
        command.arg("DELAY").arg(millis(delay));
    }
    if let Some(error) = &args.error {
        command.arg("ERROR").arg(error);
    }
    if args.dead {
        command.arg("DEAD");
    }
    if args.no_count {
        command.arg("NOCOUNT");
    }
    let Some(state) = reply::text(&client.call(&command, Resend::Never)?) else {
        not_in(client, &args.queue, &args.id, "in flight");
        return Ok(Outcome::Nothing);
    };
    output.result(&state, json!({ "id": args.id, "state": state }))?;
    Ok(Outcome::Done)
}
