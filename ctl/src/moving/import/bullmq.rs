//! BullMQ, and Bull before it: job ids in `bull:NAME:wait` and `…:paused`, taken from the right, in `…:prioritized` by
//! score, in `…:delayed` and in `…:failed`.
//!
//! A job scheduler is a member of `…:repeat`, whose score is the time of its next run, and that run waits among the
//! other jobs. Its worker makes the one after it. So the pair of them becomes a schedule. What belongs to a flow stays.

use super::ids::id;
use super::jobs::{field, with_hashes, Hash, Ties};
use super::libraries::{add, attempts, each, stays, RUNS};
use super::source::{object, score_of, Element, Order, SourceValue};
use super::Parts;
use crate::cli::End;
use crate::moving::push::{NewMessage, Rule};
use crate::server::{reply, Failure};
use crate::text::shown;
use dq_client::{blocking::Client, cmd, Cmd, Resend};
use serde_json::value::RawValue;
use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What a parent has of its children.
const CHILDREN: Ties = Ties {
    suffixes: &[b":dependencies", b":processed", b":failed", b":unsuccessful"],
    why: "stays, because it is the parent of a flow",
};

/// The queue that is imported.
struct Bull {
    /// How its keys begin, such as `bull:mail:`.
    base: Vec<u8>,
    /// It has one name in ids, with the usual prefix or without it.
    name: Vec<u8>,
    /// The job schedulers whose next run was found.
    schedulers: RefCell<BTreeSet<Vec<u8>>>,
}

pub fn bullmq(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    // The names of queues have no colon, so a name with one has its prefix.
    let prefix = if source.contains(&b':') { b"".as_slice() } else { b"bull:" };
    let bare = source.strip_prefix(b"bull:").filter(|name| !name.contains(&b':')).unwrap_or(source);
    let base = [prefix, source, b":"].concat();
    let bull = Rc::new(Bull { base, name: bare.to_vec(), schedulers: RefCell::default() });
    let convert = |is_dead: bool| {
        let bull = Rc::clone(&bull);
        with_hashes(bull.base.clone(), CHILDREN, move |client, found, key, hash| {
            bull.job(client, found, key, &hash, is_dead)
        })
    };
    let mut parts = Parts::new();
    for list in ["wait", "paused"] {
        add(&mut parts, client, bull.key(list), Order::From(End::Right), convert(false))?;
    }
    add(&mut parts, client, bull.key("prioritized"), Order::Score, convert(false))?;
    add(&mut parts, client, bull.key("delayed"), Order::BullMq, convert(false))?;
    add(&mut parts, client, bull.key("failed"), Order::Score, convert(true))?;
    let (children, active) = (bull.key("waiting-children"), bull.key("active"));
    add(
        &mut parts,
        client,
        children.clone(),
        Order::Score,
        stays(children, "stays, because it is the parent of a flow"),
    )?;
    add(&mut parts, client, active.clone(), Order::From(End::Right), stays(active, RUNS))?;
    // At the end, when all runs were seen.
    let others = Rc::clone(&bull);
    let without_run = each(move |found| match others.schedulers.borrow().contains(&found.value) {
        true => Element::Foreign,
        false => {
            Element::Broken(format!("the job scheduler {} stays, because no run of it waits", shown(&found.value)))
        }
    });
    add(&mut parts, client, bull.key("repeat"), Order::Score, without_run)?;
    Ok(parts)
}

impl Bull {
    fn key(&self, rest: &str) -> Vec<u8> {
        [self.base.as_slice(), rest.as_bytes()].concat()
    }

    fn job(
        &self,
        client: &Client,
        found: SourceValue,
        key: &[u8],
        hash: &Hash,
        is_dead: bool,
    ) -> Result<Element, Failure> {
        if field(hash, "parentKey").or(field(hash, "parent")).is_some_and(|parent| !parent.is_empty()) {
            return Ok(Element::Broken(format!("{} stays, because it is a child of a flow", shown(key))));
        }
        let opts: Json = field(hash, "opts").and_then(|opts| serde_json::from_slice(opts).ok()).unwrap_or(Json::Null);
        if let (false, Some((scheduler, next))) = (is_dead, self.next_run(client, &found, hash, &opts)?) {
            self.schedulers.borrow_mut().insert(scheduler.clone());
            return Ok(self.schedule(&scheduler, next, key, hash, &opts));
        }
        let mut remove = removal(key);
        remove.extend(self.lock(client, &found, hash)?);
        let made = number(hash, "atm").or_else(|| number(hash, "attemptsMade")).unwrap_or(0);
        // A job that failed before its last attempt was refused by its code.
        let limit = opts.get("attempts").and_then(Json::as_i64).filter(|limit| *limit > 1);
        let reason = if made < limit.unwrap_or(1) { "rejected" } else { "retries" };
        let message = NewMessage {
            due: found.due,
            attempt: attempts(Some(made)),
            dead: is_dead.then(|| reason.into()),
            ..self.message(&found.value, hash, &opts)
        };
        let message = message.with("ERROR", text(hash, "failedReason"));
        Ok(Element::Message { message: Box::new(message), remove })
    }

