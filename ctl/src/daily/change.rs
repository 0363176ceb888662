//! `dqctl cancel`, `reschedule` and `redrive`.

use super::bulk::{Bulk, Counted, Tell};
use super::confirm::Question;
use super::why::{no_such_id, not_in};
use super::{many, queue, where_no_dead_are};
use crate::cli::{among, CancelArgs, ConfirmArgs, RedriveArgs, RescheduleArgs};
use crate::dead::{self, Among, Filter, SentBack};
use crate::failure::{Failure, Outcome};
use crate::message::recurs;
use crate::name::{MessageId, QueueName};
use crate::output::Output;
use crate::reply::{int, unexpected, Fields};
use crate::time::millis;
use crate::transfer::get_all;
use crate::wording::messages;
use dq_client::{cmd, Client, Resend, State};
use serde_json::json;
use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

pub fn cancel(client: &Client, args: &CancelArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.ids.is_empty() {
        let filter = args.select.filter(among(args.letters, args.state), args.count);
        let how = Change { verb: "Cancel", done: "cancelled", is_dry: args.dry_run, confirm: &args.confirm };
        return how.to_selected(client, &args.queue, filter, output, &|queue, filter, tell| {
            dead::cancel(client, queue.as_bytes(), filter, tell)
        });
    }
    if args.dry_run {
        return count(client, &args.queue, &args.ids, |_| true, output);
    }
    let queue = queue(client, &args.queue);
    // A user may be allowed the change alone.
    let is_schedule = |id: &MessageId| {
        let held = get_all(client, args.queue.as_bytes(), &[id.as_bytes()]).unwrap_or_default();
        held.iter().flatten().any(recurs)
    };
    let mut outcome = Outcome::Done;
    for id in &args.ids {
        let ends_schedule = output.is_for_people() && is_schedule(id);
        if queue.cancel(id)? {
            output.result(&id.to_string(), json!({ "id": id, "cancelled": true }))?;
            if ends_schedule {
                output.remark("that was a schedule, which pushes no more messages")?;
            }
        } else {
            no_such_id(client, &args.queue, id);
            outcome = Outcome::Nothing;
        }
    }
    Ok(outcome)
}

pub fn reschedule(client: &Client, args: &RescheduleArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut command = cmd("DQ.RESCHEDULE");
    command.arg(args.queue.as_bytes()).arg(args.id.as_bytes());
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
        output.result(&args.id.to_string(), json!({ "id": args.id, "rescheduled": true }))?;
        return Ok(Outcome::Done);
    }
    not_in(client, &args.queue, &args.id, "delayed or ready");
    Ok(Outcome::Nothing)
}

pub fn redrive(client: &Client, args: &RedriveArgs, output: &Output) -> Result<Outcome, Failure> {
    if !args.ids.is_empty() {
        return redrive_these(client, args, output);
    }
    let filter = args.select.filter(among(args.letters, None), args.count);
    if !filter.has_conditions() {
        return many::redrive(client, args, output);
    }
    let (delay, sent) = (args.delay.unwrap_or(Duration::ZERO), Cell::new(SentBack::default()));
    let how = Change { verb: "Redrive", done: "redriven", is_dry: args.dry_run, confirm: &args.confirm };
    let outcome = how.to_selected(client, &args.queue, filter, output, &|queue, filter, tell| {
        if !args.letters {
            return dead::redrive(client, queue.as_bytes(), filter, delay, tell);
        }
        let mut done = sent.get();
        let before = done.sent;
        let number = dead::send_selected_back(client, queue.as_bytes(), filter, delay, &mut done, &mut *tell);
        // An error may come after a part of a page.
        tell(done.sent - before);
        sent.set(done);
        number
    });
    tell_of_letters(sent.get());
    outcome
}

