//! The worker that the conformance suite drives: what each message asks for is in its payload.
//!
//! `DQ_HANDLERS` is `async` (the default), `plain` for functions in a worker that is asynchronous, or `blocking`.

#[allow(dead_code)] // The producer needs the other half.
mod bytes;

use bytes::text;
use dq_client::both::Running;
use dq_client::{
    blocking, Client, Context, Event, Failure, Loss, MessageId, Mode, Options, Pool, Raw, Receipt, Stopped, Worker,
};
use serde_json::{json, Value};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often a function looks whether its message is lost.
const LOOK: Duration = Duration::from_millis(5);

fn main() -> Result<Stopped, Box<dyn std::error::Error>> {
    let given = Given::parse(std::env::args().skip(1))?;
    let options = Options::from_url(&given.url)?.name(&given.name);
    let handlers = std::env::var("DQ_HANDLERS").unwrap_or_else(|_| "async".to_owned());
    let stopped = if handlers == "blocking" {
        let mut worker = blocking::Worker::new(blocking::Client::with(options)?).grace(given.grace).on_event(heard);
        for pool in given.pools() {
            worker = worker.pool(pool, handle_in_thread);
        }
        let running = until_ready(worker.start()?)?;
        running.join()
    } else {
        let mut worker = Worker::new(Client::with(options)?).grace(given.grace).on_event(heard);
        for pool in given.pools() {
            worker = match handlers.as_str() {
                "plain" => worker.pool_blocking(pool, handle_in_thread),
                _ => worker.pool(pool, handle),
            };
        }
        // One thread for all handlers, so that one that spins blocks the others.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let stopped =
            runtime.block_on(async { Ok::<_, dq_client::Error>(until_ready(worker.start()?)?.join().await) })?;
        // It may still spin.
        runtime.shutdown_background();
        stopped
    };
    say("stopped", json!({}));
    Ok(stopped)
}

/// Says that the worker consumes, as soon as it does.
fn until_ready<M: Mode>(mut running: Running<M>) -> Result<Running<M>, dq_client::Error> {
    running.stop_at_signal()?;
    while !running.is_healthy() && !running.is_stopping() {
        thread::sleep(LOOK);
    }
    if running.is_healthy() {
        say("ready", json!({}));
    }
    Ok(running)
}

/// The arguments.
struct Given {
    url: String,
    pools: Vec<Pool>,
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
            pools: Vec::new(),
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
                    let pool = match value.rsplit_once('=') {
                        Some((name, concurrency)) => Pool::new(concurrency.parse()?).queue(name),
                        None => Pool::default().queue(value),
                    };
                    given.pools.push(pool.meta());
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

    /// The pools, with what all of them have.
    fn pools(&self) -> Vec<Pool> {
        let with = |pool: &Pool| {
            let pool = self.lease.iter().fold(pool.clone(), |pool, lease| pool.lease(*lease));
            self.time_limit.iter().fold(pool, |pool, limit| pool.time_limit(*limit))
        };
        self.pools.iter().map(with).collect()
    }
}

/// Writes a line.
fn say(event: &str, mut fields: Value) {
    if let Some(line) = fields.as_object_mut() {
        line.insert("event".to_owned(), json!(event));
    }
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", bytes::escaped(&fields.to_string()));
    let _ = out.flush();
}

/// Now, in Unix milliseconds.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Tells that a message is lost, once: the worker says so, or its handler sees it first.
fn say_lost(id: &MessageId, receipt: &Receipt, reason: Loss) {
    static SAID: Mutex<BTreeSet<Receipt>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(receipt.clone()) {
        say("lost", json!({"id": text(id.as_ref()), "reason": reason.as_str(), "at": now()}));
    }
}

/// Tells what the worker decides by itself. Then it may do what a hook should not.
#[allow(clippy::panic)] // The suite asks for it.
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
    match std::env::var("DQ_HOOK").as_deref() {
        Ok("fail") => panic!("the hook fails"),
        Ok("block") if matches!(event, Event::Failed { .. }) => thread::sleep(Duration::from_secs(3)),
        _ => {}
    }
}

