//! What the clients of a run share: the address of the current server, the clock, and their progress.

use super::history::{Op, Rewind, Span};
use super::producer::local_time;
use crate::support::{eventually, Client, Clock, Protocol, Random, Reply, Server};
use std::collections::BTreeSet;
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

/// How often a client follows redirections before it connects anew.
const HOPS: usize = 16;

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
    /// The times at which the clock was set back.
    set_back: Mutex<Vec<SetBack>>,
    /// How far the clock of any of several servers may be ahead of the true time, in ms.
    ahead: AtomicI64,
    /// The times during which a server whose clock is behind may have begun to decide.
    rewinds: Mutex<Vec<Rewind>>,
    error: AtomicI64,
    /// The commands that clients have sent, each with the words in capital letters that followed.
    said: Mutex<BTreeSet<(String, String)>>,
}

/// A step of the server's clock, in the time of [`Stage::now`].
struct SetBack {
    begun: u64,
    /// `None` while it is under way.
    over: Option<u64>,
    /// What the clock shows at least, during the step and after it.
    least: i64,
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
            set_back: Mutex::default(),
            ahead: AtomicI64::new(0),
            rewinds: Mutex::default(),
            error: AtomicI64::new(0),
            said: Mutex::default(),
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

    /// Sets the clock of the server back from being `ahead` by these ms. Until it has caught up, the time of a queue
    /// stands still, at the latest at what the clock has shown.
    pub fn set_back(&self, server: &mut Client, clock: &Clock, ahead: i64, by: i64) {
        let step = SetBack { begun: self.now(), over: None, least: local_time() + ahead - by };
        self.set_back.lock().unwrap().push(step);
        self.ceiling.store(i64::MAX, Ordering::SeqCst);
        clock.set(ahead - by);
        // Valkey 9.1 goes on by its old clock for up to a millisecond: see `error`.
        eventually("the server has noticed", || server.now() <= local_time() + ahead - by + self.error());
        self.ceiling.store(local_time() + ahead, Ordering::SeqCst);
        let over = self.now();
        self.set_back.lock().unwrap().iter_mut().for_each(|step| _ = step.over.get_or_insert(over));
    }

    /// Whether the clock of the server has been set back in this run.
    pub fn has_been_set_back(&self) -> bool {
        self.ceiling.load(Ordering::SeqCst) > i64::MIN
    }

    /// The times between which a queue carried out a call, given the replies to it and to a `TIME` before and after it.
    pub fn between(&self, span: &Span, replies: &[Reply]) -> (Option<i64>, Option<i64>) {
        let steps = self.set_back.lock().unwrap();
        let meanwhile = |step: &&SetBack| step.begun <= span.answered && step.over.is_none_or(|at| span.called <= at);
        // If the clock was set back after the first `TIME`, the queue need not have seen what that returned.
        let least = steps.iter().filter(meanwhile).map(|step| step.least).min().unwrap_or(i64::MAX);
        (instant(replies.first()).map(|at| at.min(least) - self.error()), self.latest(replies.get(2)))
    }

    /// The latest time that a queue can have seen when a `TIME` was answered.
    fn latest(&self, reply: Option<&Reply>) -> Option<i64> {
        let latest = instant(reply).map(|at| at.max(self.ceiling.load(Ordering::SeqCst)));
        latest.map(|at| at.saturating_add(self.error()))
    }

    /// How far two readings of a server's clock may contradict each other, in ms.
    ///
    /// Valkey 9.1 reads the time of day only once in a millisecond, and adds what the processor's clock has counted
    /// since. If the machine suspends it between the two readings, its clock runs ahead for up to a millisecond, and
    /// then steps back.
    pub fn error(&self) -> i64 {
        self.error.load(Ordering::Relaxed)
    }

    /// Notes that from now on a server may decide whose clock is so far ahead of the true time.
    pub fn may_be_ahead(&self, ms: i64) {
        self.ahead.fetch_max(ms, Ordering::SeqCst);
    }

    /// Carries out what may leave the decisions to a server whose clock is behind.
    pub fn rewinding(&self, carry_out: impl FnOnce()) {
        let begun = self.now();
        carry_out();
        let apart = self.ahead.load(Ordering::SeqCst) > 0;
        self.rewinds.lock().unwrap().push(Rewind { begun, over: self.now(), apart });
    }

