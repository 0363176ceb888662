//! A consumer with retries, rejections and a lifetime: `cargo run -p dq-client --example retries`.
//!
//! It declares a queue whose messages are tried five times within ten minutes, pushes some, and handles them until
//! SIGTERM.

use dq_client::{Client, Context, Failure, Queue, Settings, State, Worker};
use std::time::Duration;

#[derive(serde::Serialize, serde::Deserialize)]
struct Call {
    url: String,
}

#[tokio::main]
async fn main() -> Result<(), dq_client::Error> {
    let url = std::env::var("DQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::open(&url)?;
    let calls: Queue<Call> = client.queue("calls");
    calls
        .declare(&Settings {
            retries: Some(4),
            backoff: Some((Duration::from_millis(200), Duration::from_secs(60))),
            jitter: Some(20),
            ttl: Some(Duration::from_secs(600)),
            dead_len: Some(1000),
            ..Settings::default()
        })
        .await?;
    for url in ["https://fine.example", "https://busy.example", "https://broken.example", "nonsense"] {
        calls.push(&Call { url: url.to_owned() }).await?;
    }
    // A message that is worthless after a second.
    calls.push(&Call { url: "https://broken.example/now".to_owned() }).ttl(Duration::from_secs(1)).await?;
    Worker::new(client).queue("calls", 8, call).run().await?;
    for dead in calls.peek(State::Dead, 10).await? {
        println!("dead: {} after {} attempts: {:?} ({:?})", dead.payload()?.url, dead.attempt, dead.error, dead.reason);
    }
    Ok(())
}

async fn call(call: Call, context: Context) -> Result<(), Failure> {
    println!("{} (attempt {})", call.url, context.attempt());
    // An error of your own converts with `?`; it is retried with the queue's backoff.
    let host = call.url.strip_prefix("https://").ok_or_else(|| Failure::reject("no URL"))?;
    // If the message is lost, this future is dropped at its next `.await`.
    match host {
        "busy.example" if context.attempt() == 1 => {
            // What the other side asked for, as with the header Retry-After.
            Err(Failure::retry_after(Duration::from_secs(3), "429 Too Many Requests"))
        }
        host if host.starts_with("broken") => Err(Failure::retry("no answer")),
        _ => Ok(()),
    }
}