/// What a message asks for.
#[derive(serde::Deserialize)]
struct Task {
    #[serde(default, rename = "do")]
    kind: Value,
    ms: Option<u64>,
    after: Option<f64>,
    times: Option<u32>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    result: Value,
}

/// A message that is worked on. If it is dropped before its end, the message was lost.
struct Work {
    context: Context,
    has_ended: bool,
}

impl Work {
    fn begin(context: Context) -> Work {
        let pairs = context.meta().into_iter().flat_map(|meta| meta.headers.iter());
        let headers: HashMap<String, String> = pairs.map(|(name, value)| (text(name), text(value))).collect();
        let (queue, id, attempt) = (context.queue(), text(context.id().as_ref()), context.attempt());
        let checkpoint = context.meta().and_then(|meta| meta.checkpoint.as_deref()).map(text);
        say(
            "start",
            json!({
                "queue": queue.to_string(), "id": id, "attempt": attempt, "headers": headers,
                "checkpoint": checkpoint, "at": now(),
            }),
        );
        Work { context, has_ended: false }
    }

    /// Says how it ended, and ends so.
    fn end(mut self, how: Result<Raw, (&str, Failure)>) -> Result<Raw, Failure> {
        if self.context.loss().is_none() {
            self.has_ended = true;
            self.say_end(how.as_ref().map_or_else(|(how, _)| *how, |_| "ok"));
        }
        how.map_err(|(_, failure)| failure)
    }

    fn say_end(&self, how: &str) {
        say("end", json!({"id": text(self.context.id().as_ref()), "how": how, "at": now()}));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(reason) = self.context.loss().filter(|reason| *reason != Loss::TimeLimit && !self.has_ended) {
            say_lost(self.context.id(), self.context.receipt(), reason);
            self.say_end("lost");
        }
    }
}

/// Does what a message asks for, as a future, which is dropped if the message is lost.
async fn handle(task: Task, context: Context) -> Result<Raw, Failure> {
    let work = Work::begin(context);
    if task.waits() {
        tokio::time::sleep(task.time()).await;
    }
    if task.kind == "save" {
        work.context.checkpoint(&task.text);
        tokio::time::sleep(task.time()).await;
    }
    let how = task.done(&work.context);
    work.end(how)
}

/// Does the same as a function, which looks whether the message is lost.
fn handle_in_thread(task: Task, context: Context) -> Result<Raw, Failure> {
    let work = Work::begin(context);
    let end = Instant::now() + task.time();
    while task.waits() && Instant::now() < end && !work.context.lease_lost() {
        thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
    }
    if task.kind == "save" {
        work.context.checkpoint(&task.text);
        thread::sleep(task.time());
    }
    let how = task.done(&work.context);
    work.end(how)
}

impl Task {
    fn time(&self) -> Duration {
        Duration::from_millis(self.ms.unwrap_or_default())
    }

    fn waits(&self) -> bool {
        self.kind == "hang" || self.kind == "save"
    }

    /// Does what is left of it.
    fn done(&self, context: &Context) -> Result<Raw, (&'static str, Failure)> {
        match self.kind.as_str() {
            Some("fail" | "save") if self.times.is_some_and(|times| context.attempt() > times) => {}
            Some("fail" | "save") => return Err(("fail", Failure::retry(&self.text))),
            Some("reject") => return Err(("reject", Failure::reject(&self.text))),
            Some("retry") => {
                let after = self.after.map(|ms| Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX));
                let failure = after.map(|after| Failure::retry_after(after, &self.text));
                return Err(("retry", failure.unwrap_or_else(|| Failure::retry(&self.text))));
            }
            Some("result") => {
                let result = self.result.as_str().map_or_else(|| self.result.to_string(), str::to_owned);
                return Ok(Raw(result.into_bytes()));
            }
            Some("exit") => std::process::exit(3),
            Some("spin") => {
                let end = Instant::now() + self.time();
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            Some("ok" | "hang") => {}
            _ => return Err(("fail", Failure::retry(format!("unknown task {}", self.kind)))),
        }
        Ok(Raw(Vec::new()))
    }
}
