//! The delay queue itself: a deterministic state machine.
//!
//! Nothing here knows of Redis, reads a clock, draws a random number, does I/O or holds a global. Every method that
//! depends on time takes `now`, and every answer follows from the state, the call and that `now`. So what is true of
//! a [`Queue`] in a test is true of it in a server, in a replica, and in an AOF replay.
//!
//! # The idea
//! A message has a [`Record`]: what clients decided on it. What it *is* at an instant (delayed, ready, in flight,
//! dead) follows from its record and the time: [`Record::state_at`]. Beside the store of records a queue keeps four
//! sorted sets, its *view*: the waiting messages in delivery order, the leases by deadline, the ends of TTLs, and
//! the dead by age. [`Queue::advance`] brings the view up to a time; each command first brings those messages up to
//! now that its answer depends on. What time does to the view is never replicated; what clients decide is, as an
//! [`Effect`] with absolute times and explicit sequences, and [`Queue::apply`] is the one way in which it comes back,
//! be it from a master, from the AOF or from another slot.
//!
//! # The rooms
//! [`time`], [`id`] and [`settings`] are the vocabulary; `record` is one message; `store` is where
//! messages lie; [`order`], `waiting` and `view` are their order; `produce`, `consume`, `settle`, `change`, `bulk`,
//! `advance`, `look` and `scan` are what can be done; `effect` and [`snapshot`] are how it travels.

#![forbid(unsafe_code)]

mod advance;
mod begun;
mod bulk;
mod change;
mod consume;
mod counters;
mod effect;
pub mod id;
mod look;
pub mod order;
mod pause;
mod produce;
mod record;
mod scan;
pub mod settings;
mod settle;
pub mod snapshot;
mod store;
pub mod time;
mod view;
mod waiting;

pub use advance::Advanced;
pub use change::{Chosen, Promoted, Redriven, Reschedule, Rescheduled, Which};
pub use consume::{Delivered, Lease, Pop};
use counters::Tally;
pub use counters::{Counts, Totals};
pub use effect::{Applied, Effect, Grant, Image, Refused, Stamped};
pub use look::Message;
pub use pause::Pause;
pub use produce::{Due, NewMessage, NotPushed, Pushed};
pub use record::{Phase, Reason, Record, State, StateKind, States, Ttl};
pub use scan::Cursor;
pub use settle::{Buried, Fate, Nack, Nacked, Verdict};

use advance::Moved;
use begun::Begun;
use id::{Id, Receipt, Sequence};
use order::{Key, OrderedKeys};
use settings::Settings;
use std::hash::Hasher;
use std::sync::Arc;
use store::{At, Bytes, Store};
use time::UnixMs;
use waiting::Waiting;

/// A delay queue.
#[derive(Debug)]
pub struct Queue {
    /// Most queues of a server have the same, and share them.
    settings: Arc<Settings>,
    pause: Pause,
    tally: Tally,
    last_sequence: Sequence,
    last_receipt: Receipt,
    /// The latest `now` that was seen: time never runs backwards within a queue. Never saved.
    clock: UnixMs,
    /// The latest instant that was brought to bear on the view: the totals count what time did up to it.
    viewed: UnixMs,
    /// The latest instant at which time alone moved a message in the view.
    moved_to: UnixMs,
    store: Store,
    /// What time moved and nobody was told of.
    moved: Moved,
    /// Messages that wait, in delivery order.
    waiting: Waiting,
    /// Leases, by (deadline, sequence).
    inflight: OrderedKeys,
    /// When the deliveries of these leases began.
    begun: Begun,
    /// Ends of the TTLs of waiting messages, by (end, sequence).
    expiring: OrderedKeys,
    /// Dead messages, by (died, sequence).
    dead: OrderedKeys,
    /// Named messages, by (hash of the name, sequence).
    names: OrderedKeys,
}

