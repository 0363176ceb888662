//! `dqctl cancel`, `reschedule` and `redrive`.

use super::confirm::{agrees, Question};
use super::several::each;
use super::why::{no_such_id, not_in};
use super::{many, no_such_queue, queue, queues, where_the_dead_are};
use crate::cli::{among, CancelArgs, ConfirmArgs, RedriveArgs, RescheduleArgs};
use crate::dead::{self, SentBack};
use crate::failure::{Failure, Outcome};
use crate::name::{MessageId, QueueName};
use crate::output::Output;
use crate::progress::Progress;
use crate::reply::{int, unexpected, Fields};
use crate::time::millis;
use crate::transfer::get_all;
use crate::wording::messages;
use dq_client::{cmd, Client, Resend};
use serde_json::json;
use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

pub fn cancel(client: &Client, args: &CancelArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.ids.is_empty() {
        let filter = args.select.filter(among(args.letters, args.state), args.count);
        let queue = args.queue.as_bytes();
        let how = Change { verb: "Cancel", done: "cancelled", is_dry: args.dry_run, confirm: &args.confirm };
        return how.to_selected(client, &args.queue, filter, output, |filter, progress| {
            dead::cancel(client, queue, filter, progress)
        });
    }
    if args.dry_run {
        return count(client, &args.queue, &args.ids, |_| true, output);
    }
    let queue = queue(client, &args.queue);
    let mut outcome = Outcome::Done;
    for id in &args.ids {
        if queue.cancel(id)? {
            output.result(&id.to_string(), json!({ "id": id, "cancelled": true }))?;
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
    // Whether one of several queues had dead messages.
    let found = Cell::new(None);
    let ask = ConfirmArgs { yes: args.confirm.yes || args.dry_run };
    let filter = args.select.filter(among(args.letters, None), args.count);
    let verb = format!("Redrive the {} messages{filter} of", filter.among);
    let outcome = each(client, &args.queue, (&verb, &ask), output, |name, output| {
        if *name == args.queue {
            return redrive_in(client, args, output);
        }
        let had_some = found.get().unwrap_or(false);
        found.set(Some(had_some));
        // Most of many queues have no dead message, which goes without saying.
        if !args.letters && queues::read(client, name.as_bytes())?.is_some_and(|info| info.int("dead") == Some(0)) {
            return Ok(Outcome::Done);
        }
        // One question was for all of them.
        let of_one = RedriveArgs { queue: name.clone(), confirm: ConfirmArgs { yes: true }, ..args.clone() };
        let redriven = redrive_in(client, &of_one, output)?;
        found.set(Some(had_some || redriven == Outcome::Done));
        Ok(Outcome::Done)
    })?;
    Ok(if found.get() == Some(false) { Outcome::Nothing } else { outcome })
}

fn redrive_in(client: &Client, args: &RedriveArgs, output: &Output) -> Result<Outcome, Failure> {
    let filter = args.select.filter(among(args.letters, None), args.count);
    if args.dry_run || filter.has_conditions() {
        let (queue, delay) = (args.queue.as_bytes(), args.delay.unwrap_or(Duration::ZERO));
        let mut sent = SentBack::default();
        let how = Change { verb: "Redrive", done: "redriven", is_dry: args.dry_run, confirm: &args.confirm };
        let outcome = how.to_selected(client, &args.queue, filter, output, |filter, progress| {
            if !args.letters {
                return dead::redrive(client, queue, filter, delay, progress);
            }
            let count = dead::send_selected_back(client, queue, filter, delay, &mut sent, &mut *progress);
            // An error may come after a part of a page.
            progress(sent.sent);
            count
        });
        tell_of_letters(sent);
        return outcome;
    }
    many::redrive(client, args, output)
}

/// Says on standard error which letters were not sent back.
fn tell_of_letters(sent: SentBack) {
    for (number, which) in [
        (sent.in_flight, "in flight"),
        (sent.known, "with an id that the queue in which it died has again"),
        (sent.foreign, "from a queue that does not exist, or does not move its dead messages here (--deadforward)"),
    ] {
        if number > 0 {
            eprintln!("dqctl: left here: {} {which}", messages(number));
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

/// Asks about the messages that conditions select. Returns what selects no more than was agreed on: those that die later
/// are not among the oldest.
fn agreed(
    client: &Client,
    args: &ConfirmArgs,
    queue: &QueueName,
    verb: &str,
    filter: dead::Filter,
) -> Result<Option<dead::Filter>, Failure> {
    let most = agrees(args, queue, &Question::of(verb, &filter), || {
        let mut progress = Progress::new("selected");
        dead::count(client, queue.as_bytes(), &filter, |count| progress.at(count))
    })?;
    let limited = |most: u64| dead::Filter { oldest: u32::try_from(most).ok().or(filter.oldest), ..filter };
    Ok(most.map(limited))
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
    /// Counts the messages, or asks and changes them. `act` returns how many it has changed; `None` if the queue does not exist.
    pub fn to_selected(
        &self,
        client: &Client,
        queue: &QueueName,
        filter: dead::Filter,
        output: &Output,
        act: impl FnOnce(&dead::Filter, &mut dyn FnMut(u64)) -> Result<Option<u64>, Failure>,
    ) -> Result<Outcome, Failure> {
        if self.is_dry {
            return selected(client, queue, Selected::Counted, output, |progress| {
                dead::count(client, queue.as_bytes(), &filter, progress)
            });
        }
        let Some(filter) = agreed(client, self.confirm, queue, self.verb, filter)? else {
            return Ok(Outcome::Nothing);
        };
        let outcome = selected(client, queue, Selected::Changed(self.done), output, |progress| act(&filter, progress))?;
        if outcome == Outcome::Nothing && filter.among != dead::Among::Letters {
            dead::where_letters_are(client, queue);
        }
        Ok(outcome)
    }
}

/// How the messages that conditions select are spoken of.
#[derive(Clone, Copy)]
enum Selected {
    Counted,
    /// The verb says how.
    Changed(&'static str),
}

/// Prints how many messages were selected.
fn selected(
    client: &Client,
    queue: &QueueName,
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
    let acted = acted.map_err(|failure| match what {
        Selected::Changed(verb) => failure.after_change(before, verb),
        Selected::Counted => failure,
    })?;
    let Some(count) = acted else {
        no_such_queue(queue);
        return Ok(Outcome::Nothing);
    };
    output.counted(count, verb, json!({ verb: count }))?;
    if count == 0 {
        if let Some(info) = queues::read(client, queue.as_bytes())? {
            where_the_dead_are(queue, &info);
        }
    }
    Ok(Outcome::found(count > 0))
}
