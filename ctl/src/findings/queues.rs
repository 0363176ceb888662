//! What is wrong with a queue: nobody takes its messages, nobody looks at its dead ones, or it is full.

use super::dead;
use super::finding::{About, Findings, Severity, Subject};
use super::moved::{self, Moved};
use super::waiting::Waiting;
use crate::advice::quoted;
use crate::batches::find;
use crate::cli::doctor::DoctorArgs;
use crate::condition::{moves_dead, Condition, Level, Recent};
use crate::dead::Targets;
use crate::groups::{self, Held, Why};
use crate::reply::{self, Fields};
use crate::time::{exact, now_ms, span};
use crate::trouble::Trouble;
use dq_client::{cmd, Client, Error, Resend};
use std::time::Duration;

/// The most ready messages that are read to find those that no group holds back.
const READY_MESSAGES: u64 = 100;

/// So many leases have expired if that is worth a note, and at least one of so many deliveries ended so.
const LEASES: i64 = 10;
const LEASE_SHARE: i64 = 10;

/// The most messages whose batches are looked at.
const BATCH_MESSAGES: usize = 1_000;

/// How long is too long.
pub struct Limits {
    pub ready: Duration,
    pub dead: Duration,
    paused: Duration,
    open: Duration,
}

impl Limits {
    pub fn of(args: &DoctorArgs) -> Limits {
        Limits { ready: args.max_ready, dead: args.max_dead, paused: args.max_paused, open: args.max_open }
    }
}

/// What one look at a queue does not show, so that a second one follows.
#[derive(Default)]
pub struct Again {
    /// Its messages wait for a consumer.
    pub waiting: Option<Waiting>,
    pub moved: Option<Moved>,
}

impl Again {
    pub fn is_needed(&self) -> bool {
        self.waiting.is_some() || self.moved.is_some()
    }
}

/// Looks at one queue.
pub fn check(
    client: &Client,
    name: &[u8],
    limits: &Limits,
    targets: &mut Targets,
    findings: &mut Findings,
) -> Result<Again, Error> {
    let about = &mut findings.about(Subject::Queue(name.to_vec()));
    let reply = match client.call(cmd("DQ.INFO").arg(name), Resend::Harmless) {
        Err(Error::NoPermission(_)) => {
            about.not_checked("queues", "the counts of queues", "+dq.info and the keys");
            return Ok(Again::default());
        }
        // It was deleted or replaced since it was found.
        Err(Error::WrongType(_)) => return Ok(Again::default()),
        reply => reply?,
    };
    let Ok(Some(info)) = Fields::read(reply) else { return Ok(Again::default()) };
    let mut recent = Recent::at_once(client, name, &info);
    if moves_dead(&info) {
        let moved = || Some(now_ms().saturating_sub(targets.newest_death(client, name, &info)?).max(0));
        recent.newest_death = recent.newest_death.or_else(moved);
    }
    let conditions = Condition::of(&info, recent);
    let trouble = Trouble::of(&info, &conditions);
    about.trouble = trouble;
    settings(&info, about);
    leases(&info, about);
    let has = |wanted| conditions.iter().any(|(condition, _)| *condition == wanted);
    if has(Condition::Dying) {
        let cause = if moves_dead(&info) { targets.cause(client, name, &info) } else { None };
        moved::die(client, name, &info, &cause.unwrap_or_default(), about);
    }
    let are_letters = has(Condition::Letters);
    if are_letters {
        let ready = number(&info, "ready");
        let what = format!(
            "{ready} are ready; the first ones are dead messages of other queues, which DEADFORWARD has moved here"
        );
        about.note(
            "letters",
            what,
            "nobody takes them from here",
            "look with dqctl dead QUEUE --letters --by-error; dqctl redrive QUEUE --letters sends them back",
        );
    }
    let waits = delivery(client, name, &info, limits, about)? && !are_letters;
    expiry(client, name, about)?;
    let new = conditions.contains(&(Condition::Dead, Level::Warning)).then(|| recent.dead(&info));
    dead::check(client, name, &info, new, limits, about)?;
    batches(client, name, &info, limits, about)?;
    Ok(Again {
        waiting: waits.then(|| Waiting::of(&info, trouble)),
        moved: if recent.newest_death.is_none() { Moved::of(&info, trouble) } else { None },
    })
}

pub fn number(info: &Fields, name: &str) -> i64 {
    info.int(name).unwrap_or(0)
}