impl Queue {
    /// An empty queue.
    pub fn new(settings: Settings) -> Queue {
        Queue {
            settings: Arc::new(settings),
            pause: Pause::Off,
            tally: Tally::default(),
            last_sequence: Sequence::ZERO,
            last_receipt: Receipt::ZERO,
            clock: UnixMs::EPOCH,
            viewed: UnixMs::EPOCH,
            moved_to: UnixMs::EPOCH,
            store: Store::default(),
            moved: Moved::default(),
            waiting: Waiting::default(),
            inflight: OrderedKeys::default(),
            begun: Begun::default(),
            expiring: OrderedKeys::default(),
            dead: OrderedKeys::default(),
            names: OrderedKeys::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Lets it share the settings of another queue: `common`, where they are the same, else that becomes what it has.
    pub fn share_settings(&mut self, common: &mut Arc<Settings>) {
        if self.settings == *common {
            self.settings = Arc::clone(common);
        } else {
            *common = Arc::clone(&self.settings);
        }
    }

    /// What happened so far.
    #[inline]
    pub fn totals(&self) -> Totals {
        self.tally.totals()
    }

    /// The last sequence and the last receipt that were given.
    pub fn last_given(&self) -> (Sequence, Receipt) {
        (self.last_sequence, self.last_receipt)
    }

    /// What it holds, as of the last advance. O(1).
    pub fn counts(&self) -> Counts {
        let ready = self.waiting.ready();
        Counts {
            delayed: (self.waiting.len() - ready) as u64,
            ready: ready as u64,
            inflight: self.inflight.len() as u64,
            dead: self.dead.len() as u64,
            payload_bytes: self.store.payload_bytes(),
        }
    }

    /// Bytes on the heap. O(n / 64).
    pub fn heap_bytes(&self) -> usize {
        let sets = [&self.inflight, &self.expiring, &self.dead, &self.names];
        let own_settings = if Arc::strong_count(&self.settings) == 1 { size_of::<Settings>() } else { 0 };
        own_settings
            + self.tally.heap_bytes()
            + self.store.heap_bytes()
            + self.waiting.heap_bytes()
            + self.begun.heap_bytes()
            + sets.iter().map(|set| set.heap_bytes()).sum::<usize>()
    }

    /// Allocations to free, an estimate. O(priorities in use).
    pub fn allocations(&self) -> usize {
        let sets = [&self.inflight, &self.expiring, &self.dead, &self.names];
        self.store.allocations()
            + self.waiting.allocations()
            + sets.iter().filter(|set| !set.is_empty()).map(|set| set.allocations()).sum::<usize>()
    }

    /// The queue's own time at `now`, which never runs backwards: that of its decisions.
    pub fn seen(&self, now: UnixMs) -> UnixMs {
        self.clock.max(now)
    }

    /// The place of the message that a client means.
    fn find(&mut self, id: &Id<'_>) -> Option<At> {
        match id {
            Id::Generated(sequence) => {
                let at = self.store.find(*sequence)?;
                // A named message is known by its name only.
                (!self.store.is_named(at)).then_some(at)
            }
            Id::Named(name) => self.find_named(name),
        }
    }

    fn find_named(&self, name: &[u8]) -> Option<At> {
        let hash = hash_of(name);
        let candidates = self.names.iter_after(before(hash)).take_while(|key| key.hash() == hash);
        candidates
            .filter_map(|key| self.store.locate(key.sequence()))
            .find(|at| self.store.bytes(*at).name == Some(name))
    }

    /// Adds a message behind all others and puts it into the view of `now`.
    fn insert(&mut self, record: &Record, bytes: Bytes<'_>, now: UnixMs) {
        self.store.append(record, bytes);
        if let Some(name) = bytes.name {
            self.names.insert(Key::hashed(hash_of(name), record.sequence));
        }
        if let Some(at) = self.store.find(record.sequence) {
            self.place(at, record, now);
        }
    }

    /// Removes a message from the view and the store.
    fn remove(&mut self, at: At, record: &Record) {
        self.unplace(at, record);
        self.forget(at, record);
    }

    /// Removes a message, which is in no set any more, from the store.
    fn forget(&mut self, at: At, record: &Record) {
        if self.store.is_named(at) {
            if let Some(name) = self.store.bytes(at).name {
                self.names.remove(Key::hashed(hash_of(name), record.sequence));
            }
        }
        self.store.remove(at);
    }

    /// Replaces a record by one in which a client decided something else.
    fn rewrite(&mut self, at: At, old: &Record, new: &Record, now: UnixMs) {
        // What is due by now is ready from the start.
        self.view_at(now);
        self.unplace(at, old);
        self.store.update(at, new);
        self.place(at, new, now);
    }
}

/// SipHash, which nobody can make collide in bulk, with a fixed key: a scan goes by it.
fn hash_of(name: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(name);
    hasher.finish()
}

/// The key before every key of `hash`.
fn before(hash: u64) -> Option<Key> {
    hash.checked_sub(1).map(|less| Key::hashed(less, Sequence(u64::MAX)))
}
