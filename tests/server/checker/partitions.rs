//! Partitions: three servers and three sentinels know each other by proxies, which cut a master off from its replicas
//! while some clients still reach it. A replica takes over, both accept commands, and the old master follows at last.
//! Everything that was answered is accounted for, and nothing is lost that replicas had confirmed.

use super::branches;
use super::consumer::{Consumer, LEASES};
use super::faults::until_replicas_have_it;
use super::history::Split;
use super::producer::{Confirms, Habits, Producer};
use super::report::Report;
use super::stage::{Link, Side, Stage, QUEUE};
use super::{check, seed, settings, Queue, SEED};
use crate::support::{eventually, Client, Protocol, Proxy, Random, Reply, Sentinels, Server, Traffic, Way};
use Side::{Few, Many};

/// Silence after which the sentinels replace a master by themselves. It is so long that a slow machine does not cause
/// it: a run tells them when.
const SILENCE_MS: u32 = 600_000;

/// The replicas of a master.
const REPLICAS: usize = 2;

/// The producers and the consumers, each on a side.
const PRODUCERS: [Side; 3] = [Many, Many, Few];
const CONSUMERS: [Side; 4] = [Many, Many, Few, Few];

/// How many replies clients receive in a quiet phase, at most, and how many more they may receive while the servers are
/// being changed.
const CALM: usize = 300;
const MORE: usize = 100;

/// What protects the producers of a run from a failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    Nothing,
    /// They wait until all replicas have their pushes.
    Wait,
    /// They wait until all replicas have synced their pushes to their disks.
    WaitAof,
    /// The master refuses writes when it has lost its replicas.
    MinReplicas,
}

impl Guard {
    fn args(self) -> &'static [&'static str] {
        match self {
            Guard::Nothing | Guard::Wait => &[],
            Guard::WaitAof => &["--appendonly", "yes", "--appendfsync", "always"],
            Guard::MinReplicas => &["--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"],
        }
    }

    fn confirms(self) -> Confirms {
        match self {
            Guard::Nothing | Guard::MinReplicas => Confirms::Nothing,
            Guard::Wait => Confirms::Wait(REPLICAS as i64),
            Guard::WaitAof => Confirms::WaitAof(REPLICAS as i64),
        }
    }
}

/// What is cut, seen from the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Both,
    /// The others do not hear the master, which hears them.
    Outgoing,
    /// The master does not hear the others, which hear it.
    Incoming,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The master is cut off, and a replica takes over.
    Split(Cut),
    /// What the master sends is delayed, so that its replicas lag behind. Then it is cut off.
    LateSplit,
    /// The master is cut off for a while, and nobody takes over.
    Blip(Cut),
}

const ALL: [Fault; 7] = [
    Fault::Split(Cut::Both),
    Fault::Split(Cut::Outgoing),
    Fault::Split(Cut::Incoming),
    Fault::LateSplit,
    Fault::Blip(Cut::Both),
    Fault::Blip(Cut::Outgoing),
    Fault::Blip(Cut::Incoming),
];

/// A server that the other servers, and the clients on the side of most of them, reach only by proxies.
struct Node {
    server: Server,
    /// What the other servers and the sentinels use.
    peers: Proxy,
    /// What clients use.
    clients: Proxy,
}

impl Node {
    fn start(args: &[&str]) -> Node {
        let (peers, clients) = (Proxy::new(), Proxy::new());
        let port = peers.port().to_string();
        let own = ["--replica-announce-ip", "127.0.0.1", "--replica-announce-port", &port];
        let server = Server::with(&[&own, args].concat());
        peers.lead_to(server.port());
        clients.lead_to(server.port());
        Node { server, peers, clients }
    }

    fn cut(&self, cut: Cut) {
        for proxy in [&self.peers, &self.clients] {
            if cut != Cut::Incoming {
                proxy.set(Way::Out, Traffic::Dropped);
            }
            if cut != Cut::Outgoing {
                proxy.set(Way::In, Traffic::Dropped);
            }
        }
    }

    fn mend(&self) {
        self.peers.mend();
        self.clients.mend();
    }

    /// Asks until it answers, because a sentinel that gives a server another role closes its connections.
    fn ask_until(&self, what: &str, line: &str, is_right: impl Fn(&Reply) -> bool) {
        eventually(what, || {
            let reply = Client::connect(self.server.port(), Protocol::Resp2).and_then(|mut c| c.try_ask(line));
            reply.is_ok_and(|reply| is_right(&reply))
        });
    }