/// Deliveries without an ack or a nack. Each one counts a retry, so that messages die of them in the end.
fn leases(info: &Fields, about: &mut About) {
    let (expired, delivered) = (number(info, "lease-expired"), number(info, "delivered"));
    if expired < LEASES || expired < delivered / LEASE_SHARE {
        return;
    }
    let what = format!(
        "since it was created, {expired} of {delivered} deliveries ended because their lease expired or they were released"
    );
    let why = "unless somebody released them, consumers died, hung, or took longer than the lease; their messages are delivered again";
    let lease = exact(u64::try_from(doubled(info, "lease")).unwrap_or(0));
    let advice = format!(
        "see with dqctl info QUEUE whether lease-expired still grows; if it does, compare dqctl stats QUEUE with the lease, \
         and extend leases, or double the lease with dqctl alter QUEUE --lease {lease}"
    );
    about.note("leases", what, why, &advice);
}

/// The AOF does not keep their number, so there may have been more.
fn refusals(count: i64) -> String {
    if count == 1 {
        "at least 1 push was refused".to_owned()
    } else {
        format!("at least {count} pushes were refused")
    }
}

/// How a full queue gets room. Consumers do not take messages that are not due yet, or that are forwarded.
fn room(info: &Fields) -> String {
    let first = if number(info, "delayed") > number(info, "ready") + number(info, "inflight") {
        "as most of its messages are delayed, consumers do not help: make some due with dqctl promote QUEUE -n 100, cancel some"
    } else if info.int("forward-failing-since").is_some() {
        "let it forward its messages again"
    } else {
        "add consumers"
    };
    format!("{first}, or {}", longer(info))
}

/// How it gets a higher limit.
fn longer(info: &Fields) -> String {
    format!("double the limit with dqctl alter QUEUE --maxlen {}", doubled(info, "maxlen"))
}

/// A limit that is worth trying if this one is too low.
pub fn doubled(info: &Fields, name: &str) -> i64 {
    number(info, name).saturating_mul(2)
}

/// The same of a rate: `200/1m`.
pub fn doubled_rate(info: &Fields, name: &str) -> String {
    let period = u64::try_from(number(info, &format!("{name}-period"))).unwrap_or(0);
    format!("{}/{}", doubled(info, name), exact(period))
}

/// How long the oldest ready message has been due, in ms.
pub fn age(info: &Fields) -> Option<u64> {
    info.int("oldest-ready").and_then(|age| u64::try_from(age).ok())
}

fn settings(info: &Fields, about: &mut About) {
    let held = number(info, "delayed") + number(info, "ready") + number(info, "inflight");
    let (limit, refused) = (number(info, "maxlen"), number(info, "rejected-full"));
    if limit > 0 && held >= limit {
        let refused = if refused > 0 { format!(", and {}", refusals(refused)) } else { String::new() };
        let what = format!("it is full: {held} of {limit} messages{refused}");
        let why = "producers get the error QUEUEFULL, and lose the message if they do not keep it";
        about.critical("full", what, why, &room(info));
    } else if limit > 0 && held / 9 >= limit / 10 {
        let what = format!("it is nearly full: {held} of {limit} messages");
        about.warning("full", what, "pushes are refused when it is full", &room(info));
    } else if refused > 0 {
        let what = format!("{} since it was created, because it was full", refusals(refused));
        let why = "a producer that does not push again has lost them";
        // Somebody may have removed the limit since.
        let raise = if limit > 0 { format!(", or {}", longer(info)) } else { String::new() };
        about.note("refused", what, why, &format!("let producers try again{raise}"));
    }
    if number(info, "closed") == 1 {
        let why = "producers get the error QUEUECLOSED, and lose the message if they do not keep it";
        let advice = "when it has been drained, open it with dqctl resume QUEUE in";
        match info.int("closed-until") {
            Some(until) => {
                let left = span(u64::try_from(until.saturating_sub(now_ms())).unwrap_or(0));
                about.note("closed", format!("it is closed for another {left}"), why, advice);
            }
            None => about.warning("closed", "it is closed until it is resumed", why, advice),
        }
    }
    let (dead, kept) = (number(info, "dead"), number(info, "deadlen"));
    if kept > 0 && dead >= kept {
        let what = format!("it keeps {kept} dead messages, and has as many");
        let why = "each message that dies drops the oldest dead one";
        about.warning(
            "dead-full",
            what,
            why,
            &format!(
                "redrive or cancel some, or keep more with dqctl alter QUEUE --deadlen {}; look with dqctl dead QUEUE \
                 --by-error",
                doubled(info, "deadlen")
            ),
        );
    }
    for (name, what, why) in [
        ("forward", "forwarding to", "its messages wait until it works again"),
        ("deadforward", "forwarding dead messages to", "they stay dead in the queue until it works again"),
    ] {
        if let Some(since) = info.int(&format!("{name}-failing-since")) {
            let length = span(u64::try_from(now_ms().saturating_sub(since)).unwrap_or(0));
            let (target, error) = (info.text(name), info.text(&format!("{name}-error")));
            // A restarted server counts from the beginning.
            let what = format!("{what} {target} has failed for at least {length}: {error}");
            let advice = format!("repair the target, or forward no more with dqctl alter QUEUE --{name} NONE");
            about.critical(name, what, why, &advice);
        }
    }
}

