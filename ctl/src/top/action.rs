//! The actions of the screen, each of which asks for confirmation.

use super::alter;
use super::marked::{Change, Marked};
use super::sources::Sources;
use crate::daily::delete::delete_queue;
use crate::dead::{self, Among, Filter, SentBack};
use crate::failure::Failure;
use crate::output::text::{grouped, named};
use crate::reply;
use crate::time::{exact, millis};
use dq_client::{cmd, Client, Error, Flow, Nack, Queue, Raw, Resend};
use std::time::Duration;

/// How many messages one command changes, so that each command is short.
const STEP: u32 = 10_000;

/// An action on a queue, or on one of its messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    pub queue: Vec<u8>,
    pub kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    Pause,
    PauseFor(Duration),
    Resume,
    /// Of the queues that were marked. The action names one of them.
    Marked(Change, Marked),
    /// For pushes, and so the end of that; deliveries stay as they are.
    Close,
    Open,
    /// The queue itself, with so many messages.
    Delete(u64),
    /// Settings as they were typed.
    Alter(String),
    /// The most messages to change: as many as there were when the question was asked.
    RedriveAll(u64),
    PromoteAll(u64),
    Purge(&'static str, u64),
    Remove(Removal, Vec<u8>),
    /// The end of the delivery of a message, and the name of its consumer, if that has one.
    End(End, Vec<u8>, Vec<u8>),
    Redrive(Vec<u8>),
    /// Messages that were marked, all in the same state.
    RemoveMarked(Removal, Vec<Vec<u8>>),
    RedriveMarked(Vec<Vec<u8>>),
    /// One message that is not in flight, or those that were marked, and their state.
    Bury(&'static str, Vec<Vec<u8>>),
    RunNow(Vec<u8>),
    /// The messages that a consumer holds, and how many these are.
    Release(Vec<u8>, u64),
    /// The same without counting the attempts.
    ReleaseUncounted(Vec<u8>, u64),
    PauseGroup(Vec<u8>),
    ResumeGroup(Vec<u8>),
    /// The dead messages of a cause: the oldest, as many as there were when the question was asked.
    RedriveCause(String, u64),
    /// The same, deleted; among the dead messages or the letters.
    DeleteCause(String, u64, Among),
    /// Messages that died in other queues, and the same of a cause, with the queues in which they died.
    SendBack(Vec<Vec<u8>>, Sources),
    SendCauseBack(String, u64, Sources),
}

/// What becomes of a message in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Cancel,
    Nack,
    Bury,
}

/// What the removal of a message is called, which depends on its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removal {
    Cancel,
    /// Of a message that recurs.
    CancelSchedule,
    /// Of a message in flight.
    CancelHeld,
    /// Of a dead message.
    Delete,
    /// Of a done message.
    Forget,
}

impl Removal {
    pub fn of(state: &str) -> Removal {
        match state {
            "inflight" => Removal::CancelHeld,
            "dead" => Removal::Delete,
            "done" => Removal::Forget,
            _ => Removal::Cancel,
        }
    }

    pub fn verb(self) -> &'static str {
        match self {
            Removal::Cancel | Removal::CancelSchedule | Removal::CancelHeld => "cancel",
            Removal::Delete => "delete",
            Removal::Forget => "forget",
        }
    }

    fn past(self) -> &'static str {
        match self {
            Removal::Cancel | Removal::CancelSchedule | Removal::CancelHeld => "cancelled",
            Removal::Delete => "deleted",
            Removal::Forget => "forgot",
        }
    }
}

