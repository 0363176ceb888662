//! The faults of a checker run.

use super::history::History;
use super::stage::{Stage, WORKER};
use crate::support::{eventually, Client, Clock, Random, Reply, Server};
use std::time::Instant;

/// How long a server is suspended, in ms. Some values are longer than the short leases, and some are shorter.
const PAUSES: [u128; 3] = [50, 250, 600];

/// How long writes wait at most while two servers are compared, in ms.
const PAUSE_MS: u32 = 600_000;

/// The largest number of replies that clients receive between two faults.
const CALM: usize = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server is killed and started again.
    Kill,
    /// The server is shut down and started again.
    Restart,
    /// The process of the server is suspended for a while.
    Stop,
    /// The server is busy for a while.
    Busy,
    /// The connection of a client is cut.
    Cut,
    /// The AOF is rewritten. The next faults may happen while the rewrite runs.
    Rewrite,
    /// The master is killed, and its replica takes over.
    Takeover,
    /// The master hands over to its replica in a planned failover.
    Failover,
    /// The replica is suspended for a while. Then the master is killed, and the replica takes over.
    LateTakeover,
    /// The clock of the server is set ahead, and stays so.
    Ahead,
    /// The clock is set back, and later it is right again.
    Behind,
    /// The same, and the server is killed and started again meanwhile.
    KillBehind,
    /// In planned failovers, the replica takes over, whose clock is ahead, and then the old master, whose clock is
    /// behind until it is set right.
    Skew,
    /// A server is restarted with the module of the next format, or with that of this one if it has had the other: the
    /// only one, or the replica, which then takes over in a planned failover.
    Upgrade,
}

/// The faults of one server with an AOF, which must not lose anything.
pub const ALONE: [Fault; 8] =
    [Fault::Kill, Fault::Kill, Fault::Restart, Fault::Stop, Fault::Busy, Fault::Cut, Fault::Rewrite, Fault::Rewrite];

/// The faults of a master and a replica.
pub const PAIR: [Fault; 7] =
    [Fault::Takeover, Fault::Takeover, Fault::LateTakeover, Fault::Failover, Fault::Stop, Fault::Busy, Fault::Cut];

/// What gives servers their faults.
pub trait Unrest {
    /// A connection to the server that has all queues now.
    fn client(&self) -> Client;

    /// Gives each of its faults once.
    fn rage(&mut self);

    /// Makes the servers well again once the clients have ended, and notes in the history what takeovers may have lost.
    fn settle(&mut self, history: &mut History);
}

/// The faults of a server with an AOF whose clock is wrong.
pub const CLOCKS: [Fault; 8] =
    [Fault::Ahead, Fault::Ahead, Fault::Behind, Fault::Behind, Fault::KillBehind, Fault::Kill, Fault::Stop, Fault::Cut];

/// The faults of a master and a replica whose clocks differ.
pub const SKEWED: [Fault; 4] = [Fault::Stop, Fault::Busy, Fault::Cut, Fault::Skew];

/// The faults of a server with an AOF that is upgraded and downgraded twice.
pub const UPGRADED_ALONE: [Fault; 8] = [
    Fault::Upgrade,
    Fault::Upgrade,
    Fault::Upgrade,
    Fault::Upgrade,
    Fault::Kill,
    Fault::Rewrite,
    Fault::Rewrite,
    Fault::Cut,
];

/// The faults of a master and a replica that are both upgraded and both downgraded, without a takeover that could lose
/// anything.
pub const UPGRADED_PAIR: [Fault; 7] =
    [Fault::Upgrade, Fault::Upgrade, Fault::Upgrade, Fault::Upgrade, Fault::Failover, Fault::Stop, Fault::Cut];

/// How far a clock is set ahead or back, in ms.
pub const STEPS: [i64; 4] = [100, 5_000, HOURS[0], HOURS[1]];
pub const HOURS: [i64; 2] = [3_600_000, 3 * 3_600_000];

/// The servers of a run, and the faults that they are given.
pub struct Nemesis<'a> {
    pub stage: &'a Stage,
    pub chance: Random,
    pub master: Server,
    pub replica: Option<Server>,
    /// The clock of the master, and how far it is ahead of the true time, in ms.
    pub clock: Clock,
    pub ahead: i64,
    /// How far the clock of the replica is ahead of that of the master.
    pub skew: i64,
    pub faults: &'static [Fault],
    /// The instants at which a replica took over from a killed master.
    pub losses: Vec<u64>,
}

impl Unrest for Nemesis<'_> {
    fn client(&self) -> Client {
        self.master.client()
    }

    /// Injects these faults in a random order, with a quiet phase before each fault and at the end.
    fn rage(&mut self) {
        let mut left = self.faults.to_vec();
        while !left.is_empty() {
            self.some_quiet();
            let fault = left.swap_remove(self.chance.below(left.len()));
            self.cause(fault);
        }
        self.some_quiet();
    }

    fn settle(&mut self, history: &mut History) {
        history.losses = std::mem::take(&mut self.losses);
    }
}