/// Whether ready messages are taken. Returns true if that must be checked again after a while.
fn delivery(client: &Client, name: &[u8], info: &Fields, limits: &Limits, about: &mut About) -> Result<bool, Error> {
    let age = age(info);
    if number(info, "paused") == 1 {
        let until = match info.int("paused-until") {
            Some(_) => "for a time",
            None => "until it is resumed",
        };
        let is_long = age.is_some_and(|age| u128::from(age) >= limits.paused.as_millis());
        if let (Some(age), true) = (age, is_long) {
            let what = format!("it is paused {until}, and its oldest message has been due for {}", span(age));
            about.warning("paused", what, "nothing is delivered", "resume it with dqctl resume QUEUE");
        } else if info.int("paused-until").is_none() {
            let what = "it is paused until it is resumed";
            about.note("paused", what, "nothing is delivered", "resume it with dqctl resume QUEUE");
        }
        return Ok(false);
    }
    let is_forwarded = !matches!(info.text("forward").as_str(), "" | "NONE");
    let is_old = |age: u64| u128::from(age) >= limits.ready.as_millis();
    if is_forwarded || !age.is_some_and(is_old) {
        return Ok(false);
    }
    if number(info, "blocked") == 0 {
        return Ok(true);
    }
    let Some(held) = held_by_groups(client, name, info, limits, about)? else { return Ok(false) };
    if held.is_empty() || number(info, "blocked") >= number(info, "ready") {
        return Ok(held.is_empty());
    }
    // The oldest message may be one that its group holds back, so the others are looked at.
    let command = cmd("DQ.PEEK").arg(name).arg("ready").arg("COUNT").arg(READY_MESSAGES).clone();
    let Ok(reply) = client.call(&command, Resend::Harmless) else { return Ok(false) };
    let messages = reply::list(reply).unwrap_or_default().into_iter();
    let free = messages.filter_map(|message| Fields::read(message).ok().flatten()).filter(|message| {
        let group = message.text("group");
        !held.iter().any(|held| held.group == group)
    });
    let due = free.filter_map(|message| message.int("due")).min();
    Ok(due.is_some_and(|due| is_old(u64::try_from(now_ms().saturating_sub(due)).unwrap_or(0))))
}

