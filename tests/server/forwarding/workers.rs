//! Workers of existing job libraries, unchanged: they run what a queue forwards to them.
//!
//! RQ and Celery are installed from PyPI into `target/` with the first run; `DQ_WITHOUT_PYTHON` leaves them out.
//! Sidekiq is tested if the machine has it (Debian: `ruby-sidekiq`).

use crate::support::clients::{left_out, run, workers};
use crate::support::{root, Server};
use std::process::Command;

/// Runs a script that starts a worker and pushes jobs for it.
fn expect_run(mut program: Command, script: &str) {
    let server = Server::start();
    let outcome = run(program.arg(root().join("tests/workers").join(script)).arg(server.port().to_string()));
    assert!(outcome.as_ref().is_ok_and(|said| said.trim_end().ends_with("ok")), "{outcome:?}");
}

#[test]
#[ignore = "installs packages: `make test-workers` runs it"]
fn an_unchanged_rq_worker_runs_delayed_jobs() {
    let Some(python) = workers() else { return };
    expect_run(Command::new(python), "rq_worker.py");
}

#[test]
#[ignore = "installs packages: `make test-workers` runs it"]
fn an_unchanged_celery_worker_runs_delayed_tasks() {
    let Some(python) = workers() else { return };
    expect_run(Command::new(python), "celery_worker.py");
}

#[test]
#[ignore = "needs Sidekiq: `make test-workers` runs it"]
fn an_unchanged_sidekiq_worker_runs_delayed_jobs() {
    if let Err(problem) = run(Command::new("sidekiq").arg("--version")) {
        return left_out("Sidekiq", &problem);
    }
    expect_run(Command::new("ruby"), "sidekiq_worker.rb");
}
