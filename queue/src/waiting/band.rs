//! The waiting messages of one priority, called a band.

use crate::id::Sequence;
use crate::sorted_set::{Key, Keys};
use crate::time::UnixMs;

/// The waiting messages of one priority.
#[derive(Debug, Default)]
pub(super) struct Band {
    pub priority: i8,
    pub keys: Keys,
    /// The number of them that are due by the boundary.
    pub ready: usize,
    /// The earliest due time beyond the boundary.
    pub next_due: Option<UnixMs>,
}

impl Band {
    pub fn new(priority: i8, keys: Keys) -> Band {
        Band { priority, keys, ready: 0, next_due: None }
    }

    /// Adds a message. O(log n).
    #[inline]
    pub fn insert(&mut self, due: UnixMs, sequence: Sequence, boundary: UnixMs) {
        self.keys.insert(Key::at(due, sequence));
        if due <= boundary {
            self.ready += 1;
        } else if self.next_due.is_none_or(|next| due < next) {
            self.next_due = Some(due);
        }
    }

    /// Recomputes what the band stores for `boundary`. O(log n).
    pub fn recount(&mut self, boundary: UnixMs) {
        self.ready = self.keys.rank(Key::end_of(boundary));
        self.next_due = self.due_after(boundary);
    }

    pub fn due_after(&self, now: UnixMs) -> Option<UnixMs> {
        self.keys.first_after(Key::end_of(now)).map(Key::time)
    }

    /// Records that a message with this due time was removed.
    pub fn removed(&mut self, due: UnixMs, boundary: UnixMs) {
        if due <= boundary {
            self.ready -= 1;
        } else if self.next_due == Some(due) {
            self.next_due = self.due_after(boundary);
        }
    }
}
