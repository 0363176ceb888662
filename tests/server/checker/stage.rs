//! What the clients of a run share: the address of the current server, the clock, and their progress.

use super::history::{Op, Span};
use crate::support::{eventually, Client, Protocol, Random, Reply, Server};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// The name of the queue in all runs. All names have one hash tag, so that all keys are in one slot of a cluster.
pub const QUEUE: &str = "{run}q";

/// The name of the queue with schedules.
pub const SERIES: &str = "{run}series";

/// The name of the queue with batches.
pub const BATCHES: &str = "{run}batches";

/// The name of a queue to which nobody pushes, so that a pop only waits.
pub const NOBODY: &str = "{run}nobody";

/// The key that clients write before they ask whether replicas have everything.
pub const CONFIRM: &str = "{run}confirm";

/// The name of the connections that a fault may cut.
pub const WORKER: &str = "worker";

/// The beginnings of the errors with which a server refuses a call because it is not, or no longer, the master. `WAIT`
/// has no error code of its own for this.
const TURNED_AWAY: [&str; 10] = [
    "READONLY ",
    "UNBLOCKED ",
    "LOADING ",
    "EXECABORT ",
    "NOREPLICAS ",
    "MOVED ",
    "ASK ",
    "TRYAGAIN ",
    "ERR WAIT cannot be used with replica",
    "ERR WAITAOF cannot be used with replica",
];

/// Where a client is when a partition separates a master from its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// With the replicas. Without a partition all clients are here.
    Many,
    /// With the old master.
    Few,
}

/// The state that all clients of a run share.
pub struct Stage {
    start: Instant,
    /// For each side, the port and the process id of the current server, or `None` if there is none.
    addresses: [Mutex<Option<(u16, u32)>>; 2],
    over: AtomicBool,
    /// For each side, the number of replies, and the number at which clients pause.
    answered: [AtomicUsize; 2],
    allowed: [AtomicUsize; 2],
    /// An instant on the server's clock before it was set back, up to which queues may have seen the time.
    ceiling: AtomicI64,
}

impl Stage {
    pub fn new() -> Stage {
        Stage {
            start: Instant::now(),
            addresses: Default::default(),
            over: AtomicBool::new(false),
            answered: Default::default(),
            allowed: [AtomicUsize::new(usize::MAX), AtomicUsize::new(usize::MAX)],
            ceiling: AtomicI64::new(i64::MIN),
        }
    }

    /// Makes this server the one to which clients connect.
    pub fn enter(&self, server: &Server) {
        [Side::Many, Side::Few].iter().for_each(|side| self.enter_at(*side, server.port(), server));
    }

    /// Makes the clients of one side connect to this server at a port.
    pub fn enter_at(&self, side: Side, port: u16, server: &Server) {
        *self.addresses[side as usize].lock().unwrap() = Some((port, server.process()));
    }

    /// Makes clients wait before they connect, because their server is about to end.
    pub fn leave(&self) {
        [Side::Many, Side::Few].iter().for_each(|side| self.leave_at(*side));
    }

    /// Makes the clients of one side wait before they connect.
    pub fn leave_at(&self, side: Side) {
        *self.addresses[side as usize].lock().unwrap() = None;
    }

