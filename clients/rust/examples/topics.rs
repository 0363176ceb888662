//! A server of many topics, each with a pool of workers, for jobs that are due at once or later.
//!
//! ```text
//! cargo run -p dq-client --example topics -- serve mail=4 reports=1
//! cargo run -p dq-client --example topics -- push mail 5000 "to ann"     # due in five seconds
//! cargo run -p dq-client --example topics -- depth mail reports
//! ```
//!
//! `DQ_URL` names the server, by default `redis://127.0.0.1:6379`. A job is JSON with its topic, delay, payload and the
//! time of its push, so that programs in other languages can push and read it too. SIGTERM ends the server gracefully.

use dq_client::{Client, Context, Failure, Queue, Worker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(serde::Serialize, serde::Deserialize)]
struct Job {
    topic: String,
    delay_ms: u64,
    payload: String,
    /// Unix ms.
    timestamp: u64,
}

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let url = std::env::var("DQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::open(&url)?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", topics @ ..] if !topics.is_empty() => serve(client, topics).await,
        ["push", topic, delay, payload] => push(&client, topic, delay.parse()?, payload).await,
        ["depth", topics @ ..] => depth(&client, topics).await,
        _ => Err("usage: topics serve TOPIC=CONCURRENCY... | push TOPIC DELAY-MS PAYLOAD | depth TOPIC...".into()),
    }
}

/// The queue of a topic.
fn queue(client: &Client, topic: &str) -> Queue<Job> {
    client.queue(format!("topic:{topic}"))
}

async fn serve(client: Client, topics: &[&str]) -> Result<(), Failed> {
    let mut worker = Worker::new(client.clone());
    for topic in topics {
        let (topic, concurrency) = topic.split_once('=').ok_or("a topic has the form NAME=CONCURRENCY")?;
        worker = worker.queue(queue(&client, topic).name(), concurrency.parse()?, handle);
    }
    // Every ten seconds the depth of each topic, and what this server has done.
    let metrics = worker.metrics();
    let names: Vec<String> = topics.iter().filter_map(|topic| topic.split('=').next()).map(str::to_owned).collect();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(10)).await;
            for (name, done) in names.iter().zip(metrics.queues()) {
                if let Ok(Some(info)) = queue(&client, name).info().await {
                    println!(
                        "{name}: {} ready, {} delayed, {} dead; handled {}, running {}",
                        info.ready, info.delayed, info.dead, done.acked, done.running
                    );
                }
            }
        }
    });
    let stopped = worker.run().await?;
    println!("stopped; {} jobs did not end in time", stopped.abandoned);
    Ok(())
}

async fn handle(job: Job, context: Context) -> Result<(), Failure> {
    let age = now().saturating_sub(job.timestamp);
    println!("{} {}: {} ({age} ms after its push, delay {} ms)", job.topic, context.id(), job.payload, job.delay_ms);
    Ok(())
}

async fn push(client: &Client, topic: &str, delay_ms: u64, payload: &str) -> Result<(), Failed> {
    let job = Job { topic: topic.to_owned(), delay_ms, payload: payload.to_owned(), timestamp: now() };
    let pushed = queue(client, topic).push(&job).delay(Duration::from_millis(delay_ms)).await?;
    println!("{}", pushed.id().map_or_else(|| "a duplicate".to_owned(), |id| id.to_string()));
    Ok(())
}

async fn depth(client: &Client, topics: &[&str]) -> Result<(), Failed> {
    for topic in topics {
        match queue(client, topic).info().await? {
            None => println!("{topic}: no queue"),
            Some(info) => println!(
                "{topic}: {} ready, {} delayed, {} in flight, {} dead, oldest {:?}",
                info.ready, info.delayed, info.inflight, info.dead, info.oldest_ready
            ),
        }
    }
    Ok(())
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