    fn follow(&self, master: &Node) {
        let line = format!("REPLICAOF 127.0.0.1 {}", master.peers.port());
        self.ask_until("it is told to follow", &line, |reply| !reply.is_error());
        self.until_it_follows(master);
    }

    fn until_it_follows(&self, master: &Node) {
        let port = format!("master_port:{}\r\n", master.peers.port());
        self.ask_until("it follows the master", "INFO replication", |reply| {
            let text = reply.text();
            ["role:slave\r\n", &port, "master_link_status:up\r\n"].iter().all(|line| text.contains(line))
        });
    }

    fn until_it_is_master(&self) {
        let is_master = |reply: &Reply| reply.text().contains("role:master\r\n");
        self.ask_until("the replica has taken over", "INFO replication", is_master);
    }

    fn until_it_accepts(&self) {
        self.ask_until("it accepts writes", "SET probe x", |reply| !reply.is_error());
    }

    fn until_it_refuses(&self) {
        self.ask_until("it refuses writes", "SET probe x", Reply::is_error);
    }
}

/// The servers of a run, and the partitions that they are given.
struct Nemesis<'a> {
    stage: &'a Stage,
    chance: Random,
    guard: Guard,
    nodes: Vec<Node>,
    sentinels: Sentinels,
    /// The number of the master.
    master: usize,
    splits: Vec<Split>,
}

impl<'a> Nemesis<'a> {
    fn new(stage: &'a Stage, chance: Random, guard: Guard) -> Nemesis<'a> {
        let nodes: Vec<Node> = (0..=REPLICAS).map(|_| Node::start(guard.args())).collect();
        nodes[1..].iter().for_each(|node| node.follow(&nodes[0]));
        let sentinels = Sentinels::watch_at(&nodes[0].server, nodes[0].peers.port(), REPLICAS, SILENCE_MS);
        Nemesis { stage, chance, guard, nodes, sentinels, master: 0, splits: Vec::new() }
    }

    fn master(&self) -> &Node {
        &self.nodes[self.master]
    }

    /// Makes the clients of one side use the current master.
    fn enter(&self, side: Side) {
        let node = self.master();
        let port = match side {
            Many => node.clients.port(),
            Few => node.server.port(),
        };
        self.stage.enter_at(side, port, &node.server);
    }

    fn rage(&mut self, faults: &[Fault]) {
        let mut left = faults.to_vec();
        while !left.is_empty() {
            self.some_quiet();
            match left.swap_remove(self.chance.below(left.len())) {
                Fault::Split(cut) => self.split(cut),
                Fault::LateSplit => {
                    let ms = *self.chance.one_of(&[1, 20, 100]);
                    self.master().peers.set(Way::Out, Traffic::Delayed(ms));
                    self.some_quiet();
                    self.split(Cut::Both);
                }
                Fault::Blip(cut) => {
                    self.master().cut(cut);
                    self.some_answers(Few);
                    self.master().mend();
                }
            }
        }
        self.some_quiet();
    }

    fn some_quiet(&mut self) {
        let answers = 1 + self.chance.below(CALM);
        self.stage.allow(answers + MORE);
        self.stage.until_answers(answers);
    }

    /// Lets the clients of one side work.
    fn some_answers(&mut self, side: Side) {
        let answers = 1 + self.chance.below(MORE);
        self.stage.allow(answers + MORE);
        self.stage.until_answers_at(side, answers);
    }

    /// Cuts the master off, lets a replica take over while it goes on, and makes it follow in the end.
    fn split(&mut self, cut: Cut) {
        let old = self.master;
        self.master().cut(cut);
        self.stage.leave_at(Many);
        if self.guard != Guard::MinReplicas {
            self.some_answers(Few);
        }
        let port = self.sentinels.replace_master();
        let is_new = |node: &Node| node.peers.port() == port;
        self.master = self.nodes.iter().position(is_new).expect("one of the servers");
        self.master().until_it_is_master();
        let at = self.stage.now();
        for (_, node) in self.nodes.iter().enumerate().filter(|(n, _)| *n != old && *n != self.master) {
            node.until_it_follows(self.master());
        }
        // The clients notice that they have lost the old master, and find the new one.
        self.nodes[old].clients.hang_up();
        self.master().until_it_accepts();
        self.enter(Many);
        let refused = (self.guard == Guard::MinReplicas).then(|| {
            self.nodes[old].until_it_refuses();
            self.stage.now()
        });
        self.some_answers(Many);
        if refused.is_none() {
            // More than its clients had under way when the replica took over.
            self.stage.allow(MORE);
            self.stage.until_answers_at(Few, 2 * (PRODUCERS.len() + CONSUMERS.len()));
        }
        self.stage.leave_at(Few);
        self.nodes[old].mend();
        self.nodes[old].follow(self.master());
        let old = self.nodes[old].server.process();
        self.splits.push(Split { old, at, refused, healed: self.stage.now() });
        self.enter(Few);
    }
}

/// Carries out one run: its faults, then the drain, then the check.
fn run(guard: Guard, faults: &[Fault], seed: u64) -> Report {
    let stage = Stage::new();
    let chance = |who: usize| Random::seeded(seed.wrapping_mul(64).wrapping_add(who as u64));
    let (settings, mut history, _) = settings(Queue::Plain, &mut chance(60));
    let mut nemesis = Nemesis::new(&stage, chance(0), guard);
    nemesis.master().until_it_accepts();
    let mut c = nemesis.master().server.client();
    c.create(format!("{QUEUE} {settings}"));
    until_replicas_have_it(&mut c, REPLICAS as i64);
    [Many, Few].iter().for_each(|side| nemesis.enter(*side));
    std::thread::scope(|scope| {
        let habits = Habits { confirms: guard.confirms(), repeats: false, groups: false };
        let mut workers = Vec::new();
        for (n, side) in PRODUCERS.into_iter().enumerate() {
            let producer = Producer::new(Link::at(&stage, side, chance(1 + n)), n, habits);
            workers.push(scope.spawn(move || producer.work()));
        }
        for (n, side) in CONSUMERS.into_iter().enumerate() {
            let consumer = Consumer::new(Link::at(&stage, side, chance(1 + PRODUCERS.len() + n)), LEASES);
            workers.push(scope.spawn(move || consumer.work()));
        }
        // The clients must end even if something fails here.
        let raged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| nemesis.rage(faults)));
        stage.end();
        for worker in workers {
            history.ops.extend(worker.join().expect("no reply was wrong"));
        }
        raged.expect("the servers did as they were told");
        // The drain needs no protection.
        let unprotect = "CONFIG SET min-replicas-to-write 0";
        nemesis.master().ask_until("it needs no replicas", unprotect, |reply| !reply.is_error());
        let drain = Consumer::new(Link::at(&stage, Few, chance(63)), LEASES);
        history.ops.extend(drain.drain());
    });
    history.splits = std::mem::take(&mut nemesis.splits);
    branches::separate(&mut history);
    check::check(&history)
}