impl Nemesis<'_> {
    fn some_quiet(&mut self) {
        self.stage.until_answers(1 + self.chance.below(CALM));
    }

    fn cause(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => self.kill(),
            Fault::Restart => {
                self.stage.leave();
                self.master.restart_from_aof();
                self.stage.enter(&self.master);
            }
            Fault::Stop => self.stand_still(),
            Fault::Busy => {
                let pause = *self.chance.one_of(&PAUSES) as f64 / 1000.0;
                self.master.client().ask(format!("DEBUG SLEEP {pause}")).ok();
            }
            Fault::Cut => self.cut(),
            Fault::Rewrite => drop(self.master.client().ask("BGREWRITEAOF")),
            Fault::Takeover => self.take_over(),
            Fault::LateTakeover => {
                self.replica.as_ref().expect("a replica").signal("STOP");
                self.some_quiet();
                self.take_over();
            }
            Fault::Failover => self.fail_over(),
            Fault::Ahead => {
                self.ahead += *self.chance.one_of(&STEPS);
                self.clock.set(self.ahead);
            }
            Fault::Behind | Fault::KillBehind => {
                let step = *self.chance.one_of(&STEPS);
                self.set_back(step);
                self.some_quiet();
                if fault == Fault::KillBehind {
                    let stage = self.stage;
                    stage.rewinding(|| self.kill());
                    self.some_quiet();
                }
                self.clock.set(self.ahead);
            }
            Fault::Skew => self.change_clocks(),
            Fault::Upgrade if self.replica.is_some() => self.upgrade_the_replica(),
            Fault::Upgrade => {
                self.stage.leave();
                self.master.change_module();
                self.master.restart_from_aof();
                self.stage.enter(&self.master);
            }
        }
    }

    /// Hands over to the server whose clock is ahead, and back. This is done once: a server whose clock has jumped
    /// considers its link dead at some later time, which may be in the middle of a failover.
    fn change_clocks(&mut self) {
        if self.skew == 0 {
            return;
        }
        self.ahead += self.skew;
        self.stage.may_be_ahead(self.ahead);
        self.fail_over();
        self.some_quiet();
        let stage = self.stage;
        stage.rewinding(|| self.fail_over());
        self.some_quiet();
        self.clock.set(self.ahead);
        self.skew = 0;
    }

    fn kill(&mut self) {
        self.stage.leave();
        self.master.kill9();
        self.master.boot();
        self.stage.enter(&self.master);
    }

    /// Sets the clock back. The time of a queue stands still until the clock has caught up.
    fn set_back(&mut self, ms: i64) {
        let mut c = self.master.client();
        self.stage.set_back(&mut c, &self.clock, self.ahead, ms);
        // The server has timeouts on this clock: it would keep clients blocked for as long as the step.
        c.ask("CLIENT KILL TYPE normal").int();
    }

    fn stand_still(&mut self) {
        let pause = *self.chance.one_of(&PAUSES);
        self.master.signal("STOP");
        let start = Instant::now();
        eventually("the pause is over", || start.elapsed().as_millis() > pause);
        self.master.signal("CONT");
    }

    fn cut(&mut self) {
        let mut c = self.master.client();
        let list = c.ask("CLIENT LIST").text();
        let name = format!("name={WORKER}");
        let workers: Vec<&str> = list.lines().filter(|line| line.split(' ').any(|field| field == name)).collect();
        let Some(worker) = (!workers.is_empty()).then(|| *self.chance.one_of(&workers)) else { return };
        let id = worker.split(' ').find_map(|field| field.strip_prefix("id=")).expect("an id");
        // The connection may have been closed already.
        c.ask(format!("CLIENT KILL ID {id}"));
    }

    fn take_over(&mut self) {
        self.stage.leave();
        self.master.kill9();
        self.losses.push(self.stage.now());
        let replica = self.replica.as_mut().expect("a replica");
        // A suspended server is resumed first. It still reads what had reached this machine before the takeover.
        replica.signal("CONT");
        replica.client().ask("REPLICAOF NO ONE").ok();
        self.stage.enter(replica);
        std::mem::swap(&mut self.master, replica);
        replica.boot();
        follow(replica, &self.master);
    }

    fn upgrade_the_replica(&mut self) {
        let replica = self.replica.as_mut().expect("a replica");
        replica.change_module();
        // A server that is writing its first AOF refuses to shut down.
        let mut r = replica.client();
        let rewrites = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"];
        eventually("no AOF is written", || rewrites.iter().all(|state| r.info("persistence", state) == "0"));
        replica.restart_from_aof();
        follow(replica, &self.master);
        compare(&self.master, replica);
        self.fail_over();
    }

    /// A planned failover, which must not lose anything.
    fn fail_over(&mut self) {
        let replica = self.replica.as_mut().expect("a replica");
        self.stage.leave();
        let (mut old, mut new) = (self.master.client(), replica.client());
        old.ask("FAILOVER").ok();
        let role = |c: &mut Client| c.info("replication", "role");
        eventually("the roles have changed", || role(&mut old) == "slave" && role(&mut new) == "master");
        self.stage.enter(replica);
        std::mem::swap(&mut self.master, replica);
        eventually("the link is up", || old.info("replication", "master_link_status") == "up");
    }
}

/// Waits until a master that makes its clients wait and its replica have the same data.
fn compare(master: &Server, replica: &Server) {
    let (mut c, mut r) = (master.client(), replica.client());
    c.ask(format!("CLIENT PAUSE {PAUSE_MS} WRITE")).ok();
    eventually("the replica equals its master", || c.ask("DEBUG DIGEST") == r.ask("DEBUG DIGEST"));
    c.ask("CLIENT UNPAUSE").ok();
}

/// Makes a server a replica of another one, and waits until it has all data.
pub fn follow(replica: &Server, master: &Server) {
    let mut c = replica.client();
    c.ask(format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
    eventually("the link is up", || c.info("replication", "master_link_status") == "up");
    until_replicas_have_it(&mut master.client(), 1);
}

/// Waits until so many replicas have what this client wrote.
pub fn until_replicas_have_it(c: &mut Client, replicas: i64) {
    eventually("the replicas listen", || c.ask(format!("WAIT {replicas} 1000")) == Reply::Int(replicas));
}
