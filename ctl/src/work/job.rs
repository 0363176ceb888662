//! The job of a worker: what it does with the messages of one queue.

use super::handler::Handler;
use super::lack::NotDone;
use super::log::Log;
use super::post::Post;
use crate::cli::{HandlerArgs, WorkArgs};
use crate::server::Failure;
use dq_client::{blocking::Client, Context, Raw};
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

impl Job {
    /// The jobs of a command line: the same for each of its queues.
    pub fn from_args(args: &WorkArgs) -> Result<Vec<Job>, Failure> {
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