    /// What a job and the runs of a scheduler have in common. `own` is its id there.
    fn message(&self, own: &[u8], hash: &Hash, opts: &Json) -> NewMessage {
        // As it is: parsing and writing it again could change a number or the order of keys.
        let json = |name| match field(hash, name).map(serde_json::from_slice::<&RawValue>) {
            Some(Ok(json)) => json.get().to_owned(),
            Some(Err(_)) | None => Json::from(text(hash, name)).to_string(),
        };
        let pairs = [
            ("id".to_owned(), Json::from(String::from_utf8_lossy(own)).to_string()),
            ("name".to_owned(), Json::from(text(hash, "name")).to_string()),
            ("data".to_owned(), json("data")),
            ("opts".to_owned(), json("opts")),
        ];
        // 0 and 1, the default, mean no retries. With no retries, however, the death of a worker would make the job
        // dead at once.
        let limit = opts.get("attempts").and_then(Json::as_i64).filter(|limit| *limit > 1);
        let id = id("bullmq", &[&self.name, own]);
        let message = NewMessage { id, payload: object(&pairs), ..NewMessage::default() };
        // 0 is the highest there, and then 1, 2, …
        let message = message.with("PRIORITY", Some(-number(hash, "priority").unwrap_or(0).clamp(0, 128)));
        message.with("RETRIES", limit.map(|limit| limit - 1))
    }

    /// The scheduler whose next run a job is, and when that is due. A run that has begun is followed by another one
    /// already, and is a job as any other.
    fn next_run(
        &self,
        client: &Client,
        found: &SourceValue,
        hash: &Hash,
        opts: &Json,
    ) -> Result<Option<(Vec<u8>, i64)>, Failure> {
        // Bull has it in the options alone.
        let in_options = || opts.get("repeat")?.get("key")?.as_str().map(|key| key.as_bytes().to_vec());
        let Some(scheduler) = field(hash, "rjk").map(<[u8]>::to_vec).or_else(in_options) else { return Ok(None) };
        let score = client.call(cmd("ZSCORE").arg(self.key("repeat")).arg(&scheduler), Resend::Harmless)?;
        let next = score_of(&score).map(|score| score as i64);
        let is_next = |next: &i64| found.value.ends_with(format!(":{next}").as_bytes());
        Ok(next.filter(is_next).map(|next| (scheduler, next)))
    }

    /// A scheduler and its next run.
    fn schedule(&self, scheduler: &[u8], next: i64, key: &[u8], hash: &Hash, opts: &Json) -> Element {
        let rule = match rule(opts.get("repeat").unwrap_or(&Json::Null), next) {
            Ok(rule) => rule,
            Err(why) => return Element::Broken(format!("the job scheduler {} {why}", shown(scheduler))),
        };
        let message = NewMessage { due: Some(next), ..self.message(scheduler, hash, opts) };
        let mut remove = removal(key);
        let repeat = self.key("repeat");
        remove.push(cmd("ZREM").arg(&repeat).arg(scheduler).clone());
        remove.push(cmd("DEL").arg([repeat.as_slice(), b":", scheduler].concat()).clone());
        Element::Schedule { message: Box::new(message), rule, remove }
    }

    /// The commands that end the deduplication by a job: until then, BullMQ accepts no other job with the same key.
    fn lock(&self, client: &Client, found: &SourceValue, hash: &Hash) -> Result<Option<Cmd>, Failure> {
        let Some(lock) = field(hash, "deid") else { return Ok(None) };
        let lock = [self.base.as_slice(), b"de:", lock].concat();
        let holder = client.call(cmd("GET").arg(&lock), Resend::Harmless)?;
        let is_own = reply::text(&holder).is_some_and(|holder| holder.as_bytes() == found.value);
        Ok(is_own.then(|| cmd("DEL").arg(&lock).clone()))
    }
}

