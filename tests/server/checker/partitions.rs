//! Partitions: a master and its replicas, with three sentinels or in a cluster with two other masters, know each other
//! by proxies, which cut the master off while some clients still reach it. A replica takes over, both accept commands,
//! and the old master follows at last. Everything that was answered is accounted for, and nothing is lost that replicas
//! had confirmed.

use super::branches;
use super::crew::{Crew, MOST_CLIENTS};
use super::faults::{Unrest, STEPS};
use super::history::{History, Split};
use super::producer::Confirms;
use super::report::Report;
use super::stage::{Link, Side, Stage, QUEUE};
use super::{seed, settings, Queue, QUEUES, SEED};
use crate::support::cluster::{attach, node_args, unite, SLOTS};
use crate::support::{eventually, Client, Clock, Protocol, Proxy, Random, Reply, Sentinels, Server, Traffic, Way};
use std::net::{IpAddr, Ipv4Addr};
use Side::{Few, Many};

/// Silence after which the sentinels, or the nodes of a cluster, replace a master by themselves. It is so long that a
/// slow machine does not cause it: a run tells them when. For nodes it is shorter, because those of Valkey 9.1 connect
/// to each other again only so many times in it.
const SILENCE_MS: u32 = 600_000;
const NODE_SILENCE_MS: u32 = 120_000;

/// A key in the slot of the queue, to which the test writes itself.
const PROBE: &str = "SET {run}probe x";

/// The replicas of a master.
const REPLICAS: usize = 2;

/// The other masters of a cluster.
const OTHER_MASTERS: usize = 2;

/// How many replies clients receive in a quiet phase, at most, and how many more they may receive while the servers are
/// being changed.
const CALM: usize = 300;
const MORE: usize = 100;

/// What knows who the master is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Sentinels,
    /// A cluster with two other masters.
    Cluster,
}

/// The clocks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clocks {
    True,
    /// Those of the servers that take each other's place differ, by 100 ms to six hours.
    Differ,
}

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

/// What a run has.
#[derive(Clone, Copy, Debug)]
struct Cast {
    group: Group,
    guard: Guard,
    clocks: Clocks,
    queue: Queue,
}

impl Cast {
    /// True clocks, and a queue with default settings.
    fn new(group: Group, guard: Guard) -> Cast {
        Cast { group, guard, clocks: Clocks::True, queue: Queue::Plain }
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
    clock: Clock,
    /// The address from which it connects to the others.
    source: IpAddr,
    /// What the other servers and the sentinels use.
    peers: Proxy,
    /// What the other nodes of a cluster use for the cluster bus.
    bus: Proxy,
    /// What clients use.
    clients: Proxy,
}

impl Node {
    fn start(number: usize, group: Group, args: &[&str]) -> Node {
        let (peers, bus, clients) = (Proxy::new(), Proxy::new(), Proxy::new());
        let source = Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(number).expect("few nodes"));
        let (from, port, bus_port) = (source.to_string(), peers.port().to_string(), bus.port().to_string());
        let silence = NODE_SILENCE_MS.to_string();
        let announced = match group {
            Group::Sentinels => vec!["--replica-announce-ip", "127.0.0.1", "--replica-announce-port", &port],
            Group::Cluster => {
                let ports = ["--cluster-announce-port", &port, "--cluster-announce-bus-port", &bus_port];
                [&node_args(&silence)[..], &["--cluster-announce-ip", "127.0.0.1"], &ports].concat()
            }
        };
        let clock = Clock::new();
        let server = Server::with_clock(&clock, &[&["--bind-source-addr", &from], &announced[..], args].concat());
        peers.lead_to(server.port());
        clients.lead_to(server.port());
        if group == Group::Cluster {
            let port = server.client().ask("CONFIG GET cluster-port").items()[1].text();
            bus.lead_to(port.parse().expect("a port"));
        }
        Node { server, clock, source: source.into(), peers, bus, clients }
    }

    /// Asks until it answers, because a sentinel that gives a server another role closes its connections.
    fn ask_until(&self, what: &str, line: &str, is_right: impl Fn(&Reply) -> bool) {
        eventually(what, || {
            let reply = Client::connect(self.server.port(), Protocol::Resp2).and_then(|mut c| c.try_ask(line));
            reply.is_ok_and(|reply| is_right(&reply))
        });
    }

