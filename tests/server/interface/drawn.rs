//! The acts of the histories that the model of the core draws, in the words of clients.

use super::history::{targets, Act, Beside, Due, Every, FollowUp, History, Lease, Past, Purge, Push, Redriven, Step};
use dq_queue::forward::{Forward, ListEnd};
use dq_queue::settings::{Given, Settings, FIELDS};
use dq_queue::{Flow, Reason, Spare, Verdict};

/// A command, and words of its syntax.
type Call = (&'static str, Vec<&'static str>);

/// What a history asks the queue, as calls of commands.
pub fn calls(history: &History) -> Vec<Call> {
    let History { settings, start: _, skew: _, steps } = history;
    let acts = steps.iter().flat_map(|Step { passed: _, act }| said(act));
    acts.chain([("dq.create", changed(settings))]).collect()
}

/// The options whose flags are set.
fn options<const N: usize>(all: [(&'static str, bool); N]) -> Vec<&'static str> {
    all.into_iter().filter(|(_, is_given)| *is_given).map(|(word, _)| word).collect()
}

/// An act as calls; none if it is not one of a client.
fn said(act: &Act) -> Vec<Call> {
    let call = match act {
        Act::Push(push) | Act::Beside { which: _, of: Beside::Push(push) } => {
            let mut words = of_push(push);
            words.extend(push.name.map(|_| "ID"));
            // What is pushed beside a message in flight waits for the end of its delivery.
            words.extend(matches!(act, Act::Beside { .. }).then_some(["REPLACE", "LATER"]).into_iter().flatten());
            ("dq.push", words)
        }
        Act::PushAll { of, names } => {
            let mut words = of_push(of);
            words.extend(names.as_ref().map(|_| "IDS"));
            ("dq.mpush", words)
        }
        Act::Pop { count, lease } => {
            let (has_lease, is_acked) = (matches!(lease, Lease::For(_)), matches!(lease, Lease::NoAck));
            ("dq.pop", options([("COUNT", *count > 1), ("LEASE", has_lease), ("NOACK", is_acked)]))
        }
        Act::AckPop { aims: _, count, lease } => {
            ("dq.ackpop", options([("COUNT", *count > 1), ("LEASE", lease.is_some())]))
        }
        Act::WorkAs(name) => {
            return name.map_or_else(Vec::new, |_| vec![("dq.pop", vec!["AS"]), ("dq.ackpop", vec!["AS"])]);
        }
        Act::Release { consumer: _, count, verdict } => {
            let is_uncounted = *verdict == Verdict::NotCounted;
            ("dq.release", options([("COUNT", count.is_some()), ("NOCOUNT", is_uncounted)]))
        }
        Act::Ack(_) => ("dq.ack", Vec::new()),
        Act::Complete { aim: _, result, retain } => {
            ("dq.complete", options([("RESULT", result.is_some()), ("RETAIN", retain.is_some())]))
        }
        Act::Nack { aim: _, delay, error, verdict, checkpoint } => {
            let verdict = match verdict {
                Verdict::Failed => None,
                Verdict::Rejected => Some("DEAD"),
                Verdict::NotCounted => Some("NOCOUNT"),
            };
            let (delay, error) = (delay.is_some(), error.is_some());
            let mut words = options([("DELAY", delay), ("ERROR", error), ("CHECKPOINT", checkpoint.is_some())]);
            words.extend(verdict);
            ("dq.nack", words)
        }
        Act::Bury { aim: _, error } => ("dq.bury", options([("ERROR", error.is_some())])),
        Act::Promote { count, until } => {
            ("dq.promote", options([("COUNT", *count < usize::MAX), ("UNTIL", until.is_some())]))
        }
        Act::Extend { aims, lease, checkpoint } if aims.len() == 1 => {
            ("dq.extend", options([("LEASE", lease.is_some()), ("CHECKPOINT", checkpoint.is_some())]))
        }
        Act::Extend { aims: _, lease, checkpoint: _ } => ("dq.mextend", options([("LEASE", lease.is_some())])),
        Act::Cancel(_) => ("dq.cancel", Vec::new()),
        Act::Reschedule { aim: _, due, priority } => {
            let mut words = due.map_or_else(Vec::new, of_due);
            words.extend(priority.map(|_| "PRIORITY"));
            ("dq.reschedule", words)
        }
        Act::Redrive { which, delay } => {
            let mut words = options([("DELAY", *delay > 0)]);
            match which {
                Redriven::Oldest(count, older, reason) => {
                    words.extend(options([("COUNT", *count < usize::MAX), ("OLDER", older.is_some())]));
                    words.extend(reason.iter().flat_map(|reason| of_reason(*reason)));
                }
                Redriven::Named(_) => words.push("IDS"),
            }
            ("dq.redrive", words)
        }
        Act::PurgeGroup { group: _, of } => ("dq.purge", [of_purge(of), vec!["GROUP"]].concat()),
        Act::Purge(of) => ("dq.purge", of_purge(of)),
        Act::Alter { settings, by: _ } => ("dq.alter", changed(settings)),
        Act::ForwardTo(target) => ("dq.alter", [vec!["FORWARD"], of_target(*target)].concat()),
        Act::ForwardDeadTo(target) => ("dq.alter", [vec!["DEADFORWARD"], of_target(*target)].concat()),
        Act::Suspend(flow, length) => {
            ("dq.pause", [vec![of_flow(*flow)], options([("FOR", length.is_some())])].concat())
        }
        Act::SuspendGroup(_, length) => ("dq.pause", [vec!["GROUP"], options([("FOR", length.is_some())])].concat()),
        Act::Resume(flow) => ("dq.resume", vec![of_flow(*flow)]),
        Act::ResumeGroup(_) => ("dq.resume", vec!["GROUP"]),
        Act::Schedule(every) | Act::Beside { which: _, of: Beside::Schedule(every) } => {
            ("dq.schedule", of_schedule(every))
        }
        Act::CloseBatch { batch: _, then } => ("dq.batch", of_follow_up(then)),
        Act::CancelBatch(_) => ("dq.batch", vec!["CANCEL"]),
        Act::Forward { .. }
        | Act::ForwardDead { .. }
        | Act::Advance { .. }
        | Act::AdvanceReplica { .. }
        | Act::Trim { .. }
        | Act::EndRuns { .. }
        | Act::Reload(_)
        | Act::Failover
        | Act::Ahead { .. }
        | Act::Remake => return Vec::new(),
    };
    vec![call]
}

fn of_due(due: Due) -> Vec<&'static str> {
    match due {
        Due::Now | Due::Default => Vec::new(),
        Due::After(_) => vec!["DELAY"],
        Due::At(_) | Due::AtTheEnd => vec!["AT"],
    }
}

/// The options that a push of one message and one of several have in common.
fn of_push(push: &Push) -> Vec<&'static str> {
    let Push { copies: _, name: _, size: _, due, priority, retries, lease, ttl, .. } = push;
    let Push { replace, maxwait, later, retain, group, headers, batch, past, .. } = push;
    let mut words = of_due(*due);
    words.extend(options([
        ("PRIORITY", *priority != 0),
        ("RETRIES", retries.is_some()),
        ("LEASE", lease.is_some()),
        ("TTL", ttl.is_some()),
        ("REPLACE", *replace),
        ("MAXWAIT", *replace && maxwait.is_some()),
        ("LATER", *replace && *later),
        ("RETAIN", retain.is_some()),
        ("GROUP", group.is_some()),
        ("HEADERS", headers.is_some()),
        ("BATCH", batch.is_some()),
    ]));
    if let Some(Past { attempts, error, checkpoint, dead }) = past {
        words.extend(options([
            ("ATTEMPT", *attempts > 0),
            ("ERROR", error.is_some()),
            ("CHECKPOINT", checkpoint.is_some()),
            ("DEAD", dead.is_some()),
        ]));
        words.extend(dead.iter().flat_map(|reason| of_reason(*reason)));
    }
    words
}

fn of_reason(reason: Reason) -> [&'static str; 2] {
    match reason {
        Reason::Retries => ["REASON", "RETRIES"],
        Reason::Rejected => ["REASON", "REJECTED"],
        Reason::Expired => ["REASON", "EXPIRED"],
    }
}

fn of_schedule(schedule: &Every) -> Vec<&'static str> {
    let Every { name: _, size: _, every: _, offset, at, until, times, priority, .. } = schedule;
    let Every { retries, lease, ttl, group, headers, .. } = schedule;
    options([
        ("EVERY", true),
        ("OFFSET", *offset > 0),
        ("AT", at.is_some()),
        ("UNTIL", until.is_some()),
        ("TIMES", times.is_some()),
        ("PRIORITY", *priority != 0),
        ("RETRIES", retries.is_some()),
        ("LEASE", lease.is_some()),
        ("TTL", ttl.is_some()),
        ("GROUP", group.is_some()),
        ("HEADERS", headers.is_some()),
    ])
}

