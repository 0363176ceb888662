//! The agenda: hints that say when to look at which queue, kept outside the keyspace.
//!
//! A hint is a triple (time, database, key). It may be wrong: the server does not tell a value when its key is renamed,
//! moved or swapped. So the keyspace is checked when the time of a hint has come, and a wrong hint costs one lookup.
//! The invariant is that every queue with something to do has a hint at or before that time. It holds because every
//! command on a key, every load and every client that blocks re-arms the queue.
//!
//! Each hint has a number. A queue knows the number of its own hint and a hash of the place that it refers to. A hint
//! is removed only when its time has come or its queue is freed. So a hint whose time is later than that of every hint
//! taken out so far must still exist, and most commands have to check nothing else. When a queue is freed, on any
//! thread, its hint is removed before the agenda is next used.

use std::collections::btree_map::{BTreeMap, Entry};
use std::hash::Hasher;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHasher;

pub use super::hint::{Grounds, Hint};
use super::hint::{HintId, PackedHint, PackedId};
use dq_queue::time::UnixMs;

/// A hint that was taken out of the agenda because its time has come.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    /// The hint itself.
    pub hint: Hint,
    id: HintId,
}

impl Taken {
    /// Returns whether this is the hint with which a queue was armed.
    pub fn was(&self, armed: &Armed) -> bool {
        self.id == armed.id()
    }
}

/// What a queue knows about its own hint. It is dropped together with the queue.
#[derive(Debug)]
pub struct Armed {
    at: UnixMs,
    number: NonZeroU32,
    place: Place,
    /// The ledger of its agenda. Outside tests there is one, and each queue would store its address.
    #[cfg(test)]
    ledger: &'static Ledger,
}

/// A hash of the database and the name. If a queue moves to a place with the same hash, its hint turns out to be wrong
/// when its time has come, and the walk for lost queues finds the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

impl Place {
    fn hash(db: i32, key: &[u8]) -> Place {
        let mut hasher = FxHasher::default();
        hasher.write_i32(db);
        hasher.write(key);
        Place(hasher.finish() as u32)
    }
}

impl Armed {
    fn id(&self) -> HintId {
        (self.at, self.number)
    }

    fn ledger(&self) -> &'static Ledger {
        #[cfg(test)]
        return self.ledger;
        #[cfg(not(test))]
        return &OF_THE_SERVER;
    }

    /// Returns whether the hint certainly exists, refers to the queue at `key` and is not later than `at`. For most
    /// commands this is the only check. O(1).
    pub fn suffices(&self, at: UnixMs, db: i32, key: &[u8]) -> bool {
        self.at <= at && self.at.as_ms() > self.ledger().taken.load(Relaxed) && self.place == Place::hash(db, key)
    }
}

/// What queues and the agenda share. It is thread-safe, because a queue may be freed on any thread.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The latest time of any hint that was taken out, as Unix time in milliseconds.
    taken: AtomicU64,
    /// The hints of queues that were freed and that are still to be removed. Nothing else passes from a free on a
    /// background thread to the main thread.
    struck_out: Mutex<Vec<HintId>>,
}

impl Ledger {
    const fn new() -> Ledger {
        Ledger { taken: AtomicU64::new(0), struck_out: Mutex::new(Vec::new()) }
    }

    fn struck_out(&self) -> MutexGuard<'_, Vec<HintId>> {
        self.struck_out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ledger of the server's agenda. Each test uses a ledger of its own.
static OF_THE_SERVER: Ledger = Ledger::new();

impl Drop for Armed {
    fn drop(&mut self) {
        self.ledger().struck_out().push(self.id());
    }
}

/// All hints, ordered by time.
#[derive(Debug)]
pub struct Agenda {
    ledger: &'static Ledger,
    hints: BTreeMap<PackedId, PackedHint>,
    /// The number of the newest hint.
    last: NonZeroU32,
}

impl Default for Agenda {
    fn default() -> Self {
        Agenda::with(&OF_THE_SERVER)
    }
}

impl Agenda {
    /// Creates an agenda without hints. The hints of queues that are freed are recorded in `ledger`.
    pub fn with(ledger: &'static Ledger) -> Agenda {
        Agenda { ledger, hints: BTreeMap::new(), last: NonZeroU32::MIN }
    }

    /// The time of the earliest hint.
    pub fn earliest(&self) -> Option<UnixMs> {
        self.hints.first_key_value().map(|(id, _)| id.at())
    }

    /// Ensures that the queue at `key`, whose hint is `armed`, has a hint that is not later than `at`. Returns whether
    /// a new hint was needed. O(log n).
    pub fn arm(&mut self, armed: &mut Option<Armed>, at: UnixMs, db: i32, key: &[u8]) -> bool {
        let place = Place::hash(db, key);
        let stands = |armed: &Armed| self.hints.contains_key(&armed.id().into());
        if armed.as_ref().is_some_and(|armed| armed.at <= at && armed.place == place && stands(armed)) {
            return false;
        }
        let (at, number) = self.add(at, PackedHint::new(db, key, Grounds::Armed));
        // Assigning drops and so removes the queue's previous hint, under whatever name.
        *armed = Some(Armed {
            at,
            number,
            place,
            #[cfg(test)]
            ledger: self.ledger,
        });
        true
    }