fn text(hash: &Hash, name: &str) -> Option<String> {
    field(hash, name).map(|value| String::from_utf8_lossy(value).into_owned())
}

fn number(hash: &Hash, name: &str) -> Option<i64> {
    text(hash, name).and_then(|text| text.parse::<i64>().ok())
}

fn removal(key: &[u8]) -> Vec<Cmd> {
    let logs = [key, b":logs"].concat();
    vec![cmd("DEL").arg(key).clone(), cmd("DEL").arg(logs).clone()]
}

/// The rule of a scheduler whose next run is due at `next`, or why dq has no such rule.
fn rule(repeat: &Json, next: i64) -> Result<Rule, String> {
    // Bull and BullMQ write what they were given: a number may be a text.
    let whole = |name: &str| match repeat.get(name) {
        Some(Json::Number(number)) => number.as_i64(),
        Some(Json::String(text)) => text.parse().ok(),
        _ => None,
    };
    let text = |name: &str| repeat.get(name).and_then(Json::as_str);
    let mut rule: Vec<(&'static str, String)> = Vec::new();
    match (text("pattern").or(text("cron")), whole("every").filter(|every| *every > 0)) {
        (Some(pattern), _) => {
            rule.push(("CRON", without_seconds(pattern)?));
            rule.extend(text("tz").map(|zone| ("TZ", zone.to_owned())));
        }
        (None, Some(every)) => {
            rule.push(("EVERY", every.to_string()));
            rule.push(("OFFSET", next.rem_euclid(every).to_string()));
        }
        (None, None) => return Err("stays, because it has neither a pattern nor an interval".to_owned()),
    }
    if let Some(limit) = whole("limit") {
        // The next run is counted already.
        rule.push(("TIMES", (limit - whole("count").unwrap_or(1) + 1).max(1).to_string()));
    }
    match repeat.get("endDate") {
        None | Some(Json::Null) => {}
        Some(end) => {
            let instant = || end.as_str()?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
            let end = whole("endDate").or_else(instant).ok_or("stays, because its endDate is no time")?;
            rule.push(("UNTIL", end.to_string()));
        }
    }
    Ok(rule.into_iter().map(|(option, value)| (option, value.into_bytes())).collect())
}

/// A cron expression of five fields, from one that may begin with seconds.
fn without_seconds(pattern: &str) -> Result<String, String> {
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    match fields.as_slice() {
        [seconds, rest @ ..] if rest.len() == 5 => match *seconds {
            "0" | "00" => Ok(rest.join(" ")),
            _ => Err(format!("stays, because its pattern {pattern} has seconds")),
        },
        _ => Ok(pattern.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::rule;
    use serde_json::json;

    #[test]
    fn a_job_scheduler_has_the_rule_that_it_had() {
        let words = |repeat: serde_json::Value| {
            let word = |(option, value): (&str, Vec<u8>)| format!("{option} {}", String::from_utf8_lossy(&value));
            rule(&repeat, 1_795_871_326_821).map(|rule| rule.into_iter().map(word).collect::<Vec<_>>().join(" "))
        };
        for (repeat, expected) in [
            (
                json!({ "every": 60_000, "limit": 5, "count": 2, "endDate": 4_102_444_800_000_i64 }),
                "EVERY 60000 OFFSET 46821 TIMES 4 UNTIL 4102444800000",
            ),
            (
                json!({ "every": "60000", "endDate": "2100-01-01T00:00:00.000Z" }),
                "EVERY 60000 OFFSET 46821 UNTIL 4102444800000",
            ),
            (json!({ "cron": "0 4 * * *", "tz": "Asia/Tokyo" }), "CRON 0 4 * * * TZ Asia/Tokyo"),
            (json!({ "pattern": "0 0 4 * * *" }), "CRON 0 4 * * *"),
        ] {
            assert_eq!(words(repeat.clone()).as_deref(), Ok(expected), "{repeat}");
        }
        for repeat in [json!({ "pattern": "*/10 * * * * *" }), json!({}), json!({ "every": 5, "endDate": "soon" })] {
            assert!(words(repeat.clone()).is_err_and(|why| why.starts_with("stays")), "{repeat}");
        }
    }
}
