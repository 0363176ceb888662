//! The job of a worker: what it does with the messages of one queue.

use super::handler::{Handler, Processes};
use super::log::Log;
use super::post::{Post, Target};
use crate::cli::WorkArgs;
use crate::failure::Failure;
use dq_client::{Client, Context, Raw};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// One queue, how many of its messages are worked on at the same time, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub queue: String,
    pub concurrency: usize,
    pub action: Action,
    pub time_limit: Option<Duration>,
    pub grace: Duration,
    /// By default what the queue says.
    pub lease: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// A program and its arguments.
    Command(Vec<OsString>),
    Post(Target),
}

/// Handles one message. The value is its result; an empty one means none.
pub type Handle = Arc<dyn Fn(&[u8], &Context) -> Result<Raw, dq_client::Failure> + Send + Sync>;

impl Job {
    /// The jobs of a command line: the same for each of its queues.
    pub fn of_args(args: &WorkArgs) -> Result<Vec<Job>, Failure> {
        let action = match &args.post {
            None => Action::Command(args.command.clone()),
            Some(url) => Action::Post(Target {
                url: url.clone(),
                headers: args.headers.clone(),
                retry_on: args.retry_on.clone(),
                pause_on_429: args.pause_on_429,
            }),
        };
        let mut jobs: Vec<Job> = Vec::new();
        for queue in &args.queues {
            if jobs.iter().any(|job| job.queue == queue.name) {
                let text =
                    format!("the queue {} is named twice: name it once, with all of its concurrency", queue.name);
                return Err(Failure::usage(text));
            }
            jobs.push(Job {
                queue: queue.name.clone(),
                concurrency: queue.concurrency,
                action: action.clone(),
                time_limit: args.time_limit,
                grace: args.grace,
                lease: args.lease,
            });
        }
        Ok(jobs)
    }

    /// Refuses a command that cannot be run, and a URL that cannot be posted to.
    pub fn handle(&self, client: &Client, processes: &Arc<Processes>, log: Log) -> Result<Handle, Failure> {
        match &self.action {
            Action::Command(command) => {
                let handler = Handler::new(command, self.time_limit, self.grace, processes, log)?;
                Ok(Arc::new(move |payload, context| handler.handle(payload, context)))
            }
            Action::Post(target) => {
                let post = Post::new(client, target, self.concurrency, self.time_limit, log)?;
                Ok(Arc::new(move |payload, context| post.handle(payload, context)))
            }
        }
    }
}
