//! Whether ready messages are taken: nobody does, consumers hang or are too few, or a limit or a group holds them back.

use super::finding::Severity;
use super::looked::{at_least, one, Looked, Queue};
use crate::board::{groups::Why, Condition, HeldGroup, Level, POLLED};
use crate::server::Failure;
use crate::text::{exact, millis, now_ms, span};
use std::time::Duration;

/// Why messages have been ready for longer than they may.
#[derive(PartialEq, Eq)]
enum Cause {
    /// No client waits, none holds a message, and none has taken one lately.
    Unserved,
    /// Nothing was taken for as long as the consumers have held their messages.
    Stuck,
    Behind,
}

/// `None` if they have not, or if that is explained by a pause, forwarding, groups, or a server that refuses pops.
fn cause(queue: &Queue) -> Result<Option<(Cause, u64)>, Failure> {
    let Some(age) = at_least(queue.info().oldest_ready, queue.limits.max_ready) else { return Ok(None) };
    let info = queue.info();
    let is_held = info.blocked >= info.ready;
    if queue.has(Condition::Paused) || queue.has(Condition::Letters) || info.is_forwarded() || is_held {
        return Ok(None);
    }
    if queue.writes.are_refused || queue.has(Condition::Refused) {
        return Ok(None);
    }
    let is_taken = info.last_delivery.is_some_and(|ago| ago < POLLED);
    if !is_taken && info.waiting_clients == 0 && info.inflight == 0 {
        return Ok(Some((Cause::Unserved, age)));
    }
    // The oldest message may be one that its group holds back.
    if !queue.groups()?.is_empty() {
        return Ok(None);
    }
    let is_old = |age: Option<Duration>| at_least(age, queue.limits.max_ready).is_some();
    let is_stuck = is_old(info.oldest_inflight) && (info.last_delivery.is_none() || is_old(info.last_delivery));
    Ok(Some((if is_stuck { Cause::Stuck } else { Cause::Behind }, age)))
}

/// As severe as the condition that `dqctl ls` shows.
fn severity(queue: &Queue) -> Severity {
    let waits = [Condition::Late, Condition::Unserved, Condition::Occupied].map(|condition| (condition, Level::Bad));
    match waits.iter().any(|bad| queue.row.conditions.contains(bad)) {
        true => Severity::Critical,
        false => Severity::Warning,
    }
}

/// `7 messages are ready, the oldest for 5m`.
fn ready(queue: &Queue, age: u64) -> String {
    match queue.info().ready {
        1 => format!("1 message is ready, the oldest for {}", span(age)),
        ready => format!("{ready} messages are ready, the oldest for {}", span(age)),
    }
}

/// `; 3 in flight, the oldest for 2m`.
fn held(queue: &Queue) -> String {
    let running = queue.info().oldest_inflight.map(millis);
    running
        .map_or_else(String::new, |age| format!("; {} in flight, the oldest for {}", queue.info().inflight, span(age)))
}

pub fn unserved(queue: &Queue) -> Looked {
    let Some((Cause::Unserved, age)) = cause(queue).unwrap_or(None) else { return Ok(None) };
    let last = queue.info().last_delivery.map(millis);
    let last = last.map_or("none was ever taken".to_owned(), |ago| format!("the last one was taken {} ago", span(ago)));
    let why = "no client waits, and nothing is in flight";
    let advice = match queue.writes.held_clients {
        0 => format!("start its consumers; dqctl info {} shows how many wait", queue.quoted()),
        held => format!(
            "start its consumers; if they run, look whether CLIENT PAUSE holds them back: clients that are blocked, \
             but not by a queue: {held}; a pause is ended by redis-cli CLIENT UNPAUSE"
        ),
    };
    one(severity(queue), format!("{}, and {last}", ready(queue, age)), why, advice)
}

pub fn stuck(queue: &Queue) -> Looked {
    let Some((Cause::Stuck, age)) = cause(queue).unwrap_or(None) else { return Ok(None) };
    let advice = format!(
        "dqctl consumers {} lists who holds them; take back those of one that is gone with dqctl release",
        queue.quoted()
    );
    let why = "deliveries take long, or consumers are gone or hang and keep their messages";
    one(severity(queue), format!("it is late: {}{}", ready(queue, age), held(queue)), why, advice)
}

pub fn behind(queue: &Queue) -> Looked {
    let Some((Cause::Behind, age)) = cause(queue)? else { return Ok(None) };
    let (ready, name) = (ready(queue, age), queue.quoted());
    if queue.has(Condition::Occupied) {
        let why = "consumers hold as many messages as it lets them";
        let limit = queue.info().settings.max_inflight.unwrap_or(0).saturating_mul(2);
        let advice = format!("wait, or double the limit with dqctl alter {name} --maxinflight {limit}");
        one(severity(queue), format!("{ready}: it is at its MAXINFLIGHT{}", held(queue)), why, advice)
    } else if queue.has(Condition::Limited) {
        let why = "messages arrived faster than its rate lets them be delivered";
        let (rate, period) = queue.info().settings.rate.unwrap_or_default();
        let rate = format!("{}/{}", rate.saturating_mul(2), exact(millis(period)));
        let advice = format!("wait, or double the rate with dqctl alter {name} --rate {rate}");
        one(Severity::Warning, format!("{ready}: it is at its RATE"), why, advice)
    } else {
        let advice = match queue.info().groups {
            0 => format!("add consumers; dqctl stats {name} shows how long they take"),
            _ => format!("add consumers, or look with dqctl groups {name} whether a few groups have most of it"),
        };
        let what = format!("it is late: {ready}, although there are consumers{}", held(queue));
        one(severity(queue), what, "messages arrive faster than they are completed, or did so", advice)
    }
}

/// The group that has held messages back for longest; there may be thousands. A pause of the queue explains all that
/// waits.
pub fn groups(queue: &Queue) -> Looked {
    if queue.has(Condition::Paused) || at_least(queue.info().oldest_ready, queue.limits.max_ready).is_none() {
        return Ok(None);
    }
    let age = |held: &HeldGroup| u64::try_from(now_ms().saturating_sub(held.oldest_due)).unwrap_or(0);
    let is_long = |held: &HeldGroup| {
        let limit = if matches!(held.why, Why::Paused(_)) { queue.limits.max_paused } else { queue.limits.max_ready };
        age(held) >= millis(limit)
    };
    let all = queue.groups()?.iter().filter(|held| is_long(held) || held.why == Why::Paused(None));
    let Some(first) = all.min_by_key(|held| (!is_long(held), held.oldest_due)) else { return Ok(None) };
    let severity = if is_long(first) { Severity::Warning } else { Severity::Note };
    let what = format!("its group {} holds messages back, the oldest for {}", first.group, span(age(first)));
    let advice = format!("{}; dqctl groups {} lists all groups", first.sentence(queue.name), queue.quoted());
    one(severity, what, "the messages of the group wait", advice)
}
