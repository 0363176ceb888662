//! The checks of a queue, in a table. Most of them need only its `DQ.INFO`.

use super::delivery;
use super::finding::{Diagnosis, Findings, Severity, Subject};
use super::looked::{at_least, one, Looked, Queue};
use crate::board::{frequent_cause, target, target_in_words, Condition, Holding, Level, Status};
use crate::server::{quoted, reply, Failure};
use crate::text::{exact, millis, now_ms, shown, span};
use dq_client::{cmd, Resend};
use Severity::{Critical, Note, Warning};

/// A check of queues: its name, the right that it needs besides those that all need, and what it looks at.
type Check = (&'static str, &'static str, fn(&Queue) -> Looked);

const CHECKS: [Check; 13] = [
    ("full", "", full),
    ("closed", "", closed),
    ("forward", "", |queue| failing(queue, "forward", "its messages wait until it works again")),
    ("deadforward", "", |queue| failing(queue, "deadforward", "they stay dead in the queue until it works again")),
    ("expires", "+pttl", expires),
    ("paused", "", paused),
    ("no-consumer", "", delivery::unserved),
    ("stuck", "+dq.groups", delivery::stuck),
    ("behind", "+dq.groups", delivery::behind),
    ("group", "+dq.groups", delivery::groups),
    ("dying", "", dying),
    ("dead", "", dead),
    ("dead-full", "", dead_full),
];

/// Looks at one queue.
pub fn check(queue: &Queue, findings: &mut Findings) -> Result<(), Failure> {
    let subject = Subject::Queue(queue.name.to_vec());
    if queue.row.status == Status::Denied {
        findings.not_checked(&subject, "queues", "+dq.info, or the keys");
        return Ok(());
    }
    for (check, right, look) in CHECKS {
        match look(queue) {
            Ok(found) => found.into_iter().for_each(|found| findings.add(&subject, check, found, queue.row.trouble)),
            Err(failure) if failure.is_denied() => findings.not_checked(&subject, check, right),
            Err(failure) => return Err(failure),
        }
    }
    if let Some(partial) = queue.holding.get().and_then(Holding::partial) {
        let advice = format!("dqctl groups {} lists all groups", queue.quoted());
        let found = Diagnosis::new(Severity::NotChecked, "the other groups", &partial, advice);
        findings.add(&subject, "group", found, queue.row.trouble);
    }
    Ok(())
}

fn full(queue: &Queue) -> Looked {
    let info = queue.info();
    let live = info.delayed + info.ready + info.inflight;
    let (limit, rejected) = (info.settings.max_len.unwrap_or(0), info.totals.rejected_full);
    let room = "add consumers, resume it, or let it forward again: whatever keeps its messages";
    let (name, limit_advised) = (queue.quoted(), limit.saturating_mul(2));
    let advice = format!("{room}; or double the limit with dqctl alter {name} --maxlen {limit_advised}");
    if limit > 0 && live >= limit {
        // The AOF does not keep their number.
        let refused = if rejected > 0 { format!(", and at least {rejected} were refused") } else { String::new() };
        let why = "producers get the error QUEUEFULL, and lose the message if they do not keep it";
        one(Critical, format!("it is full: {live} of {limit} messages{refused}"), why, advice)
    } else if limit > 0 && live / 9 >= limit / 10 {
        let what = format!("it is nearly full: {live} of {limit} messages");
        one(Warning, what, "pushes are refused when it is full", advice)
    } else {
        Ok(None)
    }
}

fn closed(queue: &Queue) -> Looked {
    if !queue.info().closed {
        return Ok(None);
    }
    let (severity, what) = match queue.info().closed_until {
        Some(_) => (Note, "it is closed for a time"),
        None => (Warning, "it is closed until it is resumed"),
    };
    let why = "producers get the error QUEUECLOSED, and lose the message if they do not keep it";
    let advice = format!("when it has been drained, open it with dqctl resume {} in", queue.quoted());
    one(severity, what, why, advice)
}

fn failing(queue: &Queue, name: &str, why: &str) -> Looked {
    let Some(since) = queue.info().fields.int(&format!("{name}-failing-since")) else { return Ok(None) };
    let length = span(u64::try_from(now_ms().saturating_sub(since)).unwrap_or(0));
    let (target, error) = (queue.info().fields.text(name), queue.info().fields.text(&format!("{name}-error")));
    // A restarted server counts from the beginning.
    let what = format!("its {} to {target} has failed for at least {length}: {error}", name.to_uppercase());
    let advice = format!("repair the target, or forward no more with dqctl alter {} --{name} NONE", queue.quoted());
    one(Critical, what, why, advice)
}

