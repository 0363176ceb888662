//! Slot migration as a fault: the keys of a run move from one master of a cluster to the other, one by one, while
//! clients work. Between two keys the slot is on both nodes. If the server can move a slot in one go, it does so half
//! of the time.

use super::faults::{Unrest, HOURS};
use super::history::History;
use super::stage::{Stage, QUEUE};
use crate::cluster::slots::{move_slot_at_once, slots_can_move_at_once, PATIENT_MS};
use crate::support::{eventually, Client, Clock, Cluster, Random, Reply};

/// How often the slot moves.
const MOVES: usize = 6;

/// The largest number of replies that clients receive between two moves, and between two keys.
const CALM: usize = 600;
const BETWEEN: usize = 60;

/// How long a node waits for the other one that takes a key, in ms.
const TIMEOUT_MS: u32 = 60_000;

/// The nodes of a cluster, and the slot that moves.
pub struct Moves<'a> {
    stage: &'a Stage,
    chance: Random,
    cluster: Cluster,
    slot: usize,
    /// Whether the server can move a slot in one go.
    at_once: bool,
    /// The node that has the slot.
    owner: usize,
    /// The clocks of the nodes, if they differ, and how far the first of them is ahead of the true time, in ms.
    clocks: Vec<Clock>,
    ahead: i64,
}

impl<'a> Moves<'a> {
    /// Starts a cluster whose nodes use these clocks, if there are any, and makes clients use it.
    pub fn start(stage: &'a Stage, chance: Random, clocks: Vec<Clock>) -> Moves<'a> {
        let cluster = Cluster::with(2, PATIENT_MS, &clocks, &[]);
        let slot = cluster.client(0).ask(format!("CLUSTER KEYSLOT {QUEUE}")).int() as usize;
        let owner = usize::from(cluster.client(0).ask(format!("DQ.LEN {QUEUE}")).is_error());
        stage.enter(&cluster.nodes[owner]);
        Moves { stage, chance, cluster, slot, at_once: slots_can_move_at_once(), owner, clocks, ahead: 0 }
    }

    fn some_quiet(&mut self, most: usize) {
        self.stage.until_answers(1 + self.chance.below(most));
    }

    /// Moves the slot to the other node, key by key, as resharding tools do.
    fn move_on(&mut self) {
        let (from, to, slot) = (self.owner, 1 - self.owner, self.slot);
        if self.at_once && self.chance.below(2) == 0 {
            move_slot_at_once(&self.cluster, slot, from, to);
            return self.settle(to);
        }
        let (mut source, mut target) = (self.cluster.client(from), self.cluster.client(to));
        let (old, new) = (self.cluster.id(from), self.cluster.id(to));
        target.ask(format!("CLUSTER SETSLOT {slot} IMPORTING {old}")).ok();
        source.ask(format!("CLUSTER SETSLOT {slot} MIGRATING {new}")).ok();
        let port = self.cluster.nodes[to].port();
        loop {
            self.some_quiet(BETWEEN);
            let keys: Vec<String> =
                source.ask(format!("CLUSTER GETKEYSINSLOT {slot} 100")).items().iter().map(Reply::text).collect();
            if keys.is_empty() {
                break;
            }
            let key = self.chance.one_of(&keys);
            source.ask(format!("MIGRATE 127.0.0.1 {port} {key} 0 {TIMEOUT_MS}")).ok();
        }
        target.ask(format!("CLUSTER SETSLOT {slot} NODE {new}")).ok();
        source.ask(format!("CLUSTER SETSLOT {slot} NODE {new}")).ok();
        self.settle(to);
    }

    /// Makes clients use the new owner, once both nodes know its epoch. A node that does not know it would take the
    /// slot back without an epoch of its own, and lose the slot with its keys when it hears of the other one.
    fn settle(&mut self, owner: usize) {
        let epoch = |node: usize| {
            let info = self.cluster.client(node).ask("CLUSTER INFO").text();
            info.lines().find(|line| line.starts_with("cluster_current_epoch:")).map(str::to_owned)
        };
        eventually("the nodes know of the move", || epoch(0) == epoch(1));
        self.owner = owner;
        self.stage.enter(&self.cluster.nodes[owner]);
    }
}

impl Unrest for Moves<'_> {
    fn client(&self) -> Client {
        self.cluster.client(self.owner)
    }

    fn rage(&mut self) {
        if !self.clocks.is_empty() {
            self.ahead += *self.chance.one_of(&HOURS);
            self.stage.may_be_ahead(self.ahead);
            self.chance.one_of(&self.clocks).set(self.ahead);
        }
        for _ in 0..MOVES {
            self.some_quiet(CALM);
            let stage = self.stage;
            stage.rewinding(|| self.move_on());
        }
        self.some_quiet(CALM);
        // What the node ahead has delayed would otherwise wait for hours on the other one.
        self.clocks.iter().for_each(|clock| clock.set(self.ahead));
    }

    fn settle(&mut self, _: &mut History) {}
}
