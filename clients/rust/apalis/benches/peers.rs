//! This backend beside `apalis-redis`, on one server, with the same tasks and 64 of them at a time.
//!
//! ```text
//! DQ_MODULE=/path/to/libdq.so cargo bench --bench peers
//! ```
//!
//! Three measurements: empty tasks for each second; how late tasks begin after their due second; and which tasks are
//! lost or done twice if their worker is killed once a second. `apalis-redis` has a heartbeat of one second, two of
//! which may be missed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

#[allow(dead_code, unused_imports)]
#[path = "../../tests/it/support/mod.rs"]
mod support;

use apalis::layers::WorkerBuilderExt;
use apalis_core::backend::ext::BackendExt;
use apalis_core::backend::TaskSink;
use apalis_core::error::BoxDynError;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_dq::DqStorage;
use apalis_redis::{Config, RedisStorage};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::{Process, Server};
use tokio::sync::mpsc::unbounded_channel;

/// With more than 8,000 due tasks, `apalis-redis` 1.0.0 ends with an error of its script.
const EMPTY: u64 = 5_000;
const LATE: u64 = 500;
const KILLED: u64 = 2_000;
const CONCURRENCY: usize = 64;
const POLL: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
/// How long the tasks of killed workers may take to be done.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq)]
enum Peer {
    Dq,
    DqOne,
    Redis,
}

const PEERS: [(Peer, &str); 3] =
    [(Peer::Dq, "apalis-dq"), (Peer::DqOne, "apalis-dq, prefetch 1"), (Peer::Redis, "apalis-redis, batch 10")];

fn dq(url: &str, peer: Peer) -> DqStorage<u64> {
    let storage = DqStorage::new(dq_client::Client::open(url).unwrap(), "tasks").lease(2 * SECOND);
    if peer == Peer::DqOne {
        storage.prefetch(1)
    } else {
        storage
    }
}

async fn redis(url: &str) -> RedisStorage<u64> {
    let config = Config::default().queue("tasks").batch_size(10).heartbeat_interval(SECOND).missed_heartbeats(2);
    RedisStorage::new(apalis_redis::connect(url).await.unwrap()).with_config(config)
}

async fn push(peer: Peer, url: &str, tasks: impl Iterator<Item = u64>, run_at: Option<u64>) {
    let task = |number| match run_at {
        Some(second) => TaskBuilder::new(number).run_at_timestamp(second).build(),
        None => TaskBuilder::new(number).build(),
    };
    let tasks: Vec<_> = tasks.map(task).collect();
    for some in tasks.chunks(500) {
        let some = futures_util::stream::iter(some.to_vec());
        match peer {
            Peer::Redis => redis(url).await.push_all(some).await.unwrap(),
            Peer::Dq | Peer::DqOne => dq(url, peer).push_all(some).await.unwrap(),
        }
    }
}