fn of_follow_up(then: &FollowUp) -> Vec<&'static str> {
    let FollowUp { name, size: _, delay, priority, retries, lease, group, headers } = then;
    options([
        ("THEN", true),
        ("ID", name.is_some()),
        ("DELAY", delay.is_some()),
        ("PRIORITY", *priority != 0),
        ("RETRIES", retries.is_some()),
        ("LEASE", lease.is_some()),
        ("GROUP", group.is_some()),
        ("HEADERS", headers.is_some()),
    ])
}

fn of_purge(purge: &Purge) -> Vec<&'static str> {
    const STATES: [&str; 5] = ["DELAYED", "READY", "INFLIGHT", "DEAD", "DONE"];
    let Purge { states, count, older, spare } = purge;
    let mut words: Vec<&str> = states.iter().map(|nth| STATES[*nth]).collect();
    let all = *spare == Spare::Nothing;
    words.extend(options([("COUNT", count.is_some()), ("OLDER", older.is_some()), ("RECURRING", all)]));
    words
}

fn of_flow(flow: Flow) -> &'static str {
    match flow {
        Flow::In => "IN",
        Flow::Out => "OUT",
        Flow::Both => "ALL",
    }
}

/// The words of a target of forwarding, given by its number.
fn of_target(target: Option<usize>) -> Vec<&'static str> {
    match target.map(|nth| targets().swap_remove(nth)) {
        None => vec!["NONE"],
        Some(Forward::Stream { key: _, trim }) => options([("STREAM", true), ("TRIM", trim.is_some())]),
        Some(Forward::List { key: _, end, register }) => options([
            ("LIST", true),
            ("LEFT", end == ListEnd::Left),
            ("RIGHT", end == ListEnd::Right),
            ("REGISTER", register.is_some()),
        ]),
        Some(Forward::Channel { name: _ }) => vec!["CHANNEL"],
        Some(Forward::Queue { key: _ }) => vec!["QUEUE"],
    }
}

/// The options of the settings that are not the default ones, or that are words.
fn changed(settings: &Settings) -> Vec<&'static str> {
    let words = FIELDS.iter().flat_map(|field| {
        let number = (field.get)(settings);
        let differs = number != (field.get)(&Settings::DEFAULT);
        match field.given {
            Given::Option(word, _) | Given::First(word, ..) | Given::Optional(word, _) if differs => vec![word],
            Given::Word(word, _, words) => vec![word, words[number as usize].1],
            Given::Option(..) | Given::First(..) | Given::Optional(..) | Given::Next(_) => Vec::new(),
        }
    });
    words.map(|word| word.to_str().expect("ASCII")).collect()
}
