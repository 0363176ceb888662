//! What the clients of a run share: the address of the current server, the clock, and their progress.

use super::history::{Op, Span};
use crate::support::{eventually, Client, Protocol, Random, Reply, Server};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// The name of the queue in all runs.
pub const QUEUE: &str = "q";

/// The name of the queue with schedules.
pub const SERIES: &str = "series";

/// The name of the queue with batches.
pub const BATCHES: &str = "batches";

/// The name of the connections that a fault may cut.
pub const WORKER: &str = "worker";

/// The beginnings of the errors with which a server refuses a call because it is not, or no longer, the master. `WAIT`
/// has no error code of its own for this.
const TURNED_AWAY: [&str; 5] =
    ["READONLY ", "UNBLOCKED ", "LOADING ", "EXECABORT ", "ERR WAIT cannot be used with replica"];

/// The state that all clients of a run share.
pub struct Stage {
    start: Instant,
    /// The port and the process id of the current server, or `None` if there is none.
    address: Mutex<Option<(u16, u32)>>,
    over: AtomicBool,
    answered: AtomicUsize,
}

impl Stage {
    pub fn new() -> Stage {
        let (address, over) = (Mutex::new(None), AtomicBool::new(false));
        Stage { start: Instant::now(), address, over, answered: AtomicUsize::new(0) }
    }

    /// Makes this server the one to which clients connect.
    pub fn enter(&self, server: &Server) {
        *self.address.lock().unwrap() = Some((server.port(), server.process()));
    }

    /// Makes clients wait before they connect, because their server is about to end.
    pub fn leave(&self) {
        *self.address.lock().unwrap() = None;
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The time since the run began, in ns.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).expect("a run is shorter than 500 years")
    }

    /// Waits until clients have received this many more replies.
    pub fn until_answers(&self, more: usize) {
        let goal = self.answered.load(Ordering::Relaxed) + more;
        eventually("work goes on", || self.answered.load(Ordering::Relaxed) >= goal);
    }
}

/// The connection of one client to the current server. It reconnects after a failure, and records the calls of the
/// client.
pub struct Link<'a> {
    pub stage: &'a Stage,
    pub chance: Random,
    pub ops: Vec<Op>,
    client: Option<Client>,
}

impl<'a> Link<'a> {
    pub fn new(stage: &'a Stage, chance: Random) -> Link<'a> {
        Link { stage, chance, ops: Vec::new(), client: None }
    }

    /// Pipelines commands. If the connection breaks, there are fewer replies than commands.
    pub fn say<L: AsRef<str>>(&mut self, lines: &[L]) -> (Span, Vec<Reply>) {
        let mut client = self.client.take().unwrap_or_else(|| self.connect());
        let called = self.stage.now();
        let replies = client.replies_to(lines);
        let span = Span { called, answered: self.stage.now() };
        let errors = replies.iter().filter_map(|reply| match reply {
            Reply::Error(text) => Some(text),
            _ => None,
        });
        let mut turned_away = false;
        for error in errors {
            assert!(TURNED_AWAY.iter().any(|start| error.starts_with(start)), "{error}");
            turned_away = true;
        }
        if replies.len() == lines.len() && !turned_away {
            self.client = Some(client);
            self.stage.answered.fetch_add(1, Ordering::Relaxed);
        }
        (span, replies)
    }

    /// Connects to the current server, and verifies its process id, because another process may have taken the port of
    /// a dead server.
    fn connect(&self) -> Client {
        let mut connected = None;
        eventually("a server is up", || {
            let Some((port, process)) = *self.stage.address.lock().unwrap() else { return false };
            let Ok(mut client) = Client::connect(port, Protocol::Resp2) else { return false };
            let replies = client.replies_to(&["INFO server".to_owned(), format!("CLIENT SETNAME {WORKER}")]);
            let own = format!("process_id:{process}\r\n");
            if replies.len() == 2 && matches!(&replies[0], Reply::Bulk(_)) && replies[0].text().contains(&own) {
                connected = Some(client);
            }
            connected.is_some()
        });
        connected.expect("connected")
    }
}

/// The instant that a `TIME` returned, in Unix ms; `None` if its reply was lost.
pub fn instant(reply: Option<&Reply>) -> Option<i64> {
    let Some(Reply::Array(parts)) = reply else { return None };
    let part = |n: usize| parts[n].text().parse::<i64>().expect("a number");
    Some(part(0) * 1000 + part(1) / 1000)
}
