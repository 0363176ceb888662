//! `dqctl work`: runs a command for each message, or posts it; for the queues of its options, or for those of a file.

mod config;
mod handler;
mod head;
mod job;
mod post;
mod process;
mod relay;
mod tail;
mod workers;

use crate::cli::WorkArgs;
use crate::connection::Connection;
use crate::failure::{Failure, Outcome};
use crate::http;
use crate::queues;
use crate::visible::visible;
use dq_client::Error;
use job::Job;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::Duration;
use workers::{Notice, Workers};

/// Works until SIGTERM or SIGINT. `patience`: how long a command is repeated if the server cannot be reached.
pub fn work(connection: &Connection, args: &WorkArgs, patience: Duration) -> Result<Outcome, Failure> {
    let file = args.config.as_deref().map(config::read).transpose().map_err(Failure::usage)?;
    let (jobs, url, listen) = match file {
        Some(file) => (file.jobs, file.url, file.listen),
        None => (Job::of_args(args)?, None, None),
    };
    let client = connection.client_or(url.as_deref(), patience)?;
    let (sender, notices) = channel();
    // From here on a signal does not end the process.
    forward_signals(args.config.is_some(), sender.clone())?;
    let mut workers = Workers::new(&client, sender);
    // The worker waits for a server that is not there yet, but not for one that will never be right.
    if let Err(error @ (Error::Authentication(_) | Error::Config(_) | Error::NoModule(_))) = queues::check(&client) {
        return Err(error.into());
    }
    if let Some(address) = args.listen.as_ref().or(listen.as_ref()) {
        let metrics = workers.metrics();
        http::serve(address, move |path| match path {
            "/metrics" => Some(http::metrics(200, metrics.prometheus())),
            "/healthz" => Some(http::metrics(200, "ok\n")),
            _ => None,
        })?;
    }
    workers.set(jobs)?;
    let outcome = workers.run(&notices, |workers| {
        if let Some(path) = &args.config {
            reload(workers, path, (url.as_ref(), listen.as_ref()));
        }
    });
    relay::flush();
    outcome
}

/// Turns signals into notices. Without a file to read again, SIGHUP means that the terminal was closed, and stops the worker.
fn forward_signals(with_reload: bool, notices: Sender<Notice>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let forward = move || {
        for signal in signals.forever() {
            let _ = notices.send(if with_reload && signal == SIGHUP { Notice::Reload } else { Notice::Stop });
        }
    };
    thread::Builder::new().name("dq-signals".to_owned()).spawn(forward)?;
    Ok(())
}

/// Reads the file again. If there is anything wrong with it, the workers go on as they are.
fn reload(workers: &mut Workers, path: &Path, (url, listen): (Option<&String>, Option<&String>)) {
    let file = match config::read(path) {
        Ok(file) => file,
        Err(problem) => return eprintln!("dqctl: {}; the workers go on as before", visible(&problem)),
    };
    if file.url.as_ref() != url || file.listen.as_ref() != listen {
        eprintln!("dqctl: {}: a new url or listen needs a restart", path.display());
    }
    match workers.set(file.jobs) {
        Ok((started, changed, stopped)) => {
            eprintln!("dqctl: {}: {started} workers started, {changed} changed, {stopped} stopped", path.display());
        }
        Err(failure) => eprintln!("dqctl: {}: {failure}; the workers go on as before", path.display()),
    }
}