/// Works until it is dropped.
async fn work<F>(peer: Peer, url: &str, handler: impl Fn(u64) -> F + Clone + Send + 'static)
where
    F: std::future::Future<Output = Result<(), BoxDynError>> + Send + 'static,
{
    // apalis-redis names a worker's tasks after it, so a new worker of the same name would be taken for the dead one.
    let name = format!("worker-{}", std::process::id());
    match peer {
        Peer::Redis => {
            let backend = redis(url).await.poll_with_interval(POLL);
            WorkerBuilder::new(name).backend(backend).concurrency(CONCURRENCY).build(handler).run().await.unwrap();
        }
        Peer::Dq | Peer::DqOne => {
            let backend = dq(url, peer);
            WorkerBuilder::new(name).backend(backend).concurrency(CONCURRENCY).build(handler).run().await.unwrap();
        }
    }
}

/// When each task began, in the order in which they did.
async fn beginnings(peer: Peer, url: &str, count: u64) -> Vec<SystemTime> {
    let (sender, mut received) = unbounded_channel();
    let handler = move |_: u64| {
        let sent = sender.send(SystemTime::now());
        async move { Ok(sent?) }
    };
    let receive = async {
        let mut times = Vec::new();
        while (times.len() as u64) < count {
            times.push(received.recv().await.unwrap());
        }
        times
    };
    tokio::select! {
        () = work(peer, url, handler) => panic!("the worker ended"),
        times = receive => times,
    }
}

async fn per_second(peer: Peer, url: &str) -> f64 {
    push(peer, url, 0..EMPTY, None).await;
    let begun = Instant::now();
    beginnings(peer, url, EMPTY).await;
    EMPTY as f64 / begun.elapsed().as_secs_f64()
}

/// The median and the 99th percentile of the lateness.
async fn lateness(peer: Peer, url: &str) -> (Duration, Duration) {
    let second = (SystemTime::now() + 3 * SECOND).duration_since(UNIX_EPOCH).unwrap().as_secs();
    for number in 0..LATE {
        push(peer, url, std::iter::once(number), Some(second)).await;
    }
    let times = beginnings(peer, url, LATE).await;
    let due = UNIX_EPOCH + Duration::from_secs(second);
    let mut late: Vec<Duration> = times.iter().map(|time| time.duration_since(due).expect("not early")).collect();
    late.sort_unstable();
    (late[late.len() / 2], late[late.len() * 99 / 100])
}

/// A worker in a process of its own, which writes the tasks that it has done to a file.
fn worker(peer: Peer, url: &str, file: &Path) -> Process {
    let number = PEERS.iter().position(|(other, _)| *other == peer).unwrap().to_string();
    let mut command = Command::new(std::env::current_exe().unwrap());
    Process(command.env("PEERS_WORKER", number).env("PEERS_URL", url).env("PEERS_FILE", file).spawn().unwrap())
}

async fn be_worker(peer: Peer) {
    let (url, path) = (std::env::var("PEERS_URL").unwrap(), PathBuf::from(std::env::var("PEERS_FILE").unwrap()));
    work(peer, &url, move |number| {
        let path = path.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let mut file = std::fs::File::options().append(true).open(path)?;
            Ok(file.write_all(format!("{number}\n").as_bytes())?)
        }
    })
    .await;
}

/// How many tasks were lost, and how many were done more than once.
async fn killed(peer: Peer, url: &str, file: &Path) -> (usize, usize) {
    std::fs::write(file, "").unwrap();
    push(peer, url, 0..KILLED, None).await;
    let done = || {
        let mut runs: HashMap<String, usize> = HashMap::new();
        std::fs::read_to_string(file).unwrap().lines().for_each(|task| *runs.entry(task.to_owned()).or_default() += 1);
        runs
    };
    let end = Instant::now() + PATIENCE;
    for _ in 0..3 {
        let mut worker = worker(peer, url, file);
        let before = done().len();
        while done().len() < before + 300 && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        worker.0.kill().unwrap();
        worker.0.wait().unwrap();
    }
    let _last = worker(peer, url, file);
    while (done().len() as u64) < KILLED && Instant::now() < end {
        tokio::time::sleep(POLL).await;
    }
    let runs = done();
    (KILLED as usize - runs.len(), runs.values().filter(|runs| **runs > 1).count())
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Ok(number) = std::env::var("PEERS_WORKER") {
        return runtime.block_on(be_worker(PEERS[number.parse::<usize>().unwrap()].0));
    }
    println!("| | tasks/s | late, p50 | late, p99 | lost | done twice |\n| --- | --- | --- | --- | --- | --- |");
    for (peer, name) in PEERS {
        // Each measurement has a server of its own.
        let servers = [Server::start(), Server::start(), Server::start()];
        let urls: Vec<String> = servers.iter().map(Server::url).collect();
        let speed = runtime.block_on(per_second(peer, &urls[0]));
        let (median, p99) = runtime.block_on(lateness(peer, &urls[1]));
        let (lost, twice) = runtime.block_on(killed(peer, &urls[2], &servers[2].dir().join("done")));
        println!("| {name} | {speed:.0} | {median:.1?} | {p99:.1?} | {lost} | {twice} |");
    }
}
