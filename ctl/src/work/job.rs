//! The job of a worker: what it does with the messages of one queue.

use super::handler::Handler;
use super::log::Log;
use super::post::Post;
use crate::cli::{HandlerArgs, WorkArgs};
use crate::server::Failure;
use dq_client::{blocking::Client, Context, Raw};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;

/// One queue, how many of its messages are worked on at the same time, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub queue: String,
    pub concurrency: usize,
    pub how: HandlerArgs,
}

/// Handles one message. The value is its result; an empty one means none.
pub type Handle = Arc<dyn Fn(&[u8], &Context) -> Result<Raw, NotDone> + Send + Sync>;

/// Why a message was not handled.
pub enum NotDone {
    Failed(dq_client::Failure),
    /// The system refused what every handler needs, such as a process or a file descriptor. That is not the message's fault.
    Lacking(String),
}

impl From<dq_client::Failure> for NotDone {
    fn from(failure: dq_client::Failure) -> NotDone {
        NotDone::Failed(failure)
    }
}

/// Whether the system has no more of something for this worker.
pub fn is_lack(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    error.is_some_and(|error| matches!(error, Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM))
}

impl Job {
    /// The jobs of a command line: the same for each of its queues.
    pub fn of_args(args: &WorkArgs) -> Result<Vec<Job>, Failure> {
        let mut jobs: Vec<Job> = Vec::new();
        for queue in &args.queues {
            if jobs.iter().any(|job| job.queue == queue.name) {
                let text =
                    format!("the queue {} is named twice: name it once, with all of its concurrency", queue.name);
                return Err(Failure::usage(text));
            }
            jobs.push(Job { queue: queue.name.clone(), concurrency: queue.concurrency, how: args.how.clone() });
        }
        Ok(jobs)
    }

    /// Refuses a command that cannot be run, and a URL that cannot be posted to.
    pub fn handle(&self, client: &Client, log: Log) -> Result<Handle, Failure> {
        match &self.how.post {
            None => {
                let handler = Handler::new(&self.how, log)?;
                Ok(Arc::new(move |payload, context| handler.handle(payload, context)))
            }
            Some(url) => {
                let post = Post::new(client, url, self.concurrency, &self.how, log)?;
                Ok(Arc::new(move |payload, context| post.handle(payload, context)))
            }
        }
    }
}