    pub fn rewinds(&self) -> Vec<Rewind> {
        self.rewinds.lock().unwrap().clone()
    }

    /// Notes the words in capital letters of a command.
    pub fn say(&self, line: &str) {
        let mut words = line.split(' ');
        let Some(name) = words.next().map(str::to_lowercase).filter(|name| name.starts_with("dq.")) else { return };
        let words = words.filter(|word| word.bytes().all(|letter| letter.is_ascii_uppercase()));
        let said = words.chain([""]).map(|word| (name.clone(), word.to_owned()));
        self.said.lock().unwrap().extend(said);
    }

    pub fn said(&self) -> BTreeSet<(String, String)> {
        self.said.lock().unwrap().clone()
    }

    /// The latest time that a queue can have seen on any server so far when a `TIME` was answered.
    pub fn latest_anywhere(&self, reply: Option<&Reply>) -> Option<i64> {
        let ahead = self.ahead.load(Ordering::SeqCst);
        self.latest(reply).map(|at| if ahead > 0 { at.max(local_time() + ahead) } else { at })
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
    /// Whether it follows redirections. Those of a partition may lead to the other side.
    roams: bool,
    /// The connection, and the process of the server.
    client: Option<(Client, u32)>,
}

impl<'a> Link<'a> {
    pub fn new(stage: &'a Stage, chance: Random) -> Link<'a> {
        Link { roams: true, ..Link::at(stage, Side::Many, chance) }
    }

    /// A client on one side of partitions.
    pub fn at(stage: &'a Stage, side: Side, chance: Random) -> Link<'a> {
        Link { stage, chance, ops: Vec::new(), side, roams: false, client: None }
    }

    /// Pipelines commands. If the connection breaks, there are fewer replies than commands.
    pub fn say<L: AsRef<str>>(&mut self, lines: &[L]) -> (Span, Vec<Reply>) {
        self.stage.until_allowed(self.side);
        let (mut client, server) = self.client.take().unwrap_or_else(|| self.connect());
        lines.iter().for_each(|line| self.stage.say(line.as_ref()));
        let called = self.stage.now();
        let mut replies = client.replies_to(lines);
        if self.roams {
            follow(&mut client, lines, &mut replies);
        }
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
                if !replies[0].text().contains("monotonic_clock:POSIX") {
                    self.stage.error.store(1, Ordering::Relaxed);
                }
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
    for _ in 0..HOPS {
        let mut redirections = replies.iter().enumerate();
        let first = redirections.find_map(|(nth, reply)| Some((nth, redirection(reply)?)));
        let Some((nth, (asks, port))) = first else { return };
        let Ok(mut there) = Client::connect(port, Protocol::Resp2) else { return };
        let is_repeated = !lines[0].as_ref().starts_with("MULTI") && !lines[nth].as_ref().starts_with("DQ.ACKPOP ");
        // A `TIME` shows the clock of the node that carries out the call.
        let nth = if lines[0].as_ref() == "TIME" { 0 } else { nth };
        let rest: Vec<&str> = lines[nth..].iter().map(AsRef::as_ref).collect();
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

#[test]
fn a_call_across_a_step_back_is_judged_by_both_clocks() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let (stage, mut c) = (Stage::new(), server.client());
    let calls = |called: u64, answered: u64| Span { called, answered, server: 0 };
    let (called, before) = (stage.now(), c.ask("TIME"));
    let early = calls(called, stage.now());
    stage.set_back(&mut c, &clock, 0, 3_600_000);
    let (later, after) = (stage.now(), c.ask("TIME"));
    let at = |reply: &Reply| instant(Some(reply)).expect("a time");
    // A queue that has seen nothing since goes by the new clock, and one that has seen the old clock stands still.
    let (earliest, latest) =
        stage.between(&calls(called, stage.now()), &[before.clone(), before.clone(), after.clone()]);
    assert!(earliest <= Some(at(&after)) && latest >= Some(at(&before)), "{earliest:?} {latest:?}");
    assert_eq!(stage.between(&early, std::slice::from_ref(&before)).0, Some(at(&before)));
    assert_eq!(stage.between(&calls(later, stage.now()), std::slice::from_ref(&after)).0, Some(at(&after)));
}
