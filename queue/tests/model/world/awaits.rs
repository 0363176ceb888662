//! Clients that wait for the end of a message: each is notified when that message ends, whenever it began to wait.
//!
//! The tables are those of the server in their simplest form: a client is found by the sequence that the queue showed
//! when it last looked, or by the name, and looks again only if an effect or a death by time tells it to.

use super::words::id_of;
use super::{ms, World};
use dq_queue::id::{Id, Sequence};
use dq_queue::{Effect, News, Phase, Queue, Shown, StateKind};
use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::BTreeSet;

/// The clients that wait on one server, by the ids of their messages.
#[derive(Default)]
pub struct Awaits(BTreeMap<Vec<u8>, Waiting>);

struct Waiting {
    sequence: Sequence,
    /// Whether the client has been notified.
    is_notified: bool,
}

impl Awaits {
    pub fn note(&mut self, effect: &Effect<'_>) {
        effect.news(|news| match news {
            News::Ended(sequence) => self.waiting_for(sequence).for_each(|waiting| waiting.is_notified = true),
            News::LookAgain => self.look_again(),
            News::Named(name, sequence) => {
                self.0.get_mut(name).into_iter().for_each(|waiting| waiting.sequence = sequence);
            }
            News::Renewed(before, sequence) => self.waiting_for(before).for_each(|waiting| waiting.sequence = sequence),
        });
    }

    fn waiting_for(&mut self, sequence: Sequence) -> impl Iterator<Item = &mut Waiting> {
        self.0.values_mut().filter(move |waiting| waiting.sequence == sequence)
    }

    pub fn look_again(&mut self) {
        self.0.values_mut().for_each(|waiting| waiting.is_notified = true);
    }

    /// Lets the notified clients look at `now`. Those whose message has ended leave. If the timer of the
    /// server may be still to tell what time has ended, `untold` has the ids of messages that are gone because of it.
    fn look(&mut self, queue: &Queue, now: u64, untold: Option<&BTreeSet<Vec<u8>>>) {
        self.0.retain(|id, waiting| {
            let shown = queue.find(ms(now), &Id::parse(id).unwrap());
            let is_over = shown.is_none_or(|shown| shown.is_over());
            let is_untold = untold.is_some_and(|untold| is_dead_by_time(shown) || untold.contains(id));
            assert!(!is_over || waiting.is_notified || is_untold, "nobody notified the client that waits for {id:?}");
            if let (true, Some(shown)) = (std::mem::take(&mut waiting.is_notified), shown) {
                waiting.sequence = shown.sequence();
            }
            !is_over
        });
    }

    /// Lets a client begin to wait for each message that is to be completed. If one waits for it already, `which` says
    /// whether another one begins.
    fn enter(&mut self, queue: &Queue, now: u64, ids: &[Vec<u8>], which: Entering) {
        for id in ids {
            let Some(shown) = queue.find(ms(now), &Id::parse(id).unwrap()).filter(|shown| !shown.is_over()) else {
                continue;
            };
            match self.0.entry(id.clone()) {
                Entry::Vacant(place) => drop(place.insert(Waiting { sequence: shown.sequence(), is_notified: false })),
                Entry::Occupied(_) if which == Entering::First => {}
                Entry::Occupied(mut held) => held.get_mut().sequence = shown.sequence(),
            }
        }
    }
}

fn is_dead_by_time(shown: Option<Shown<'_>>) -> bool {
    let Some(Shown::Message(message)) = shown else { return false };
    message.state.kind() == StateKind::Dead && !matches!(message.record.phase, Phase::Dead { .. })
}

/// Which clients begin to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entering {
    First,
    Again,
}

/// The clients of one server: for each message one that has waited since it saw the message first, and others that
/// begin to wait at every step.
#[derive(Default)]
pub struct Clients {
    first: Awaits,
    again: Awaits,
}

impl Clients {
    pub fn each(&mut self, mut change: impl FnMut(&mut Awaits)) {
        change(&mut self.first);
        change(&mut self.again);
    }

    fn step(&mut self, queue: &Queue, now: u64, ids: &[Vec<u8>], untold: Option<&BTreeSet<Vec<u8>>>) {
        self.each(|awaits| awaits.look(queue, now, untold));
        self.first.enter(queue, now, ids, Entering::First);
        self.again.enter(queue, now, ids, Entering::Again);
    }
}

/// The clients of all servers.
#[derive(Default)]
pub struct AllClients {
    pub eager: Clients,
    pub lazy: Clients,
    pub replica: Clients,
}

impl AllClients {
    pub fn each(&mut self, mut change: impl FnMut(&mut Awaits)) {
        [&mut self.eager, &mut self.lazy, &mut self.replica].into_iter().for_each(|of| of.each(&mut change));
    }
}

impl World {
    /// Checks that all clients whose messages have ended were notified, and lets others begin to wait if there are few
    /// messages. Time had ended the messages with the ids `dead` before the last effect.
    pub(super) fn check_awaits(&mut self, dead: &BTreeSet<Vec<u8>>) {
        let dead = dead.union(&self.dead_ids()).cloned().collect();
        let ids: Vec<Vec<u8>> = self.model.messages.iter().take(50).map(id_of).collect();
        let (clients, now) = (&mut self.clients, self.clock);
        // What follows a batch may have an id for which a client waits.
        let ends = |queue: &mut Queue, clients: &mut Clients| {
            if queue.take_batch_end() {
                clients.each(Awaits::look_again);
            }
        };
        ends(&mut self.eager.queue, &mut clients.eager);
        ends(&mut self.lazy.queue, &mut clients.lazy);
        if let Some(replica) = &mut self.replica {
            ends(replica, &mut clients.replica);
        }
        clients.eager.step(&self.eager.queue, now, &ids, None);
        clients.lazy.step(&self.lazy.queue, now, &ids, Some(&dead));
        if let Some(replica) = &self.replica {
            clients.replica.step(replica, now.saturating_add_signed(self.skew), &ids, Some(&dead));
        }
    }

    /// The ids of the messages that are dead.
    pub(super) fn dead_ids(&self) -> BTreeSet<Vec<u8>> {
        let dead = self.model.messages.iter().filter(|message| message.kind() == StateKind::Dead);
        dead.map(id_of).collect()
    }
}
