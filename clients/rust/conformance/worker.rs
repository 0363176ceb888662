//! The worker that the conformance suite drives: what each message asks for is in its payload.
#![allow(clippy::indexing_slicing, reason = "a field of JSON that is missing is null")]

#[allow(dead_code)] // The producer needs the other half.
mod bytes;

use bytes::text;
use dq_client::{Context, Event, Failure, Id, Loss, Options, Pool, Raw, Receipt, Worker};
use serde_json::{json, Value};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often a handler looks whether its message is lost.
const LOOK: Duration = Duration::from_millis(5);

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let given = Given::parse(std::env::args().skip(1))?;
    let client = Options::from_url(&given.url)?.name(&given.name).open()?;
    let mut worker = Worker::new(client).grace(given.grace).on_event(heard);
    for (queue, concurrency) in &given.queues {
        let mut pool = Pool::new(*concurrency).queue(queue).meta();
        if let Some(lease) = given.lease {
            pool = pool.lease(lease);
        }
        if let Some(limit) = given.time_limit {
            pool = pool.time_limit(limit);
        }
        worker = worker.pool(pool, handle);
    }
    let mut running = worker.start()?;
    running.stop_at_signal()?;
    while !running.is_healthy() && !running.is_stopping() {
        thread::sleep(LOOK);
    }
    if running.is_healthy() {
        say("ready", json!({}));
    }
    let stopped = running.join();
    say("stopped", json!({}));
    Ok(if stopped.forced { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The arguments.
struct Given {
    url: String,
    queues: Vec<(String, usize)>,
    lease: Option<Duration>,
    grace: Duration,
    name: String,
    time_limit: Option<Duration>,
}

impl Given {
    fn parse(words: impl Iterator<Item = String>) -> Result<Given, Box<dyn std::error::Error>> {
        let words: Vec<String> = words.collect();
        let mut given = Given {
            url: String::new(),
            queues: Vec::new(),
            lease: None,
            grace: Duration::from_secs(30),
            name: "worker".to_owned(),
            time_limit: None,
        };
        for pair in words.chunks(2) {
            let [option, value] = pair else { return Err(format!("{} needs a value", pair.concat()).into()) };
            let time = || value.parse().map(Duration::from_millis);
            match option.as_str() {
                "--url" => given.url.clone_from(value),
                "--queue" => {
                    let (name, concurrency) = value.rsplit_once('=').ok_or("--queue needs NAME=CONCURRENCY")?;
                    given.queues.push((name.to_owned(), concurrency.parse()?));
                }
                "--lease" => given.lease = Some(time()?),
                "--grace" => given.grace = time()?,
                "--name" => given.name.clone_from(value),
                "--time-limit" => given.time_limit = Some(time()?),
                _ => return Err(format!("there is no option {option}").into()),
            }
        }
        Ok(given)
    }
}

/// Writes a line.
fn say(event: &str, fields: Value) {
    let mut line = fields;
    line["event"] = json!(event);
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", bytes::escaped(&line.to_string()));
    let _ = out.flush();
}

/// Now, in Unix milliseconds.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Tells that a message is lost, once: the worker says so, or its handler sees it first.
fn say_lost(id: &Id, receipt: &Receipt, reason: Loss) {
    static SAID: Mutex<BTreeSet<Receipt>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(receipt.clone()) {
        say("lost", json!({"id": text(id.as_ref()), "reason": reason.as_str(), "at": now()}));
    }
}

/// Tells what the worker decides by itself.
fn heard(event: &Event<'_>) {
    match event {
        Event::LeaseLost { id, receipt, reason, .. } => {
            if *reason == Loss::TimeLimit {
                say("end", json!({"id": text(id.as_ref()), "how": "fail", "at": now()}));
            } else {
                say_lost(id, receipt, *reason);
            }
        }
        other => drop(writeln!(std::io::stderr(), "{other}")),
    }
}

/// Does what the payload says.
fn handle(Raw(payload): Raw, context: &Context) -> Result<Raw, Failure> {
    let id = text(context.id().as_ref());
    let headers: HashMap<String, String> = context
        .meta()
        .map(|meta| meta.headers.iter().map(|(name, value)| (text(name), text(value))).collect())
        .unwrap_or_default();
    let queue = context.queue();
    say("start", json!({"queue": queue, "id": id, "attempt": context.attempt(), "headers": headers, "at": now()}));
    let done = work(&payload, context);
    let how = match (&done, context.loss()) {
        (_, Some(Loss::TimeLimit)) => return Ok(Raw(Vec::new())),
        (_, Some(reason)) => {
            say_lost(context.id(), context.receipt(), reason);
            "lost"
        }
        (Done::Ok(_), None) => "ok",
        (Done::Fail(_), None) => "fail",
        (Done::Reject(_), None) => "reject",
        (Done::Retry(..), None) => "retry",
    };
    say("end", json!({"id": id, "how": how, "at": now()}));
    match done {
        Done::Ok(result) => Ok(Raw(result)),
        Done::Fail(text) => Err(Failure::retry(text)),
        Done::Reject(text) => Err(Failure::reject(text)),
        Done::Retry(after, text) => {
            Err(after.map_or_else(|| Failure::retry(&text), |after| Failure::retry_after(after, &text)))
        }
    }
}

/// How the work ended.
enum Done {
    Ok(Vec<u8>),
    Fail(String),
    Reject(String),
    Retry(Option<Duration>, String),
}

fn work(payload: &[u8], context: &Context) -> Done {
    let wanted: Value = match serde_json::from_slice(payload) {
        Ok(wanted) => wanted,
        Err(error) => return Done::Fail(format!("the payload is no JSON: {error}")),
    };
    let ms = |name: &str| wanted[name].as_u64().map(Duration::from_millis);
    let said = wanted["text"].as_str().unwrap_or_default().to_owned();
    match wanted["do"].as_str() {
        Some("ok") => {}
        Some("fail") if wanted["times"].as_u64().is_some_and(|times| u64::from(context.attempt()) > times) => {}
        Some("fail") => return Done::Fail(said),
        Some("reject") => return Done::Reject(said),
        Some("retry") => {
            let after = wanted["after"].as_f64();
            let after = after.map(|ms| Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX));
            return Done::Retry(after, said);
        }
        Some("exit") => std::process::exit(3),
        Some("hang") => {
            let end = Instant::now() + ms("ms").unwrap_or_default();
            while Instant::now() < end && !context.lease_lost() {
                thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
            }
        }
        Some("spin") => {
            let end = Instant::now() + ms("ms").unwrap_or_default();
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        }
        Some("result") => {
            let result = &wanted["result"];
            return Done::Ok(result.as_str().map_or_else(|| result.to_string(), str::to_owned).into_bytes());
        }
        _ => return Done::Fail(format!("unknown task {}", wanted["do"])),
    }
    Done::Ok(Vec::new())
}
