//! Which queue wants to be looked at when: hints, kept outside the keyspace.
//!
//! A hint is (time, database, key). It is no truth: the server tells a value nothing when its key is renamed, moved
//! or swapped, so a hint is checked against the keyspace when its time comes, and costs one look-up where it was
//! wrong. What counts is that a queue which has something to do has a hint at or before that time, and this follows
//! from what is certain: each command on a key, each load and each client that starts to wait sees to it.

use std::collections::BTreeSet;

use crate::queue::time::UnixMs;

/// A key to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hint {
    /// When.
    pub at: UnixMs,
    /// Its database.
    pub db: i32,
    /// Its name.
    pub key: Box<[u8]>,
}

/// What a queue knows of its own hint: under which name it is kept, and for when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    at: UnixMs,
    place: u64,
}

impl Armed {
    /// Whether this hint, unless it was taken out, is good for a look at `at` at the queue of this place.
    #[inline]
    pub fn serves(&self, at: UnixMs, place: u64) -> bool {
        self.place == place && self.at <= at
    }

    /// When.
    #[inline]
    pub fn at(&self) -> UnixMs {
        self.at
    }
}

/// All hints, by time.
#[derive(Debug, Default)]
pub struct Agenda {
    hints: BTreeSet<Hint>,
    /// Hints up to this time were taken out.
    taken_to: UnixMs,
}

impl Agenda {
    /// The earliest time that somebody wants.
    pub fn earliest(&self) -> Option<UnixMs> {
        self.hints.first().map(|hint| hint.at)
    }

    /// Sees to a hint at `at`, or earlier, for the queue at `key`, which knows of `armed`. Returns what the queue
    /// should know from now on.
    pub fn arm(&mut self, armed: Option<Armed>, at: UnixMs, db: i32, key: &[u8]) -> Armed {
        let place = place(db, key);
        // Only a hint that was not taken out yet, and under the present name, is worth anything.
        let standing = armed.filter(|armed| armed.place == place && armed.at > self.taken_to);
        match standing {
            Some(armed) if armed.at <= at => armed,
            _ => {
                let mut hint = Hint { at, db, key: key.into() };
                if let Some(late) = standing {
                    hint.at = late.at;
                    self.hints.remove(&hint);
                    hint.at = at;
                }
                self.hints.insert(hint);
                // A hint for the past is taken out in the next run, whatever the clock says then.
                Armed { at: at.max(self.taken_to), place }
            }
        }
    }

    /// Asks for a look at `key`, of which nothing is known yet.
    pub fn look_at(&mut self, at: UnixMs, db: i32, key: &[u8]) {
        self.hints.insert(Hint { at, db, key: key.into() });
    }

    /// Takes out the earliest hint whose time has come.
    pub fn take(&mut self, now: UnixMs) -> Option<Hint> {
        let due = self.hints.first().is_some_and(|hint| hint.at <= now);
        let hint = if due { self.hints.pop_first() } else { None }?;
        self.taken_to = hint.at;
        Some(hint)
    }
}

/// A key's name and database as one number, so that a queue notices that it was renamed: the multiplicative hash of
/// Firefox and rustc ("FxHash"), fast, and a collision does no more than delay a look.
#[inline]
pub fn place(db: i32, key: &[u8]) -> u64 {
    const SEED: u64 = 0x517c_c1b7_2722_0a95;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(SEED);
    let mut words = key.chunks_exact(8);
    let mut hash = mix(key.len() as u64, u64::from(db.unsigned_abs()));
    for word in &mut words {
        hash = mix(hash, word.try_into().map_or(0, u64::from_le_bytes));
    }
    words.remainder().iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    #[test]
    fn a_queue_has_one_hint_at_its_earliest_time() {
        let mut agenda = Agenda::default();
        let first = agenda.arm(None, at(50), 0, b"q");
        assert_eq!(agenda.arm(Some(first), at(70), 0, b"q"), first);
        let earlier = agenda.arm(Some(first), at(20), 0, b"q");
        assert_eq!(agenda.hints.len(), 1);
        assert_eq!(agenda.earliest(), Some(at(20)));
        assert_eq!(agenda.take(at(19)), None);
        assert!(agenda.take(at(20)).is_some());
        assert_ne!(agenda.arm(Some(earlier), at(70), 0, b"q"), earlier);
        assert_eq!(agenda.earliest(), Some(at(70)));
    }

    #[test]
    fn a_renamed_queue_gets_a_hint_under_its_new_name() {
        let mut agenda = Agenda::default();
        let armed = agenda.arm(None, at(50), 0, b"q");
        let renamed = agenda.arm(Some(armed), at(50), 0, b"r");
        assert_ne!(armed, renamed);
        let moved = agenda.arm(Some(renamed), at(50), 1, b"r");
        assert_ne!(moved, renamed);
        assert_eq!(agenda.hints.len(), 3);
    }
}
