//! `dqctl work`: runs a command for each message, or posts it; for the queues of its options, or for those of a file.

mod about;
mod config;
mod first;
mod handler;
mod job;
mod lack;
mod log;
mod output;
mod post;
mod process;
mod signals;
mod workers;

use crate::board::names;
use crate::cli::WorkArgs;
use crate::http;
use crate::http::prometheus::{Metric, Text};
use crate::server::{Connection, Failure, Outcome};
use crate::text::labels;
use dq_client::{blocking::Client, Metrics};
use job::Job;
use log::Log;
use serde_json::{json, Map, Value as Json};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use std::path::Path;
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::Duration;
use workers::{Notice, Running, Workers};

/// Works until SIGTERM or SIGINT. `patience`: how long a command is repeated if the server cannot be reached.
pub fn work(connection: &Connection, args: &WorkArgs, patience: Duration) -> Result<Outcome, Failure> {
    if std::process::id() == 1 {
        std::process::exit(first::run(args.config.is_some())?);
    }
    let file = args.config.as_deref().map(config::read).transpose().map_err(Failure::usage)?;
    let (jobs, url, listen) = match file {
        Some(file) => (file.jobs, file.url, file.listen),
        None => (Job::from_args(args)?, None, None),
    };
    let client = connection.client(url.as_deref(), patience)?;
    let (sender, notices) = channel();
    // From here on a signal does not end the process.
    forward_signals(args.config.is_some(), sender.clone())?;
    let log = Log { format: args.log_format, is_verbose: args.verbose };
    log.in_background()?;
    let mut workers = Workers::new(&client, log, sender);
    // The worker waits for a server that is not there yet, but not for one that will never be right.
    if let Some(failure) = names::check(&client).err().filter(Failure::is_lasting) {
        return Err(failure);
    }
    if let Some(address) = args.listen.as_ref().or(listen.as_ref()) {
        let listener = http::listen(address)?;
        let local = listener.local_addr()?.to_string();
        log.info("listening", &format!("listening on http://{local}"), json!({ "address": local }));
        let (metrics, running, reached) = (workers.metrics.clone(), workers.running.clone(), workers.running.clone());
        http::serve(listener, move || metrics_of(&metrics, &running), move || health(&reached))?;
    }
    let (started, fields) = described(&client, &jobs);
    workers.set(jobs)?;
    log.info("started", &started, fields);
    workers.run(&notices, |workers| {
        if let Some(path) = &args.config {
            reload(workers, &log, path, (url.as_ref(), listen.as_ref()));
        }
    })
}

/// The line at the start, and its fields: the queues with their concurrency, and the server.
fn described(client: &Client, jobs: &[Job]) -> (String, Json) {
    // The masters of a cluster, and that of sentinels, are not known before they answer.
    let servers = client.servers().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let of = if servers.is_empty() { String::new() } else { format!("; the server is {servers}") };
    let one = |job: &Job| {
        let program = || job.how.command.first().map(|program| program.to_string_lossy().into_owned());
        let what = job.how.post.as_deref().map(post::without_secrets).or_else(program);
        format!("{} ({} at a time, {})", job.queue, job.concurrency, what.unwrap_or_default())
    };
    let queues: Vec<String> = jobs.iter().map(one).collect();
    let concurrency: Map<_, _> = jobs.iter().map(|job| (job.queue.clone(), job.concurrency.into())).collect();
    let text = format!("dqctl {} works on {}{of}", env!("CARGO_PKG_VERSION"), queues.join(", "));
    (text, json!({ "server": servers, "queues": concurrency }))
}

/// Whether the server of each queue is reached.
fn health(running: &Running) -> Result<(), Failure> {
    let lost: Vec<String> = running.reached().into_iter().filter_map(|(queue, up)| (!up).then_some(queue)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("no messages can be popped: {}", lost.join(", "))))
}

const RUNNING: Metric = ("dq_worker_running", "gauge", "Handlers that run now.");
const RUN: Metric = ("dq_worker_run_seconds", "histogram", "How long handlers ran.");
const UP: Metric = ("dq_worker_up", "gauge", "Whether messages of the queue can be popped.");

/// The counters of the client, and whether the server of each queue is reached.
fn metrics_of(metrics: &Metrics, running: &Running) -> String {
    let mut text = Text::default();
    for queue in metrics.queues() {
        let name = queue.queue.to_string();
        let queue_labels = labels(&[("queue", &name)]);
        for (counter, count) in queue.counters() {
            let metric = format!("dq_worker_{counter}_total");
            text.add((&metric, "counter", "Since the worker was started."), &queue_labels, count as f64);
        }
        text.add(RUNNING, &queue_labels, queue.running as f64);
        text.histogram(RUN, &name, &queue.run, 1);
    }
    for (queue, is_up) in running.reached() {
        text.add(UP, &labels(&[("queue", &queue)]), f64::from(u8::from(is_up)));
    }
    text.finish()
}

/// Turns signals into notices. Without a file to read again, SIGHUP means that the terminal was closed, and stops the
/// worker.
fn forward_signals(with_reload: bool, notices: Sender<Notice>) -> Result<(), Failure> {
    let mut signals = Signals::new(signals::worker_signals(with_reload))?;
    let forward = move || {
        for signal in signals.forever() {
            let _ = notices.send(if with_reload && signal == SIGHUP { Notice::Reload } else { Notice::Stop });
        }
    };
    thread::Builder::new().name("dq-signals".to_owned()).spawn(forward)?;
    Ok(())
}

/// Reads the file again. If there is anything wrong with it, the workers go on as they are.
fn reload(workers: &mut Workers, log: &Log, path: &Path, (url, listen): (Option<&String>, Option<&String>)) {
    let name = path.display();
    let file = match config::read(path) {
        Ok(file) => file,
        Err(problem) => return log.warn("not-reloaded", &format!("{problem}; the workers go on as before"), json!({})),
    };
    if file.url.as_ref() != url || file.listen.as_ref() != listen {
        log.warn("not-reloaded", &format!("{name}: a new url or listen needs a restart"), json!({}));
    }
    match workers.set(file.jobs) {
        Ok((started, changed, stopped)) => {
            let text = format!("{name}: {started} workers started, {changed} changed, {stopped} stopped");
            log.info("reloaded", &text, json!({ "started": started, "changed": changed, "stopped": stopped }));
        }
        Err(failure) => {
            log.warn("not-reloaded", &format!("{name}: {failure}; the workers go on as before"), json!({}));
        }
    }
}
