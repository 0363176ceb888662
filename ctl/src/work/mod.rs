//! `dqctl work`: runs a command for each message.

mod handler;
mod process;
mod tail;

use crate::cli::WorkArgs;
use crate::failure::{Failure, Outcome};
use dq_client::{Client, Error, Raw, Worker};
use handler::Handler;
use std::sync::Arc;
use std::time::Duration;

/// At the end of the grace period, handlers are ended and their messages given back, which takes a moment.
const TO_GIVE_BACK: Duration = Duration::from_secs(5);

/// Works until SIGTERM or SIGINT.
pub fn work(client: &Client, args: &WorkArgs) -> Result<Outcome, Failure> {
    let handler = Arc::new(Handler::new(&args.command, args.time_limit, args.grace)?);
    // The worker waits for a server that is not there yet, but not for a password that will never be right.
    if let Err(error @ (Error::Authentication(_) | Error::Config(_))) = client.ping() {
        return Err(error.into());
    }
    let mut worker = Worker::new(client.clone()).grace(args.grace + TO_GIVE_BACK);
    for (number, queue) in args.queues.iter().enumerate() {
        if args.queues.iter().take(number).any(|other| other.name == queue.name) {
            return Err(Failure::usage(format!(
                "the queue {} is named twice: give it all its hands at once",
                queue.name
            )));
        }
        let handler = Arc::clone(&handler);
        let pool = dq_client::Pool::new(queue.hands).queue(&queue.name).lease(args.lease);
        worker = worker.pool(pool, move |Raw(payload), context| handler.handle(&payload, context));
    }
    let stopped = worker.on_event(|event| eprintln!("dqctl: {event}")).run()?;
    handler.end_all();
    if stopped.abandoned > 0 {
        let text = "handlers were ended before their messages could be given back: they are delivered again when their leases end";
        return Err(Failure::failed(format!("{} {text}", stopped.abandoned)));
    }
    Ok(Outcome::Done)
}