    fn follow(&self, master: &Node, group: Group) {
        // The nodes of a cluster tell each other.
        if group == Group::Sentinels {
            let line = format!("REPLICAOF 127.0.0.1 {}", master.peers.port());
            self.ask_until("it is told to follow", &line, |reply| !reply.is_error());
        }
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
        self.ask_until("it accepts writes", PROBE, |reply| !reply.is_error());
    }

    fn until_it_refuses(&self) {
        self.ask_until("it refuses writes", PROBE, Reply::is_error);
    }
}

/// Makes the clocks of a master and its replicas differ from each other by a step or two. Returns how far one of them
/// is ahead of the true time at most, in ms.
fn set_clocks_apart(nodes: &[Node], chance: &mut Random) -> i64 {
    let step = *chance.one_of(&STEPS);
    let mut steps = vec![0, step, 2 * step];
    nodes.iter().for_each(|node| node.clock.set(steps.swap_remove(chance.below(steps.len()))));
    2 * step
}

/// The servers of a run, and the partitions that they are given.
struct Nemesis<'a> {
    stage: &'a Stage,
    chance: Random,
    guard: Guard,
    group: Group,
    faults: &'a [Fault],
    /// The master and its replicas, then the other masters of a cluster.
    nodes: Vec<Node>,
    sentinels: Option<Sentinels>,
    /// The number of the master.
    master: usize,
    /// How far the clock of any server is ahead of the true time, in ms.
    ahead: i64,
    splits: Vec<Split>,
}

impl<'a> Nemesis<'a> {
    fn new(stage: &'a Stage, mut chance: Random, cast: Cast, faults: &'a [Fault]) -> Nemesis<'a> {
        let Cast { group, guard, .. } = cast;
        let others = if group == Group::Cluster { OTHER_MASTERS } else { 0 };
        let nodes: Vec<Node> = (0..=REPLICAS + others).map(|n| Node::start(n, group, guard.args())).collect();
        let ahead = if cast.clocks == Clocks::Differ { set_clocks_apart(&nodes[..=REPLICAS], &mut chance) } else { 0 };
        stage.may_be_ahead(ahead);
        let (shard, others) = nodes.split_at(1 + REPLICAS);
        let sentinels = match group {
            Group::Sentinels => {
                shard[1..].iter().for_each(|node| node.follow(&shard[0], group));
                Some(Sentinels::watch_at(&shard[0].server, shard[0].peers.port(), REPLICAS, SILENCE_MS))
            }
            Group::Cluster => {
                let mut masters: Vec<&Server> = others.iter().map(|node| &node.server).collect();
                let slot = masters[0].client().ask(format!("CLUSTER KEYSLOT {QUEUE}")).int() as usize;
                masters.insert(slot * (1 + OTHER_MASTERS) / SLOTS, &shard[0].server);
                let replicas: Vec<&Server> = shard[1..].iter().map(|node| &node.server).collect();
                unite(&masters, &replicas);
                attach(&replicas, &shard[0].server, &[masters, replicas.clone()].concat());
                None
            }
        };
        let nemesis =
            Nemesis { stage, chance, guard, group, faults, nodes, sentinels, master: 0, ahead, splits: Vec::new() };
        nemesis.master().until_it_accepts();
        [Many, Few].iter().for_each(|side| nemesis.enter(*side));
        nemesis
    }

    fn master(&self) -> &Node {
        &self.nodes[self.master]
    }

    /// Cuts the master off, also from what it has connected to itself.
    fn cut(&self, cut: Cut) {
        let master = self.master();
        // Where others have connected to it, and where it has connected to others.
        let ways: &[(Way, Way)] = match cut {
            Cut::Both => &[(Way::In, Way::Out), (Way::Out, Way::In)],
            Cut::Outgoing => &[(Way::Out, Way::In)],
            Cut::Incoming => &[(Way::In, Way::Out)],
        };
        for (here, there) in ways {
            for proxy in [&master.peers, &master.bus, &master.clients] {
                proxy.set(*here, Traffic::Dropped);
            }
            for proxy in self.nodes.iter().flat_map(|node| [&node.peers, &node.bus]) {
                proxy.set_from(master.source, *there, Traffic::Dropped);
            }
        }
    }

    fn mend(&self) {
        self.nodes.iter().flat_map(|node| [&node.peers, &node.bus, &node.clients]).for_each(Proxy::mend);
    }

    /// Makes a replica take over. Returns its number.
    fn replace_master(&mut self) -> usize {
        let Some(sentinels) = &self.sentinels else {
            let replicas: Vec<usize> = (0..=REPLICAS).filter(|n| *n != self.master).collect();
            let chosen = *self.chance.one_of(&replicas);
            let is_ok = |reply: &Reply| !reply.is_error();
            self.nodes[chosen].ask_until("a replica takes over", "CLUSTER FAILOVER TAKEOVER", is_ok);
            return chosen;
        };
        let port = sentinels.replace_master();
        self.nodes.iter().position(|node| node.peers.port() == port).expect("one of the servers")
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

    /// Sets all clocks to the one that was ahead: what that had delayed would otherwise wait for hours.
    fn set_clocks_right(&self) {
        self.nodes.iter().for_each(|node| node.clock.set(self.ahead));
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
        self.cut(cut);
        self.stage.leave_at(Many);
        if self.guard != Guard::MinReplicas {
            self.some_answers(Few);
        }
        let stage = self.stage;
        stage.rewinding(|| {
            self.master = self.replace_master();
            self.master().until_it_is_master();
        });
        let at = self.stage.now();
        // A node of a cluster that hears the others learns that it has been replaced.
        let learns = self.group == Group::Cluster && cut == Cut::Outgoing;
        if learns {
            self.stage.leave_at(Few);
        }
        let shard = self.nodes.iter().take(1 + REPLICAS).enumerate();
        for (_, node) in shard.filter(|(n, _)| *n != old && *n != self.master) {
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
        if refused.is_none() && !learns {
            // More than its clients had under way when the replica took over.
            self.stage.allow(MORE);
            self.stage.until_answers_at(Few, 2 * MOST_CLIENTS);
        }
        self.stage.leave_at(Few);
        self.mend();
        self.nodes[old].follow(self.master(), self.group);
        let old = self.nodes[old].server.process();
        self.splits.push(Split { old, at, refused, healed: self.stage.now() });
        self.enter(Few);
    }
}

impl Unrest for Nemesis<'_> {
    fn client(&self) -> Client {
        self.master().server.client()
    }

    fn rage(&mut self) {
        let mut left = self.faults.to_vec();
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
                    self.cut(cut);
                    self.some_answers(Few);
                    self.mend();
                }
            }
        }
        self.some_quiet();
    }

    fn settle(&mut self, history: &mut History) {
        // The drain needs no protection.
        let unprotect = "CONFIG SET min-replicas-to-write 0";
        self.master().ask_until("it needs no replicas", unprotect, |reply| !reply.is_error());
        self.set_clocks_right();
        history.splits = std::mem::take(&mut self.splits);
        branches::separate(history);
    }
}