/// A key with a time to live, whose expiry deletes all messages of the queue.
fn expires(queue: &Queue) -> Looked {
    let reply = queue.client.call(cmd("PTTL").arg(queue.name), Resend::Harmless)?;
    let Some(left) = reply::int(&reply).and_then(|ms| u64::try_from(ms).ok()) else { return Ok(None) };
    let name = queue.quoted();
    let advice = format!("what limits the time of messages is their TTL; keep the key with redis-cli PERSIST {name}");
    let what = format!("its key expires in {}", span(left));
    one(Critical, what, "the queue is deleted then, with all its messages", advice)
}

fn paused(queue: &Queue) -> Looked {
    let is_endless = queue.info().paused_until.is_none();
    let until = if is_endless { "until it is resumed" } else { "for a time" };
    let (why, advice) = ("nothing is delivered", format!("resume it with dqctl resume {}", queue.quoted()));
    match at_least(queue.info().oldest_ready, queue.limits.max_paused) {
        _ if !queue.has(Condition::Paused) => Ok(None),
        Some(age) => {
            let what = format!("it is paused {until}, and its oldest message has been due for {}", span(age));
            one(Warning, what, why, advice)
        }
        None if is_endless => one(Note, format!("it is paused {until}"), why, advice),
        None => Ok(None),
    }
}

/// Recent deaths: their most frequent cause, or the place to which the dead are moved.
fn dying(queue: &Queue) -> Looked {
    if !queue.has(Condition::Dying) {
        return Ok(None);
    }
    let lately = "messages have died in the last 10 minutes";
    let (what, advice) = match target(queue.info()).filter(|_| queue.info().moves_dead()) {
        None => {
            let cause = frequent_cause(queue.client, queue.name, queue.info());
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let what = format!("{lately}{cause}; it has {} dead", queue.info().dead);
            (what, format!("look with dqctl dead {} --by-error", queue.quoted()))
        }
        Some((kind, name)) => {
            let name = quoted(&shown(name));
            let advice = match kind {
                "QUEUE" => format!("look with dqctl dead {name} --letters --by-error"),
                _ => format!("look there: {name}"),
            };
            (format!("{lately}, and are moved to {}", target_in_words(queue.info()).unwrap_or_default()), advice)
        }
    };
    one(Warning, what, "they are not delivered again", advice)
}

/// Neglected dead messages: those of the last day, and old ones.
fn dead(queue: &Queue) -> Looked {
    let (info, name) = (queue.info(), queue.quoted());
    let dead = info.dead;
    let newest = info.newest_dead.map_or(String::new(), |ago| span(millis(ago)));
    if let Some(oldest) = at_least(info.oldest_dead, queue.limits.max_dead) {
        let what = format!("it has {dead} dead, the newest {newest} ago, the oldest for {}", span(oldest));
        let advice = format!(
            "redrive or cancel them, or drop old ones with dqctl alter {name} --deadttl {}; look with dqctl dead \
             {name} --by-error",
            exact(millis(queue.limits.max_dead))
        );
        one(Warning, what, "nobody looks at them, and they take memory", advice)
    } else if queue.row.conditions.contains(&(Condition::Dead, Level::Warning)) {
        let advice = format!("redrive or cancel them; look with dqctl dead {name} --by-error");
        one(Warning, format!("it has {dead} dead, the newest {newest} ago"), "they are not delivered again", advice)
    } else {
        Ok(None)
    }
}

fn dead_full(queue: &Queue) -> Looked {
    let limit = queue.info().settings.dead_len.and_then(|limit| u64::try_from(limit).ok()).unwrap_or(0);
    if limit == 0 || queue.info().dead < limit {
        return Ok(None);
    }
    let advice = format!(
        "redrive or cancel some, or keep more with dqctl alter {name} --deadlen {}; look with dqctl dead {name} \
         --by-error",
        limit.saturating_mul(2),
        name = queue.quoted()
    );
    let what = format!("it keeps {limit} dead messages, and has as many");
    one(Warning, what, "each message that dies drops the oldest dead one", advice)
}
