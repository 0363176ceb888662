//! Which queue wants to be looked at when: hints, kept outside the keyspace.
//!
//! A hint is (time, database, key). It is no truth: the server tells a value nothing when its key is renamed, moved
//! or swapped, so a hint is checked against the keyspace when its time comes, and costs one look-up where it was
//! wrong. What counts is that a queue which has something to do has a hint at or before that time, and this follows
//! from what is certain: each command on a key, each load and each client that starts to wait sees to it.
//!
//! Each hint has a number. A queue knows that of its own, and asks here whether it still stands: there is no second
//! opinion. A queue that is freed, on whatever thread, has its hint struck out before the next look.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::queue::time::UnixMs;

/// A key to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Its database.
    pub db: i32,
    /// Its name.
    pub key: Box<[u8]>,
    /// Whether a queue was there. If it is not when the time comes, it has gone somewhere else.
    pub owned: bool,
}

/// When a hint is due, and its number.
type Due = (UnixMs, u64);

/// What a queue knows of its own hint. Dropped with the queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Armed(Due);

/// Hints of queues that were freed. The one thing that a free on a background thread hands over.
static STRUCK_OUT: Mutex<Vec<Due>> = Mutex::new(Vec::new());

impl Drop for Armed {
    fn drop(&mut self) {
        STRUCK_OUT.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// All hints, by time.
#[derive(Debug, Default)]
pub struct Agenda {
    hints: BTreeMap<Due, Hint>,
    last: u64,
}

impl Agenda {
    /// The earliest time that somebody wants.
    pub fn earliest(&self) -> Option<UnixMs> {
        self.hints.first_key_value().map(|((at, _), _)| *at)
    }

    /// Sees to it that `armed`, the hint of the queue at `key`, stands, and not later than `at`. Whether it had to
    /// be changed. O(log n).
    pub fn arm(&mut self, armed: &mut Option<Armed>, at: UnixMs, db: i32, key: &[u8]) -> bool {
        if let Some(Armed(due)) = armed {
            let standing = self.hints.get(due).is_some_and(|hint| hint.db == db && *hint.key == *key);
            if standing && due.0 <= at {
                return false;
            }
        }
        // What it had, under whatever name, is struck out as it is dropped.
        *armed = Some(Armed(self.add(at, Hint { db, key: key.into(), owned: true })));
        true
    }

    /// Asks for a look at `key`, of which nothing is known.
    pub fn look_at(&mut self, at: UnixMs, db: i32, key: &[u8]) {
        self.add(at, Hint { db, key: key.into(), owned: false });
    }

    fn add(&mut self, at: UnixMs, hint: Hint) -> Due {
        self.strike_out();
        self.last += 1;
        let due = (at, self.last);
        self.hints.insert(due, hint);
        due
    }

    /// Takes out the earliest hint whose time has come.
    pub fn take(&mut self, now: UnixMs) -> Option<Hint> {
        self.strike_out();
        let first = self.hints.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    /// Removes the hints of queues that are gone.
    fn strike_out(&mut self) {
        let mut gone = STRUCK_OUT.lock().unwrap_or_else(PoisonError::into_inner);
        for due in gone.drain(..) {
            self.hints.remove(&due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    /// An agenda whose numbers no other test has: what is struck out is shared by the process.
    fn agenda(first: u64) -> Agenda {
        Agenda { last: first * 1_000, ..Agenda::default() }
    }

    #[test]
    fn a_queue_has_one_hint_at_its_earliest_time() {
        let (mut agenda, mut armed) = (agenda(1), None);
        assert!(agenda.arm(&mut armed, at(50), 0, b"q"));
        assert!(!agenda.arm(&mut armed, at(70), 0, b"q"));
        assert!(agenda.arm(&mut armed, at(20), 0, b"q"));
        assert_eq!(agenda.take(at(19)), None);
        assert!(agenda.take(at(20)).is_some_and(|hint| hint.owned));
        assert_eq!(agenda.take(at(99)), None);
        assert!(agenda.arm(&mut armed, at(70), 0, b"q"));
        assert_eq!(agenda.earliest(), Some(at(70)));
    }

    #[test]
    fn a_hint_that_was_taken_out_does_not_stand_whatever_came_after() {
        let (mut agenda, mut armed) = (agenda(2), None);
        agenda.arm(&mut armed, at(50), 0, b"q");
        agenda.take(at(50));
        agenda.look_at(UnixMs::EPOCH, 0, b"other");
        agenda.take(at(50));
        assert!(agenda.arm(&mut armed, at(60), 0, b"q"), "it has to be made anew");
        assert_eq!(agenda.earliest(), Some(at(60)));
    }

    #[test]
    fn a_renamed_queue_gets_a_hint_under_its_new_name_only() {
        let (mut agenda, mut armed) = (agenda(3), None);
        agenda.arm(&mut armed, at(50), 0, b"q");
        assert!(agenda.arm(&mut armed, at(50), 0, b"r"));
        assert!(agenda.arm(&mut armed, at(50), 1, b"r"));
        assert_eq!(agenda.take(at(50)).map(|hint| (hint.db, hint.key)), Some((1, b"r"[..].into())));
        assert_eq!(agenda.take(at(50)), None);
    }

    #[test]
    fn a_queue_that_is_freed_leaves_no_hint() {
        let (mut agenda, mut armed) = (agenda(4), None);
        agenda.arm(&mut armed, at(50), 0, b"q");
        std::thread::spawn(move || drop(armed)).join().unwrap();
        assert_eq!(agenda.take(at(50)), None);
    }
}