/// Reports the groups that have held messages back for long. Returns all that hold some back, or `None` if they may not be
/// read.
fn held_by_groups(
    client: &Client,
    name: &[u8],
    info: &Fields,
    limits: &Limits,
    about: &mut About,
) -> Result<Option<Vec<Held>>, Error> {
    if let Err(Error::NoPermission(_)) = client.call(cmd("DQ.GROUPS").arg(name).arg(0), Resend::Harmless) {
        about.not_checked("groups", "groups that hold messages back", "+dq.groups");
        return Ok(None);
    }
    let held = groups::held(client, name, info).map_err(|failure| Error::Server(failure.to_string()))?;
    let mut reported: Vec<&Held> = Vec::new();
    for one in &held {
        // One finding for each cause: there may be thousands of groups.
        let is_known = reported.iter().any(|known| known.is_like(one));
        let age = u64::try_from(now_ms().saturating_sub(one.oldest_due)).unwrap_or(0);
        let longest = if matches!(one.why, Why::Paused(_)) { limits.paused } else { limits.ready };
        let is_long = u128::from(age) >= longest.as_millis();
        if is_known || !(is_long || matches!(one.why, Why::Paused(None))) {
            continue;
        }
        let (group, word) = (&one.group, quoted(&one.group));
        let same = held.iter().filter(|other| other.is_like(one)).count();
        let more = if same > 1 { format!(" (and {} more)", same - 1) } else { String::new() };
        let waits = format!("and its oldest message has been due for {}", span(age));
        match one.why {
            Why::Paused(until) => {
                let until = until.map_or("until it is resumed", |_| "for a time");
                let what = format!("its group {group}{more} is paused {until}, {waits}");
                let advice =
                    format!("resume it with dqctl resume QUEUE --group {word}; dqctl groups QUEUE lists all of them");
                let severity = if is_long { Severity::Warning } else { Severity::Note };
                about.add(severity, "group-paused", what, "nothing of it is delivered", &advice);
            }
            Why::Rate(_) => {
                let what = format!("its group {group}{more} is at its rate, {waits}");
                let why = "its messages arrive faster than GROUPRATE lets them through";
                about.warning(
                    "group-rate",
                    what,
                    why,
                    &format!(
                        "push less, or double the rate with dqctl alter QUEUE --grouprate {}",
                        doubled_rate(info, "grouprate")
                    ),
                );
            }
            Why::Limit => {
                let what = format!("its group {group}{more} is at its limit, {waits}");
                let why = "as many of its messages as GROUPINFLIGHT allows are in flight or wait for a retry";
                let advice = format!(
                    "look with dqctl peek QUEUE --group {word}; double the limit with dqctl alter QUEUE --groupinflight {}",
                    doubled(info, "groupinflight")
                );
                about.warning("group-limit", what, why, &advice);
            }
        }
        reported.push(one);
    }
    Ok(Some(held))
}

/// A key with a time to live takes all its messages along.
fn expiry(client: &Client, name: &[u8], about: &mut About) -> Result<(), Error> {
    match client.call(cmd("PTTL").arg(name), Resend::Harmless) {
        Ok(reply) => {
            if let Some(left) = reply::int(&reply).and_then(|ms| u64::try_from(ms).ok()) {
                let what = format!("its key expires in {}", span(left));
                let why = "the queue is deleted then, with all its messages";
                about.critical(
                    "expires",
                    what,
                    why,
                    "what limits the time of messages is their TTL; keep the key with redis-cli PERSIST QUEUE",
                );
            }
            Ok(())
        }
        Err(Error::NoPermission(_)) => {
            about.not_checked("expires", "whether keys of queues expire", "+pttl");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Batches of which nobody has said what follows, as far as the first messages belong to them.
fn batches(client: &Client, name: &[u8], info: &Fields, limits: &Limits, about: &mut About) -> Result<(), Error> {
    if number(info, "batches") == 0 {
        return Ok(());
    }
    for command in [cmd("DQ.SCAN").arg(name).arg(0).arg("COUNT").arg(1), cmd("DQ.BATCHINFO").arg(name).arg("-")] {
        match client.call(command, Resend::Harmless) {
            Err(Error::NoPermission(_)) => {
                about.not_checked("batch", "batches", "+dq.scan and +dq.batchinfo");
                return Ok(());
            }
            reply => drop(reply?),
        }
    }
    let found = find(client, name, BATCH_MESSAGES).map_err(|failure| Error::Server(failure.to_string()))?;
    let Some(found) = found else { return Ok(()) };
    if found.empty > 0 {
        let have = if found.empty == 1 { "has" } else { "have" };
        let what = format!("{} of its open batches {have} no message left", found.empty);
        let why = "nothing follows a batch until it is closed; only who began it knows its name";
        about.note(
            "batch",
            what,
            why,
            "let who began it close it (--then) or remove it (--cancel); dqctl batch QUEUE lists the others",
        );
    }
    for (batch, fields) in found.batches {
        let open = now_ms().saturating_sub(number(&fields, "created"));
        let open = u64::try_from(open).unwrap_or(0);
        if number(&fields, "closed") == 1 || u128::from(open) < limits.open.as_millis() {
            continue;
        }
        let (batch, left) = (String::from_utf8_lossy(&batch).into_owned(), number(&fields, "left"));
        let what = format!("its batch {batch} has been open for {}, and {left} of its messages are left", span(open));
        let word = quoted(&batch);
        let advice = format!("say what follows (--then) or remove it (--cancel); look with dqctl batch QUEUE {word}");
        about.warning("batch", what, "nothing follows when they have ended", &advice);
    }
    Ok(())
}
