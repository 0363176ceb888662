//! How many messages a worker handles in a second, and how late delayed ones are:
//! `DQ_URL=redis://127.0.0.1:6379 cargo bench -p dq-client`.
//!
//! 300,000 messages of 100 bytes wait in a queue, fewer for less than 15 at a time; the handler does nothing. Then
//! 1,000 fall due, 200 in a second. The queue `dq-bench` is removed before and after. `DQ_HANDLERS=plain` measures
//! plain functions instead of futures. CPU times are those of this process. `taskset -c 1` puts it on one core; the
//! server should have another. The last line is JSON, which `benches/workers` reads.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

use dq_client::{cmd, Client, Context, Failure, Pool, Queue, Raw, Resend, Running, Worker};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::time::sleep;

const MESSAGES: u32 = 300_000;
const DELAYED: u32 = 1_000;
const INTERVAL: Duration = Duration::from_millis(5);
const HEAD_START: Duration = Duration::from_secs(3);
const QUEUE: &str = "dq-bench";

#[tokio::main]
async fn main() {
    let Ok(url) = std::env::var("DQ_URL") else {
        println!("DQ_URL is not set: there is no server to measure with");
        return;
    };
    let client = Client::open(&url).expect("a URL");
    let clear = || async { client.call(cmd("DEL").arg(QUEUE), Resend::Harmless).await.expect("a server") };
    let mut fastest = 0.0;
    for concurrency in [1_u32, 8, 64] {
        clear().await;
        let queue: Queue<Raw> = client.queue(QUEUE);
        let batch = vec![Raw(vec![b'x'; 100]); 1000];
        let messages = MESSAGES.min(20_000 * concurrency);
        for _ in 0..messages / 1000 {
            queue.push_all(&batch).once().await.expect("pushed");
        }
        let (begun, cpu) = (Instant::now(), cpu());
        let running = worker(&client, Pool::new(concurrency as usize).queue(QUEUE), |_| ());
        until_empty(&queue).await;
        let (time, cpu) = (begun.elapsed(), self::cpu() - cpu);
        running.stop();
        let _ = running.join().await;
        let rate = f64::from(messages) / time.as_secs_f64();
        let each = cpu / f64::from(messages) * 1e6;
        println!("{concurrency:3} at a time: {rate:.0} messages/s, {each:.1} us of CPU each");
        clear().await;
        fastest = rate;
    }
    let (p50, p99) = lateness(&client).await;
    clear().await;
    println!(r#"{{"worker": "dq", "rate": {fastest:.0}, "p50": {p50:.3}, "p99": {p99:.3}}}"#);
}

/// Starts a worker with this handler.
fn worker(client: &Client, pool: Pool, handle: impl Fn(Context) + Send + Sync + 'static) -> Running {
    let worker = Worker::new(client.clone());
    let worker = if std::env::var("DQ_HANDLERS").is_ok_and(|handlers| handlers == "plain") {
        worker.pool_blocking(pool, move |_: Raw, context: Context| {
            handle(context);
            Ok(())
        })
    } else {
        worker.pool(pool, move |_: Raw, context: Context| {
            handle(context);
            std::future::ready(Ok::<(), Failure>(()))
        })
    };
    worker.start().expect("started")
}

async fn until_empty(queue: &Queue<Raw>) {
    while queue.len(None).await.expect("a length") > 0 {
        sleep(Duration::from_millis(20)).await;
    }
}

/// How late messages are at their handler while the worker waits for them, in milliseconds: half of them, and 99 of
/// 100, at most.
async fn lateness(client: &Client) -> (f64, f64) {
    let queue: Queue<Raw> = client.queue(QUEUE);
    let start = SystemTime::now() + HEAD_START;
    for n in 0..DELAYED {
        queue.push(&Raw(Vec::new())).at(start + INTERVAL * n).await.expect("pushed");
    }
    let late = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&late);
    let handle = move |context: Context| {
        let due = context.meta().expect("the pool asks for it").due;
        let by = due.elapsed().expect("never early").as_secs_f64() * 1000.0;
        noted.lock().unwrap().push(by);
    };
    let running = worker(client, Pool::new(64).queue(QUEUE).meta(), handle);
    until_empty(&queue).await;
    running.stop();
    let _ = running.join().await;
    let mut late = late.lock().unwrap().clone();
    late.sort_by(f64::total_cmp);
    let at = |percent: usize| late.get(late.len() * percent / 100).copied().unwrap_or_default();
    (at(50), at(99))
}

/// CPU seconds of this process so far; 0 where there is no /proc.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    // User and system time, the 14th and 15th field, in hundredths of a second.
    fields.get(10..12).map_or(0.0, |times| times.iter().sum::<f64>() / 100.0)
}
