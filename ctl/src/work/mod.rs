//! `dqctl work`: runs a command for each message, or posts it.

mod handler;
mod post;
mod process;
mod tail;

use crate::cli::WorkArgs;
use crate::failure::{Failure, Outcome};
use crate::http::{self, Answer};
use dq_client::{Client, Context, Error, Raw, Worker};
use handler::Handler;
use post::Post;
use std::sync::Arc;
use std::time::Duration;

/// At the end of the grace period, handlers are ended and their messages given back, which takes a moment.
const TO_GIVE_BACK: Duration = Duration::from_secs(5);

/// What is done with each message.
type Handle = Arc<dyn Fn(&[u8], &Context) -> Result<(), dq_client::Failure> + Send + Sync>;
/// Ends what still runs when the worker has stopped.
type EndAll = Box<dyn Fn()>;

/// Works until SIGTERM or SIGINT.
pub fn work(client: &Client, args: &WorkArgs) -> Result<Outcome, Failure> {
    let (handle, end_all) = handler(client, args)?;
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
        let handle = Arc::clone(&handle);
        let pool = dq_client::Pool::new(queue.hands).queue(&queue.name).lease(args.lease);
        worker = worker.pool(pool, move |Raw(payload), context| handle(&payload, context));
    }
    if let Some(address) = &args.listen {
        let metrics = worker.metrics();
        http::serve(address, move |path| match path {
            "/metrics" => Some(Answer::ok(metrics.prometheus())),
            "/healthz" => Some(Answer::ok("ok\n".to_owned())),
            _ => None,
        })?;
    }
    let stopped = worker.on_event(|event| eprintln!("dqctl: {event}")).run()?;
    end_all();
    if stopped.abandoned > 0 {
        let text = "handlers were ended before their messages could be given back: they are delivered again when their leases end";
        return Err(Failure::failed(format!("{} {text}", stopped.abandoned)));
    }
    Ok(Outcome::Done)
}

fn handler(client: &Client, args: &WorkArgs) -> Result<(Handle, EndAll), Failure> {
    if let Some(url) = &args.post {
        let post = Post::new(client, url, args)?;
        // Requests end with the process.
        return Ok((Arc::new(move |payload, context| post.handle(payload, context)), Box::new(|| {})));
    }
    let handler = Arc::new(Handler::new(&args.command, args.time_limit, args.grace)?);
    let ending = Arc::clone(&handler);
    Ok((Arc::new(move |payload, context| handler.handle(payload, context)), Box::new(move || ending.end_all())))
}
