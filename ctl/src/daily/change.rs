//! `dqctl cancel`, `reschedule`, `redrive`, `pause` and `resume`.

use super::{many, no_such_id, no_such_queue, queue};
use crate::cli::{CancelArgs, FlowArg, PauseArgs, RedriveArgs, RescheduleArgs, ResumeArgs};
use crate::dead;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::progress::Progress;
use crate::reply::{int, unexpected};
use crate::time::{exact, millis};
use dq_client::{cmd, Client, Resend};
use serde_json::json;
use std::time::{Duration, UNIX_EPOCH};

pub fn cancel(client: &Client, args: &CancelArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.ids.is_empty() {
        let (queue, filter) = (args.queue.as_bytes(), args.select.filter());
        return if args.dry_run {
            selected(&args.queue, Selected::Counted, output, |progress| dead::count(client, queue, &filter, progress))
        } else {
            let cancelled = Selected::Changed("cancelled");
            selected(&args.queue, cancelled, output, |progress| dead::cancel(client, queue, &filter, progress))
        };
    }
    let queue = queue(client, &args.queue);
    let mut outcome = Outcome::Done;
    for id in &args.ids {
        if queue.cancel(id)? {
            output.result(id, json!({ "id": id, "cancelled": true }))?;
        } else {
            no_such_id(&args.queue, id);
            outcome = Outcome::Nothing;
        }
    }
    Ok(outcome)
}

pub fn reschedule(client: &Client, args: &RescheduleArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut command = cmd("DQ.RESCHEDULE");
    command.arg(&args.queue).arg(&args.id);
    if let Some(delay) = args.delay {
        command.arg("DELAY").arg(millis(delay));
    }
    if let Some(at) = args.at {
        command.arg("AT").arg(millis(at.duration_since(UNIX_EPOCH).unwrap_or_default()));
    }
    if let Some(priority) = args.priority {
        command.arg("PRIORITY").arg(priority);
    }
    // A delay counts from the server's present, so repeating the command would move the message a little.
    let reply = client.call(&command, if args.delay.is_some() { Resend::Never } else { Resend::Harmless })?;
    if int(&reply).ok_or_else(|| unexpected(&reply))? == 1 {
        output.result(&args.id, json!({ "id": args.id, "rescheduled": true }))?;
        return Ok(Outcome::Done);
    }
    eprintln!("dqctl: the queue {} has no delayed or ready message {}", args.queue, args.id);
    Ok(Outcome::Nothing)
}

pub fn redrive(client: &Client, args: &RedriveArgs, output: &Output) -> Result<Outcome, Failure> {
    let filter = args.select.filter();
    if args.dry_run || !filter.is_empty() {
        let (queue, delay) = (args.queue.as_bytes(), args.delay.unwrap_or(Duration::ZERO));
        return if args.dry_run {
            selected(&args.queue, Selected::Counted, output, |progress| dead::count(client, queue, &filter, progress))
        } else {
            let redriven = Selected::Changed("redriven");
            selected(&args.queue, redriven, output, |progress| dead::redrive(client, queue, &filter, delay, progress))
        };
    }
    if args.ids.is_empty() {
        return many::redrive(client, args, output);
    }
    let redriven = queue(client, &args.queue).redrive(&args.ids)?;
    output.result(&redriven.to_string(), json!({ "redriven": redriven }))?;
    let wanted = u64::try_from(args.ids.len()).unwrap_or(u64::MAX);
    if redriven < wanted {
        eprintln!("dqctl: {} of {wanted} messages are not dead in the queue {}", wanted - redriven, args.queue);
    }
    Ok(Outcome::found(redriven >= wanted))
}

/// What is done to the messages that conditions select.
#[derive(Clone, Copy)]
enum Selected {
    Counted,
    /// The verb says how.
    Changed(&'static str),
}

/// Prints how many messages were selected. None is an outcome, too, as with a redrive of all.
fn selected(
    queue: &str,
    what: Selected,
    output: &Output,
    act: impl FnOnce(&mut dyn FnMut(u64)) -> Result<Option<u64>, Failure>,
) -> Result<Outcome, Failure> {
    let verb = match what {
        Selected::Counted => "selected",
        Selected::Changed(verb) => verb,
    };
    let (mut progress, mut before) = (Progress::new(verb), 0);
    let acted = act(&mut |count| {
        before = count;
        progress.at(count);
    });
    drop(progress);
    let acted = acted.map_err(|failure| match (what, before) {
        (Selected::Changed(verb), 1..) => failure.after(format!("{before} messages were {verb}")),
        (Selected::Counted | Selected::Changed(_), _) => failure,
    })?;
    let Some(count) = acted else {
        no_such_queue(queue);
        return Ok(Outcome::Nothing);
    };
    output.result(&count.to_string(), json!({ verb: count }))?;
    Ok(Outcome::Done)
}

pub fn pause(client: &Client, args: &PauseArgs, output: &Output) -> Result<Outcome, Failure> {
    queue(client, &args.queue).pause_flow(args.flow.into(), args.time)?;
    let (done, json) = match args.flow {
        FlowArg::Out => ("paused", json!({ "queue": args.queue, "paused": 1 })),
        FlowArg::In => ("closed", json!({ "queue": args.queue, "closed": 1 })),
        FlowArg::All => ("paused and closed", json!({ "queue": args.queue, "paused": 1, "closed": 1 })),
    };
    // A pause that lasts longer stays.
    let text = args.time.map_or_else(|| done.to_owned(), |time| format!("{done} for at least {}", exact(millis(time))));
    output.result(&text, json)?;
    Ok(Outcome::Done)
}

pub fn resume(client: &Client, args: &ResumeArgs, output: &Output) -> Result<Outcome, Failure> {
    queue(client, &args.queue).resume_flow(args.flow.into())?;
    output.result("resumed", json!({ "queue": args.queue, "paused": 0 }))?;
    Ok(Outcome::Done)
}