/// Carries out one run: its faults, then the drain, then the check.
fn run(cast: Cast, faults: &[Fault], seed: u64) -> Report {
    let Cast { guard, queue, .. } = cast;
    let stage = Stage::new();
    let chance = |who: usize| Random::seeded(seed.wrapping_mul(64).wrapping_add(who as u64));
    let (settings, history, target) = settings(queue, &mut chance(60));
    let mut nemesis = Nemesis::new(&stage, chance(0), cast, faults);
    // Half of the clients of each kind are on each side.
    let link = |who: usize| Link::at(&stage, [Few, Many][who % 2], chance(who));
    let (confirms, replicas) = (guard.confirms(), REPLICAS as i64);
    let crew = Crew { stage: &stage, link: &link, queue, settings, target, confirms, replicas };
    crew.work(&mut nemesis, 1, history)
}

/// Carries out a run, and fails unless its history is free of faults.
fn must_be_clean(cast: Cast, faults: &[Fault], seed: u64) -> Report {
    println!("partitions, {cast:?}, {faults:?}, DQ_SEED={seed}");
    let report = run(cast, faults, seed);
    println!("{report}");
    assert!(report.findings.is_empty(), "{cast:?}, {faults:?}, DQ_SEED={seed}: {report}");
    assert!(report.acknowledged > 0 && report.delivered + report.forwarded > 0, "the run shows something: {report}");
    assert!((report.runs > 0 && report.batches > 0) == (cast.queue == Queue::Limited), "{report}");
    report
}