/// Carries out a run, and fails unless its history is free of faults.
fn must_be_clean(guard: Guard, faults: &[Fault], seed: u64) -> Report {
    println!("partitions, {guard:?}, {faults:?}, DQ_SEED={seed}");
    let report = run(guard, faults, seed);
    println!("{report}");
    assert!(report.findings.is_empty(), "{guard:?}, {faults:?}, DQ_SEED={seed}: {report}");
    assert!(report.acknowledged > 0 && report.delivered > 0, "the run shows something: {report}");
    report
}

#[test]
fn a_master_that_goes_on_in_a_partition_leaves_nothing_behind() {
    let report = must_be_clean(Guard::Nothing, &[Fault::Split(Cut::Both)], seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn what_wait_confirmed_survives_partitions_of_every_kind() {
    let faults = [Fault::LateSplit, Fault::Split(Cut::Outgoing), Fault::Blip(Cut::Both)];
    let report = must_be_clean(Guard::Wait, &faults, seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn what_waitaof_confirmed_survives_a_partition() {
    if has_waitaof() {
        must_be_clean(Guard::WaitAof, &[Fault::Split(Cut::Incoming)], seed(SEED));
    } else {
        eprintln!("skipped: this server has no WAITAOF");
    }
}

#[test]
fn a_master_that_needs_replicas_refuses_writes_in_a_partition() {
    must_be_clean(Guard::MinReplicas, &[Fault::Split(Cut::Both)], seed(SEED));
}

/// Goes through all partitions with each protection.
pub fn soak(seed: u64) {
    let mut guards = vec![Guard::Nothing, Guard::Wait, Guard::MinReplicas];
    guards.extend(has_waitaof().then_some(Guard::WaitAof));
    for guard in guards {
        must_be_clean(guard, &ALL, seed);
    }
}

fn has_waitaof() -> bool {
    !Server::start().client().ask("COMMAND INFO waitaof").items()[0].is_null()
}
