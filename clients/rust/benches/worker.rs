//! How many messages a worker handles in a second: `DQ_URL=redis://127.0.0.1:6379 cargo bench -p dq-client`.
//!
//! 300,000 messages of 100 bytes wait in a queue; the handler does nothing. The queue `dq-bench` is removed before and after.
//! CPU times are those of this process. `taskset -c 1` puts it on one core; the server should have another.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

use dq_client::{cmd, Client, Context, Queue, Raw, Resend, Worker};
use std::time::{Duration, Instant};

const MESSAGES: u32 = 300_000;
const QUEUE: &str = "dq-bench";

fn main() {
    let Ok(url) = std::env::var("DQ_URL") else {
        println!("DQ_URL is not set: there is no server to measure with");
        return;
    };
    let client = Client::open(&url).expect("a URL");
    for concurrency in [1, 8, 64] {
        let clear = || client.call(cmd("DEL").arg(QUEUE), Resend::Harmless).expect("a server");
        clear();
        let queue: Queue<Raw> = client.queue(QUEUE);
        let batch = vec![Raw(vec![b'x'; 100]); 1000];
        for _ in 0..MESSAGES / 1000 {
            queue.push_all(&batch).once().send().expect("pushed");
        }
        let (begun, cpu) = (Instant::now(), cpu());
        let running = Worker::new(client.clone())
            .queue(QUEUE, concurrency, |_: Raw, _: &Context| Ok(()))
            .start()
            .expect("started");
        while queue.len(None).expect("a length") > 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (time, cpu) = (begun.elapsed(), self::cpu() - cpu);
        running.stop();
        let _ = running.join();
        let rate = f64::from(MESSAGES) / time.as_secs_f64();
        println!(
            "{concurrency:3} at a time: {rate:.0} messages/s, {:.1} us of CPU each",
            cpu / f64::from(MESSAGES) * 1e6
        );
        clear();
    }
}

/// CPU seconds of this process so far; 0 where there is no /proc.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    // User and system time, the 14th and 15th field, in hundredths of a second.
    fields.get(10..12).map_or(0.0, |times| times.iter().sum::<f64>() / 100.0)
}