#[test]
fn a_master_that_goes_on_in_a_partition_leaves_nothing_behind() {
    let report = must_be_clean(Cast::new(Group::Sentinels, Guard::Nothing), &[Fault::Split(Cut::Both)], seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn what_wait_confirmed_survives_partitions_of_every_kind() {
    let faults = [Fault::LateSplit, Fault::Split(Cut::Outgoing), Fault::Blip(Cut::Both)];
    let report = must_be_clean(Cast::new(Group::Sentinels, Guard::Wait), &faults, seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn a_partition_between_servers_whose_clocks_differ_is_like_any_other() {
    let faults = [Fault::Split(Cut::Both), Fault::LateSplit, Fault::Split(Cut::Incoming)];
    let cast = Cast { clocks: Clocks::Differ, ..Cast::new(Group::Sentinels, Guard::Wait) };
    let report = must_be_clean(cast, &faults, seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn a_partition_keeps_the_limits_of_groups() {
    let cast = Cast { queue: Queue::Grouped, ..Cast::new(Group::Sentinels, Guard::Wait) };
    let report = must_be_clean(cast, &[Fault::Split(Cut::Both), Fault::LateSplit], seed(SEED));
    assert!(report.abandoned > 0 && report.grouped > 0, "the old master went on: {report}");
}

#[test]
fn a_partition_keeps_limits_schedules_and_batches() {
    let cast = Cast { queue: Queue::Limited, ..Cast::new(Group::Sentinels, Guard::Wait) };
    let report = must_be_clean(cast, &[Fault::Split(Cut::Both), Fault::LateSplit], seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn what_is_forwarded_in_a_partition_is_there_once() {
    let cast = Cast { queue: Queue::Forwarding, ..Cast::new(Group::Sentinels, Guard::Wait) };
    let report = must_be_clean(cast, &[Fault::Split(Cut::Both), Fault::LateSplit], seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn what_waitaof_confirmed_survives_a_partition() {
    if has_waitaof() {
        must_be_clean(Cast::new(Group::Sentinels, Guard::WaitAof), &[Fault::Split(Cut::Incoming)], seed(SEED));
    } else {
        eprintln!("skipped: this server has no WAITAOF");
    }
}

#[test]
fn a_master_that_needs_replicas_refuses_writes_in_a_partition() {
    must_be_clean(Cast::new(Group::Sentinels, Guard::MinReplicas), &[Fault::Split(Cut::Both)], seed(SEED));
}

#[test]
fn a_cluster_master_that_goes_on_in_a_partition_leaves_nothing_behind() {
    let report = must_be_clean(Cast::new(Group::Cluster, Guard::Nothing), &[Fault::Split(Cut::Both)], seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn what_wait_confirmed_survives_partitions_of_a_cluster() {
    let faults = [Fault::LateSplit, Fault::Split(Cut::Outgoing), Fault::Split(Cut::Incoming)];
    let report = must_be_clean(Cast::new(Group::Cluster, Guard::Wait), &faults, seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn a_partition_of_a_cluster_whose_clocks_differ_is_like_any_other() {
    let cast = Cast { clocks: Clocks::Differ, ..Cast::new(Group::Cluster, Guard::Wait) };
    let report = must_be_clean(cast, &[Fault::Split(Cut::Both), Fault::LateSplit], seed(SEED));
    assert!(report.abandoned > 0, "the old master went on: {report}");
}

#[test]
fn a_cluster_master_that_needs_replicas_refuses_writes_in_a_partition() {
    must_be_clean(Cast::new(Group::Cluster, Guard::MinReplicas), &[Fault::Split(Cut::Both)], seed(SEED));
}

/// Goes through all partitions of servers with sentinels, with each protection.
pub fn soak(seed: u64) {
    soak_of(Group::Sentinels, seed);
}

/// The same for a cluster.
pub fn soak_of_cluster(seed: u64) {
    soak_of(Group::Cluster, seed);
}

fn soak_of(group: Group, seed: u64) {
    let mut guards = vec![Guard::Nothing, Guard::Wait, Guard::MinReplicas];
    guards.extend(has_waitaof().then_some(Guard::WaitAof));
    for guard in guards {
        let cast = Cast::new(group, guard);
        for queue in QUEUES {
            must_be_clean(Cast { queue, ..cast }, &ALL, seed);
        }
        for queue in QUEUES {
            must_be_clean(Cast { clocks: Clocks::Differ, queue, ..cast }, &ALL, seed);
        }
    }
}

fn has_waitaof() -> bool {
    !Server::start().client().ask("COMMAND INFO waitaof").items()[0].is_null()
}