/// `1 dead message`, `25,000 dead messages`; without a state, `2 messages`.
pub fn many(count: u64, state: &str) -> String {
    let space = if state.is_empty() { "" } else { " " };
    format!("{} {state}{space}message{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Executes an action. Returns a line that reports its outcome, or why it is not known or failed.
/// `done` is called with each of several queues that was changed.
pub fn execute(
    client: &Client,
    action: &Action,
    progress: impl Fn(String),
    done: impl Fn(&[u8]),
) -> Result<String, String> {
    try_execute(client, action, progress, done).map_err(|failure| {
        let failure = failure.of_write().about(Some(&named(&action.queue)));
        format!("{}: failed: {failure}", action.stem())
    })
}

fn try_execute(
    client: &Client,
    action: &Action,
    progress: impl Fn(String),
    done: impl Fn(&[u8]),
) -> Result<String, Failure> {
    let name = named(&action.queue);
    let queue: Queue<Raw> = client.queue(&action.queue);
    let one = |done: bool, what: &str, id: &[u8]| {
        if done {
            format!("{what} {}", named(id))
        } else {
            format!("{} no longer exists, or is in another state", named(id))
        }
    };
    Ok(match &action.kind {
        Kind::Pause => {
            queue.pause(None)?;
            format!("paused {name}")
        }
        Kind::PauseFor(time) => {
            queue.pause(Some(*time))?;
            format!("paused {name} for {}", exact(millis(*time)))
        }
        Kind::Resume => {
            queue.resume_flow(Flow::Out)?;
            format!("resumed {name}")
        }
        Kind::Marked(change, queues) => change.execute(client, queues, progress, done)?,
        Kind::Close => {
            queue.pause_flow(Flow::In, None)?;
            format!("closed {name}")
        }
        Kind::Open => {
            queue.resume_flow(Flow::In)?;
            format!("opened {name}")
        }
        Kind::Delete(_) if delete_queue(client, &action.queue)? => format!("deleted the queue {name}"),
        Kind::Delete(_) => format!("there is no queue {name}"),
        Kind::Alter(text) => alter::execute(client, &action.queue, text)?,
        Kind::RedriveAll(limit) => {
            format!("redriven {} of {name}", many(redrive(&queue, *limit, progress)?, ""))
        }
        Kind::PromoteAll(limit) => {
            format!("{} of {name} due now", many(promote(client, &action.queue, *limit, progress)?, ""))
        }
        Kind::Purge(state, limit) => {
            let step =
                |count: u32| counted(client, cmd("DQ.PURGE").arg(&action.queue).arg(state).arg("COUNT").arg(count));
            format!("purged {} of {name}", many(in_steps(*limit, "purged", step, progress)?, state))
        }
        Kind::Remove(removal, id) => one(queue.cancel(id)?, removal.past(), id),
        Kind::End(End::Cancel, id, _) => one(queue.cancel(id)?, Removal::Cancel.past(), id),
        Kind::End(End::Nack, id, _) => one(queue.nack(id, &Nack::retry())?.is_some(), "nacked", id),
        Kind::End(End::Bury, id, _) => one(queue.bury(id, None)?.is_some(), "buried", id),
        Kind::RemoveMarked(removal, ids) => {
            format!("{} {} of {name}", removal.past(), many(queue.cancel_all(ids)? as u64, ""))
        }
        Kind::RedriveMarked(ids) => format!("redriven {} of {name}", many(queue.redrive(ids)?, "")),
        Kind::Bury(_, ids) => bury(&queue, ids)?,
        Kind::Redrive(id) => one(queue.redrive([id])? > 0, "redriven", id),
        Kind::RunNow(id) => {
            let command = cmd("DQ.RESCHEDULE").arg(&action.queue).arg(id).arg("DELAY").arg(0).clone();
            one(counted(client, &command)? > 0, "due now:", id)
        }
        Kind::Release(consumer, held) => {
            let released = queue.release(consumer, u32::try_from(*held).ok())?;
            format!("released {} of {}", many(released, ""), named(consumer))
        }
        Kind::ReleaseUncounted(consumer, held) => {
            let released = queue.release_uncounted(consumer, u32::try_from(*held).ok())?;
            format!("released {} of {} without counting", many(released, ""), named(consumer))
        }
        Kind::PauseGroup(group) => {
            queue.group(group).pause(None)?;
            format!("paused group {} of {name}", named(group))
        }
        Kind::ResumeGroup(group) => {
            queue.group(group).resume()?;
            format!("resumed group {} of {name}", named(group))
        }
        Kind::RedriveCause(cause, limit) => {
            let said = |count| progress(format!("{} redriven …", grouped(count)));
            let filter = of_cause(cause, *limit, Among::default())?;
            let redriven = dead::redrive(client, &action.queue, &filter, Duration::ZERO, said)?;
            format!("redriven {} of {name}", many(redriven.unwrap_or(0), ""))
        }
        Kind::DeleteCause(cause, limit, among) => {
            let said = |count| progress(format!("{} deleted …", grouped(count)));
            let deleted = dead::cancel(client, &action.queue, &of_cause(cause, *limit, *among)?, said)?;
            format!("deleted {} of {name}", many(deleted.unwrap_or(0), ""))
        }
        Kind::SendBack(ids, _) => {
            let (ids, mut sent): (Vec<&[u8]>, _) = (ids.iter().map(Vec::as_slice).collect(), SentBack::default());
            let did = dead::send_back(client, &action.queue, &ids, Duration::ZERO, &mut sent);
            sent_back(did, sent, &name)?
        }
        Kind::SendCauseBack(cause, limit, _) => {
            let said = |count| progress(format!("{} sent back …", grouped(count)));
            let (filter, mut sent) = (of_cause(cause, *limit, Among::Letters)?, SentBack::default());
            let did =
                dead::send_selected_back(client, &action.queue, &filter, Duration::ZERO, &mut sent, said).map(|_| ());
            sent_back(did, sent, &name)?
        }
    })
}

/// The oldest messages of a cause, at most `limit` of them.
fn of_cause(cause: &str, limit: u64, among: Among) -> Result<Filter, Failure> {
    let condition = format!("cause={cause}").parse().map_err(Failure::usage)?;
    let oldest = Some(u32::try_from(limit).unwrap_or(u32::MAX));
    Ok(Filter { among, conditions: vec![condition], oldest, ..Filter::default() })
}

/// What became of letters.
fn sent_back(did: Result<(), Failure>, sent: SentBack, queue: &str) -> Result<String, Failure> {
    did.map_err(|failure| failure.after_change(sent.sent, "sent back"))?;
    let left = match sent.left() {
        0 => String::new(),
        left => format!("; {} left, in flight, or refused by where they died", many(left, "")),
    };
    Ok(format!("sent back {} of {queue}{left}", many(sent.sent, "")))
}

/// Redrives the oldest dead messages of a queue.
pub fn redrive(queue: &Queue<Raw>, limit: u64, progress: impl Fn(String)) -> Result<u64, Failure> {
    in_steps(limit, "redriven", |count| queue.redrive_oldest(Some(count), Duration::ZERO), progress)
}

/// Runs the delayed messages of a queue that are due first.
pub fn promote(client: &Client, queue: &[u8], limit: u64, progress: impl Fn(String)) -> Result<u64, Failure> {
    let step = |count: u32| counted(client, cmd("DQ.PROMOTE").arg(queue).arg("COUNT").arg(count));
    in_steps(limit, "run", step, progress)
}

fn bury(queue: &Queue<Raw>, ids: &[Vec<u8>]) -> Result<String, Failure> {
    let mut buried = 0;
    for id in ids {
        let was = queue.bury(id, None).map_err(|error| Failure::from(error).after_change(buried, "buried"))?;
        buried += u64::from(was.is_some());
    }
    Ok(format!("buried {} of {}", many(buried, ""), named(queue.name().as_bytes())))
}

fn counted(client: &Client, command: &dq_client::Cmd) -> Result<u64, Error> {
    let reply = client.call(command, Resend::Never)?;
    Ok(reply::int(&reply).and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}

/// Repeats a step until nothing is left, but ignores messages that came later. A failure says how many were changed before.
fn in_steps(
    limit: u64,
    done: &str,
    step: impl Fn(u32) -> Result<u64, Error>,
    progress: impl Fn(String),
) -> Result<u64, Failure> {
    let mut total = 0;
    while total < limit {
        let count = u32::try_from(limit - total).unwrap_or(STEP).min(STEP);
        let changed = step(count).map_err(|error| Failure::from(error).after_change(total, done))?;
        total += changed;
        if changed < u64::from(count) {
            break;
        }
        if total < limit {
            progress(format!("{} of {} {done} …", grouped(total), grouped(limit)));
        }
    }
    Ok(total)
}