/// Says on standard error which letters were not sent back.
fn tell_of_letters(sent: SentBack) {
    for (number, which) in [
        (sent.in_flight, "in flight"),
        (sent.known, "with an id that the queue in which it died has again"),
        (sent.foreign, "from a queue that does not exist, or does not move its dead messages here (--deadforward)"),
    ] {
        if number > 0 {
            say!("dqctl: left here: {} {which}", messages(number));
        }
    }
}

/// Redrives messages by their ids, one by one, so that it can be said which of them are not dead.
fn redrive_these(client: &Client, args: &RedriveArgs, output: &Output) -> Result<Outcome, Failure> {
    let (queue, delay) = (args.queue.as_bytes(), args.delay.unwrap_or_default());
    let (is_meant, needed): (fn(&Fields) -> bool, _) = match args.letters {
        true => (dead::is_letter, "a letter from another queue"),
        false => (|message| message.text("state") == "dead", "dead"),
    };
    if args.dry_run {
        return count(client, &args.queue, &args.ids, is_meant, output);
    }
    let (mut redriven, mut sent, mut outcome) = (0, SentBack::default(), Outcome::Done);
    for id in &args.ids {
        let before = (redriven, sent);
        let acted = if args.letters {
            let acted = dead::send_back(client, queue, &[id.as_bytes()], delay, &mut sent);
            redriven = sent.sent;
            acted
        } else {
            dead::redrive_these(client, queue, &[id.as_bytes()], delay).map(|count| redriven += count)
        };
        acted.map_err(|failure| failure.after_change(redriven, "redriven"))?;
        if (redriven, sent) == before {
            not_in(client, &args.queue, id, needed);
        }
        if redriven == before.0 {
            outcome = Outcome::Nothing;
        }
    }
    output.counted(redriven, "redriven", json!({ "redriven": redriven }))?;
    tell_of_letters(sent);
    Ok(outcome)
}

/// Prints how many of these messages would be changed.
fn count(
    client: &Client,
    queue: &QueueName,
    ids: &[MessageId],
    is_meant: impl Fn(&Fields) -> bool,
    output: &Output,
) -> Result<Outcome, Failure> {
    let ids: Vec<&[u8]> = ids.iter().map(MessageId::as_bytes).collect();
    let held = get_all(client, queue.as_bytes(), &ids)?;
    let selected = held.iter().flatten().filter(|message| is_meant(message)).count();
    output.counted(selected, "selected", json!({ "selected": selected }))?;
    Ok(Outcome::found(selected > 0))
}

/// What is done to the messages that conditions select.
pub struct Change<'a> {
    /// As in the question: `Redrive`.
    pub verb: &'a str,
    /// As in the answer: `redriven`.
    pub done: &'static str,
    /// Whether they are only counted.
    pub is_dry: bool,
    pub confirm: &'a ConfirmArgs,
}

impl Change<'_> {
    /// Counts the messages, or asks and changes them. `act` returns how many it has changed of a queue; `None` if that does not
    /// exist.
    pub fn to_selected(
        &self,
        client: &Client,
        typed: &QueueName,
        filter: Filter,
        output: &Output,
        act: &dyn Fn(&QueueName, &Filter, Tell) -> Counted,
    ) -> Result<Outcome, Failure> {
        // Those that come later are not among the oldest.
        let limited = |most: u64| Filter { oldest: u32::try_from(most).ok().or(filter.oldest), ..filter.clone() };
        let change = Bulk {
            question: &|| Question::of(self.verb, &filter),
            done: self.done,
            is_dry: self.is_dry,
            confirm: self.confirm,
            count: &|queue, tell| dead::count(client, queue.as_bytes(), &filter, tell),
            change: &|queue, most, tell| act(queue, &limited(most), tell),
            why_none: &|queue| match filter.among {
                Among::State(State::Dead) => where_no_dead_are(client, queue),
                Among::State(_) | Among::Letters => Ok(()),
            },
        };
        change.run(client, typed, output)
    }
}
