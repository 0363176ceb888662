//! What is wrong with a queue: a table of checks, most of which need nothing but its `DQ.INFO`.

use super::delivery;
use super::finding::{Findings, Found, Name, Severity, Subject};
use super::queue::{nothing, one, Looked, Queue};
use crate::board::batches::find;
use crate::board::condition::{moves_dead, Condition, Level};
use crate::board::dead::{frequent_cause, target, target_in_words};
use crate::board::trouble::Trouble;
use crate::cli::doctor::DoctorArgs;
use crate::server::advice::quoted;
use crate::server::reply::{self, Fields};
use crate::text::name::shown;
use crate::text::time::{exact, millis, now_ms, span};
use dq_client::{cmd, Client, Error, Resend};
use std::time::Duration;
use Severity::{Critical, Note, Warning};

/// A check of queues.
struct Check {
    name: Name,
    look: fn(&Queue) -> Looked,
    /// The name of what is not checked if a right is missing, what that is, and the right.
    needs: (&'static str, &'static str, &'static str),
}

const fn row(check: &'static str, kind: &'static str, look: fn(&Queue) -> Looked) -> Check {
    Check { name: Name { check, kind: Some(kind) }, look, needs: (check, kind, "+dq.info") }
}

impl Check {
    const fn needs(self, check: &'static str, what: &'static str, right: &'static str) -> Check {
        Check { needs: (check, what, right), ..self }
    }
}

const GROUPS: &str = "groups that hold messages back";

const CHECKS: [Check; 15] = [
    row("full", "they are full, or nearly", full),
    row("closed", "they are closed", closed),
    row("forward", "forwarding fails", |queue| failing(queue, "forward", "its messages wait until it works again")),
    row("deadforward", "forwarding of dead messages fails", |queue| {
        failing(queue, "deadforward", "they stay dead in the queue until it works again")
    }),
    row("expires", "their keys expire", expires).needs("expires", "whether keys of queues expire", "+pttl"),
    row("paused", "they are paused", paused),
    row("no-consumer", "messages are ready and nobody takes them", delivery::unserved),
    row("stuck", "consumers hold messages for long", delivery::stuck).needs("stuck", "who holds messages", "+dq.peek"),
    row("behind", "messages wait for long, although there are consumers", delivery::behind).needs(
        "groups",
        GROUPS,
        "+dq.groups",
    ),
    row("group", "groups hold messages back", delivery::groups).needs("groups", GROUPS, "+dq.groups"),
    row("dying", "messages have died in the last 10 minutes", dying),
    row("dead", "they have dead messages", dead),
    row("dead-full", "they have as many dead messages as they keep", dead_full),
    row("letters", "nobody takes the dead messages that are moved to them", letters),
    row("batch", "batches are open for long", batch).needs("batch", "batches", "+dq.scan and +dq.batchinfo"),
];

/// Looks at one queue.
pub fn check(client: &Client, name: &[u8], limits: &DoctorArgs, findings: &mut Findings) -> Result<(), Error> {
    let subject = Subject::Queue(name.to_vec());
    let info = match client.call(cmd("DQ.INFO").arg(name), Resend::Harmless) {
        Err(Error::NoPermission(_)) => {
            findings.not_checked(&subject, "queues", "the counts of queues", "+dq.info and the keys");
            return Ok(());
        }
        // It was deleted or replaced since it was found.
        Err(Error::WrongType(_)) => return Ok(()),
        reply => Fields::read(reply?),
    };
    let Ok(Some(info)) = info else { return Ok(()) };
    let conditions = Condition::read(client, name, &info);
    let trouble = Trouble::of(&info, &conditions);
    let queue = Queue::new(client, name, info, conditions, limits);
    for Check { name, needs, look } in CHECKS {
        match look(&queue) {
            Ok(found) => found.into_iter().for_each(|found| findings.add(&subject, name, found, trouble)),
            Err(Error::NoPermission(_)) => findings.not_checked(&subject, needs.0, needs.1, needs.2),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn full(queue: &Queue) -> Looked {
    let (live, limit, rejected) = (queue.live(), queue.number("maxlen"), queue.number("rejected-full"));
    // Consumers do not take messages while the queue is paused, nor those that are not due yet or are forwarded.
    let room = if queue.has(Condition::Paused) {
        "it fills because it is paused: resume it with dqctl resume QUEUE"
    } else if queue.number("delayed") > queue.number("ready") + queue.number("inflight") {
        "most of its messages are delayed: make some due with dqctl promote QUEUE -n 100, cancel some"
    } else if queue.info.int("forward-failing-since").is_some() {
        "let it forward its messages again"
    } else {
        "add consumers"
    };
    let advice = format!("{room}, or double the limit with dqctl alter QUEUE --maxlen {}", queue.doubled("maxlen"));
    if limit > 0 && live >= limit {
        // The AOF does not keep their number.
        let refused = if rejected > 0 { format!(", and at least {rejected} were refused") } else { String::new() };
        let why = "producers get the error QUEUEFULL, and lose the message if they do not keep it";
        one(Critical, format!("it is full: {live} of {limit} messages{refused}"), why, advice)
    } else if limit > 0 && live / 9 >= limit / 10 {
        let what = format!("it is nearly full: {live} of {limit} messages");
        one(Warning, what, "pushes are refused when it is full", advice)
    } else {
        nothing()
    }
}

fn closed(queue: &Queue) -> Looked {
    if queue.number("closed") == 0 {
        return nothing();
    }
    let (severity, what) = match queue.info.int("closed-until") {
        Some(_) => (Note, "it is closed for a time"),
        None => (Warning, "it is closed until it is resumed"),
    };
    let why = "producers get the error QUEUECLOSED, and lose the message if they do not keep it";
    one(severity, what, why, "when it has been drained, open it with dqctl resume QUEUE in")
}

fn failing(queue: &Queue, name: &str, why: &str) -> Looked {
    let Some(since) = queue.info.int(&format!("{name}-failing-since")) else { return nothing() };
    let length = span(u64::try_from(now_ms().saturating_sub(since)).unwrap_or(0));
    let (target, error) = (queue.info.text(name), queue.info.text(&format!("{name}-error")));
    // A restarted server counts from the beginning.
    let what = format!("its {} to {target} has failed for at least {length}: {error}", name.to_uppercase());
    let advice = format!("repair the target, or forward no more with dqctl alter QUEUE --{name} NONE");
    one(Critical, what, why, advice)
}

/// A key with a time to live takes all its messages along.
fn expires(queue: &Queue) -> Looked {
    let reply = queue.client.call(cmd("PTTL").arg(queue.name), Resend::Harmless)?;
    let Some(left) = reply::int(&reply).and_then(|ms| u64::try_from(ms).ok()) else { return nothing() };
    let advice = "what limits the time of messages is their TTL; keep the key with redis-cli PERSIST QUEUE";
    let what = format!("its key expires in {}", span(left));
    one(Critical, what, "the queue is deleted then, with all its messages", advice)
}

fn paused(queue: &Queue) -> Looked {
    let is_endless = queue.info.int("paused-until").is_none();
    let until = if is_endless { "until it is resumed" } else { "for a time" };
    let (why, advice) = ("nothing is delivered", "resume it with dqctl resume QUEUE");
    match queue.since("oldest-ready", queue.limits.max_paused) {
        _ if !queue.has(Condition::Paused) => nothing(),
        Some(age) => {
            let what = format!("it is paused {until}, and its oldest message has been due for {}", span(age));
            one(Warning, what, why, advice)
        }
        None if is_endless => one(Note, format!("it is paused {until}"), why, advice),
        None => nothing(),
    }
}

/// Messages die: of what most of them did, or where they are.
fn dying(queue: &Queue) -> Looked {
    if !queue.has(Condition::Dying) {
        return nothing();
    }
    let lately = "messages have died in the last 10 minutes";
    let (what, advice) = match target(&queue.info).filter(|_| moves_dead(&queue.info)) {
        None => {
            let cause = frequent_cause(queue.client, queue.name, &queue.info);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let what = format!("{lately}{cause}; it has {} dead", queue.number("dead"));
            (what, "look with dqctl dead QUEUE --by-error".to_owned())
        }
        Some((kind, name)) => {
            let name = quoted(&shown(name));
            let advice = match kind {
                "QUEUE" => format!("look with dqctl dead {name} --letters --by-error"),
                "STREAM" => format!("look with redis-cli XREVRANGE {name} + - COUNT 10"),
                _ => format!("look with redis-cli LRANGE {name} 0 9"),
            };
            (format!("{lately}, and are moved to {}", target_in_words(&queue.info).unwrap_or_default()), advice)
        }
    };
    one(Warning, what, "they are not delivered again", advice)
}

/// Dead messages at which nobody looks: those of the last day, and those that are old.
fn dead(queue: &Queue) -> Looked {
    let (dead, newest) = (queue.number("dead"), queue.since("newest-dead", Duration::ZERO).map_or(String::new(), span));
    if let Some(oldest) = queue.since("oldest-dead", queue.limits.max_dead) {
        let what = format!("it has {dead} dead, the newest {newest} ago, the oldest for {}", span(oldest));
        let advice = format!(
            "redrive or cancel them, or drop old ones with dqctl alter QUEUE --deadttl {}; look with dqctl dead QUEUE --by-error",
            exact(millis(queue.limits.max_dead))
        );
        one(Warning, what, "nobody looks at them, and they take memory", advice)
    } else if queue.conditions.contains(&(Condition::Dead, Level::Warning)) {
        let advice = "redrive or cancel them; look with dqctl dead QUEUE --by-error";
        one(Warning, format!("it has {dead} dead, the newest {newest} ago"), "they are not delivered again", advice)
    } else {
        nothing()
    }
}

fn dead_full(queue: &Queue) -> Looked {
    let kept = queue.number("deadlen");
    if kept <= 0 || queue.number("dead") < kept {
        return nothing();
    }
    let advice = format!(
        "redrive or cancel some, or keep more with dqctl alter QUEUE --deadlen {}; look with dqctl dead QUEUE --by-error",
        queue.doubled("deadlen")
    );
    let what = format!("it keeps {kept} dead messages, and has as many");
    one(Warning, what, "each message that dies drops the oldest dead one", advice)
}

fn letters(queue: &Queue) -> Looked {
    if !queue.has(Condition::Letters) {
        return nothing();
    }
    let ready = queue.number("ready");
    let what = format!(
        "{ready} are ready; the first ones are dead messages of other queues, which DEADFORWARD has moved here"
    );
    let advice = "look with dqctl dead QUEUE --letters --by-error; dqctl redrive QUEUE --letters sends them back";
    one(Note, what, "nobody takes them from here", advice)
}

/// The most messages whose batches are looked at.
const BATCH_MESSAGES: usize = 1_000;

/// Batches of which nobody has said what follows, as far as the first messages belong to them.
fn batch(queue: &Queue) -> Looked {
    if queue.number("batches") == 0 {
        return nothing();
    }
    for command in [cmd("DQ.SCAN").arg(queue.name).arg(0), cmd("DQ.BATCHINFO").arg(queue.name).arg("-")] {
        queue.client.call(command, Resend::Harmless)?;
    }
    let found = find(queue.client, queue.name, BATCH_MESSAGES);
    let found = found.map_err(|failure| Error::Server(failure.to_string()))?;
    let open = |(name, fields): (Vec<u8>, Fields)| {
        let open = u64::try_from(now_ms().saturating_sub(fields.int("created")?)).unwrap_or(0);
        if fields.int("closed") == Some(1) || open < millis(queue.limits.max_open) {
            return None;
        }
        let (name, left) = (String::from_utf8_lossy(&name).into_owned(), fields.int("left").unwrap_or(0));
        let what = format!("its batch {name} has been open for {}, and {left} of its messages are left", span(open));
        let name = quoted(&name);
        let advice = format!(
            "say what follows (--then), or remove it with dqctl batch QUEUE {name} --cancel; look with dqctl batch QUEUE {name}"
        );
        Some(Found::new(Warning, what, "nothing follows when they have ended", advice))
    };
    Ok(found.map_or_else(Vec::new, |found| found.into_iter().filter_map(open).collect()))
}