    /// Makes the clients of each side pause after so many more replies, so that a run that waits for servers takes no
    /// processor time.
    pub fn allow(&self, more: usize) {
        for (allowed, answered) in self.allowed.iter().zip(&self.answered) {
            allowed.store(answered.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
        }
    }

    /// Waits, for as long as it takes, until the clients of a side may go on.
    fn until_allowed(&self, side: Side) {
        let number = |of: &[AtomicUsize; 2]| of[side as usize].load(Ordering::Relaxed);
        let is_allowed = || self.over() || number(&self.answered) < number(&self.allowed);
        while !is_allowed() {
            let start = Instant::now();
            eventually("a second is over", || is_allowed() || start.elapsed().as_secs() > 0);
        }
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

    /// Notes that the time of queues may stand still at this instant at the latest, because the clock is set back.
    pub fn set_ceiling(&self, at: i64) {
        self.ceiling.store(at, Ordering::SeqCst);
    }

    /// Whether the clock of the server has been set back in this run.
    pub fn has_been_set_back(&self) -> bool {
        self.ceiling.load(Ordering::SeqCst) > i64::MIN
    }

    /// The latest time that a queue can have seen when a `TIME` was answered.
    pub fn latest(&self, reply: Option<&Reply>) -> Option<i64> {
        instant(reply).map(|at| at.max(self.ceiling.load(Ordering::SeqCst)))
    }

    /// Waits until clients have received this many more replies.
    pub fn until_answers(&self, more: usize) {
        let number = || self.answered.iter().map(|side| side.load(Ordering::Relaxed)).sum::<usize>();
        let goal = number() + more;
        eventually("work goes on", || number() >= goal);
    }

    /// Waits until the clients of one side have received this many more replies.
    pub fn until_answers_at(&self, side: Side, more: usize) {
        let number = || self.answered[side as usize].load(Ordering::Relaxed);
        let goal = number() + more;
        eventually("work goes on", || number() >= goal);
    }
}

/// The connection of one client to the current server. It reconnects after a failure, and records the calls of the
/// client.
pub struct Link<'a> {
    pub stage: &'a Stage,
    pub chance: Random,
    pub ops: Vec<Op>,
    side: Side,
    /// The connection, and the process of the server.
    client: Option<(Client, u32)>,
}

impl<'a> Link<'a> {
    pub fn new(stage: &'a Stage, chance: Random) -> Link<'a> {
        Link::at(stage, Side::Many, chance)
    }

    /// A client on one side of partitions.
    pub fn at(stage: &'a Stage, side: Side, chance: Random) -> Link<'a> {
        Link { stage, chance, ops: Vec::new(), side, client: None }
    }

    /// Pipelines commands. If the connection breaks, there are fewer replies than commands.
    pub fn say<L: AsRef<str>>(&mut self, lines: &[L]) -> (Span, Vec<Reply>) {
        self.stage.until_allowed(self.side);
        let (mut client, server) = self.client.take().unwrap_or_else(|| self.connect());
        let called = self.stage.now();
        let mut replies = client.replies_to(lines);
        follow(&mut client, lines, &mut replies);
        let span = Span { called, answered: self.stage.now(), server };
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
            self.client = Some((client, server));
            self.stage.answered[self.side as usize].fetch_add(1, Ordering::Relaxed);
        }
        (span, replies)
    }

    /// Connects to the current server, and verifies its process id, because another process may have taken the port of
    /// a dead server.
    fn connect(&self) -> (Client, u32) {
        let mut connected = None;
        eventually("a server is up", || {
            let Some((port, process)) = *self.stage.addresses[self.side as usize].lock().unwrap() else { return false };
            let Ok(mut client) = Client::connect(port, Protocol::Resp2) else { return false };
            let replies = client.replies_to(&["INFO server".to_owned(), format!("CLIENT SETNAME {WORKER}")]);
            let own = format!("process_id:{process}\r\n");
            if replies.len() == 2 && matches!(&replies[0], Reply::Bulk(_)) && replies[0].text().contains(&own) {
                connected = Some((client, process));
            }
            connected.is_some()
        });
        connected.expect("connected")
    }
}

/// Sends commands again that another node of a cluster must carry out, as client libraries do, and those behind them.
/// A transaction is not repeated, and neither is a `DQ.ACKPOP`, because its acks hold if it has waited.
fn follow<L: AsRef<str>>(client: &mut Client, lines: &[L], replies: &mut Vec<Reply>) {
    let redirection = |reply: &Reply| match reply {
        Reply::Error(text) => {
            let (asks, rest) = (text.starts_with("ASK "), text.strip_prefix("ASK ").or(text.strip_prefix("MOVED "))?);
            rest.rsplit(':').next()?.parse::<u16>().ok().map(|port| (asks, port))
        }
        _ => None,
    };
    while let Some((nth, (asks, port))) =
        replies.iter().enumerate().find_map(|(nth, reply)| Some((nth, redirection(reply)?)))
    {
        let Ok(mut there) = Client::connect(port, Protocol::Resp2) else { return };
        let rest: Vec<&str> = lines[nth..].iter().map(AsRef::as_ref).collect();
        let is_repeated = !lines[0].as_ref().starts_with("MULTI") && !rest[0].starts_with("DQ.ACKPOP ");
        if is_repeated {
            replies.truncate(nth);
            if asks {
                let pairs: Vec<&str> = rest.iter().flat_map(|line| ["ASKING", *line]).collect();
                replies.extend(there.replies_to(&pairs).into_iter().skip(1).step_by(2));
            } else {
                replies.extend(there.replies_to(&rest));
            }
        }
        if !asks {
            *client = there;
        }
        if !is_repeated {
            return;
        }
    }
}

/// The instant that a `TIME` returned, in Unix ms; `None` if its reply was lost.
pub fn instant(reply: Option<&Reply>) -> Option<i64> {
    let Some(Reply::Array(parts)) = reply else { return None };
    let part = |n: usize| parts[n].text().parse::<i64>().expect("a number");
    Some(part(0) * 1000 + part(1) / 1000)
}