    /// Adds a hint for `key` without knowing what the key holds.
    pub fn look_at(&mut self, at: UnixMs, db: i32, key: &[u8]) {
        self.add(at, PackedHint::new(db, key, Grounds::Asked));
    }

    /// Adds a hint, due at once, for a `key` at which the walk has met a queue.
    pub fn look_at_met(&mut self, db: i32, key: &[u8]) {
        self.add(UnixMs::EPOCH, PackedHint::new(db, key, Grounds::Met));
    }

    fn add(&mut self, at: UnixMs, hint: PackedHint) -> HintId {
        self.strike_out();
        // Numbers repeat after `u32::MAX` hints. A number that is in use at the same time is skipped.
        loop {
            self.last = self.last.checked_add(1).unwrap_or(NonZeroU32::MIN);
            if let Entry::Vacant(vacant) = self.hints.entry((at, self.last).into()) {
                vacant.insert(hint);
                return (at, self.last);
            }
        }
    }

    /// Takes out the earliest hint if its time has come.
    pub fn take(&mut self, now: UnixMs) -> Option<Taken> {
        self.strike_out();
        let first = self.hints.first_entry().filter(|first| first.key().at() <= now)?;
        self.ledger.taken.fetch_max(first.key().at().as_ms(), Relaxed);
        let (id, hint) = first.remove_entry();
        Some(Taken { hint: hint.unpacked(), id: id.unpacked() })
    }

    /// Removes the hints of queues that were freed.
    fn strike_out(&mut self) {
        for id in self.ledger.struck_out().drain(..) {
            self.hints.remove(&id.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    /// An agenda with a ledger that no other test has.
    fn agenda() -> Agenda {
        Agenda::with(Box::leak(Box::default()))
    }

    #[test]
    fn a_queue_has_one_hint_at_its_earliest_time() {
        let (mut agenda, mut armed) = (agenda(), None);
        assert!(agenda.arm(&mut armed, at(50), 0, b"q"));
        assert!(!agenda.arm(&mut armed, at(70), 0, b"q"));
        assert!(agenda.arm(&mut armed, at(20), 0, b"q"));
        assert_eq!(agenda.take(at(19)), None);
        assert!(agenda
            .take(at(20))
            .is_some_and(|taken| taken.hint.grounds == Grounds::Armed && taken.was(armed.as_ref().unwrap())));
        assert_eq!(agenda.take(at(99)), None);
        assert!(agenda.arm(&mut armed, at(70), 0, b"q"));
        assert_eq!(agenda.earliest(), Some(at(70)));
    }

    #[test]
    fn a_hint_that_was_taken_out_does_not_stand_whatever_came_after() {
        let (mut agenda, mut armed) = (agenda(), None);
        agenda.arm(&mut armed, at(50), 0, b"q");
        agenda.take(at(50));
        agenda.look_at(UnixMs::EPOCH, 0, b"other");
        agenda.take(at(50));
        assert!(agenda.arm(&mut armed, at(60), 0, b"q"), "it has to be made again");
        assert_eq!(agenda.earliest(), Some(at(60)));
    }

    #[test]
    fn a_renamed_queue_gets_a_hint_under_its_new_name_only() {
        let (mut agenda, mut armed) = (agenda(), None);
        agenda.arm(&mut armed, at(50), 0, b"q");
        assert!(agenda.arm(&mut armed, at(50), 0, b"r"));
        assert!(agenda.arm(&mut armed, at(50), 1, b"r"));
        assert_eq!(agenda.take(at(50)).map(|taken| (taken.hint.db, taken.hint.key)), Some((1, b"r"[..].into())));
        assert_eq!(agenda.take(at(50)), None);
    }

    #[test]
    fn a_hint_suffices_at_its_place_until_its_time_has_come() {
        let (mut agenda, mut armed) = (agenda(), None);
        agenda.arm(&mut armed, at(5_000), 0, b"q");
        let suffices = |at: u64, db, key: &[u8]| armed.as_ref().unwrap().suffices(UnixMs::new(at), db, key);
        assert!(suffices(5_000, 0, b"q") && suffices(6_000, 0, b"q"));
        assert!(!suffices(4_999, 0, b"q"), "something is to be done earlier");
        assert!(!suffices(6_000, 0, b"r") && !suffices(6_000, 1, b"q"), "it has moved");
        assert!(agenda.take(at(5_000)).is_some());
        assert!(!suffices(6_000, 0, b"q"), "it was taken out");
    }

    #[test]
    fn numbers_that_come_again_take_no_hint_away() {
        let (mut agenda, mut first, mut second) = (agenda(), None, None);
        agenda.arm(&mut first, at(50), 0, b"first");
        agenda.last = NonZeroU32::new(agenda.last.get() - 1).unwrap();
        agenda.arm(&mut second, at(50), 0, b"second");
        assert_eq!(agenda.hints.len(), 2);
    }

    #[test]
    fn a_queue_that_is_freed_leaves_no_hint() {
        let (mut agenda, mut armed) = (agenda(), None);
        agenda.arm(&mut armed, at(50), 0, b"q");
        std::thread::spawn(move || drop(armed)).join().unwrap();
        assert_eq!(agenda.take(at(50)), None);
    }
}
