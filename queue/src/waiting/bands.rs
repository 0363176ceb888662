//! The waiting messages of each priority, called a band, and the sums over all bands.

use super::super::id::Sequence;
use super::super::order::{Key, Keys};
use super::super::time::UnixMs;

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

    /// Recomputes what the band keeps about `boundary`. O(log n).
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

/// The bands, highest priority first. There is almost always one, and it is stored in place.
#[derive(Debug)]
pub(super) enum Bands {
    /// The only band, which is empty if no message waits.
    One(Band),
    Many(Box<Many>),
}

impl Default for Bands {
    fn default() -> Self {
        Bands::One(Band::default())
    }
}

/// Two bands or more, none of which is empty, and their sums.
#[derive(Debug, Default)]
pub(super) struct Many {
    pub bands: Vec<Band>,
    pub len: usize,
    /// The number of messages that are due by the boundary.
    pub ready: usize,
    /// The earliest due time beyond the boundary, unless the message with that due time was removed.
    pub next_due: NextDue,
}

/// The earliest due time of all bands. Finding it takes a look at each of them, so the removal of the message that has
/// it only marks it as unknown: a command that removes many messages then looks once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NextDue {
    #[default]
    Nothing,
    At(UnixMs),
    Unknown,
}

impl From<Option<UnixMs>> for NextDue {
    fn from(due: Option<UnixMs>) -> Self {
        due.map_or(NextDue::Nothing, NextDue::At)
    }
}

impl Many {
    pub fn of(bands: Vec<Band>) -> Many {
        let mut many = Many { len: bands.iter().map(|band| band.keys.len()).sum(), bands, ..Many::default() };
        many.sum_up();
        many
    }

    /// Recomputes what follows from the boundary, after that of each band.
    pub fn sum_up(&mut self) {
        self.ready = self.bands.iter().map(|band| band.ready).sum();
        self.next_due = first_of(&self.bands).into();
    }

    /// Adds a message. O(log n + priorities in use).
    pub fn insert(&mut self, priority: i8, due: UnixMs, sequence: Sequence, boundary: UnixMs) {
        let at = self.bands.iter().position(|band| band.priority <= priority).unwrap_or(self.bands.len());
        if self.bands.get(at).is_none_or(|band| band.priority != priority) {
            self.bands.insert(at, Band::new(priority, Keys::default()));
        }
        let Some(band) = self.bands.get_mut(at) else { return };
        band.insert(due, sequence, boundary);
        self.len += 1;
        if due <= boundary {
            self.ready += 1;
            return;
        }
        match self.next_due {
            NextDue::Nothing => self.next_due = NextDue::At(due),
            NextDue::At(next) if due < next => self.next_due = NextDue::At(due),
            NextDue::At(_) | NextDue::Unknown => {}
        }
    }

    /// Records that a message with this due time was removed from the band at index `at`.
    pub fn removed(&mut self, at: usize, due: UnixMs, boundary: UnixMs) {
        let Some(band) = self.bands.get_mut(at) else { return };
        band.removed(due, boundary);
        if band.keys.is_empty() {
            self.bands.remove(at);
        }
        self.len -= 1;
        if due <= boundary {
            self.ready -= 1;
        } else if self.next_due == NextDue::At(due) {
            self.next_due = NextDue::Unknown;
        }
    }
}

/// The earliest due time of all bands beyond the boundary.
pub(super) fn first_of(bands: &[Band]) -> Option<UnixMs> {
    bands.iter().filter_map(|band| band.next_due).min()
}

impl Bands {
    /// These bands, which are sorted. Empty ones are left out.
    pub fn of(mut bands: Vec<Band>) -> Bands {
        bands.retain(|band| !band.keys.is_empty());
        if bands.len() > 1 {
            return Bands::Many(Box::new(Many::of(bands)));
        }
        bands.pop().map_or_else(Bands::default, Bands::One)
    }

    /// All bands.
    #[inline]
    pub fn all(&self) -> &[Band] {
        match self {
            Bands::One(band) => std::slice::from_ref(band),
            Bands::Many(many) => &many.bands,
        }
    }

    /// Stores a band that is the only one left in place.
    #[inline]
    pub fn mend(&mut self) {
        if let Bands::Many(many) = self {
            if many.bands.len() < 2 {
                *self = Bands::of(std::mem::take(&mut many.bands));
            }
        }
    }

    /// Adds a message of another priority than that of the only band.
    #[cold]
    pub fn insert_second(&mut self, priority: i8, due: UnixMs, sequence: Sequence, boundary: UnixMs) {
        if let Bands::One(band) = std::mem::take(self) {
            let mut many = Many::of(vec![band]);
            many.insert(priority, due, sequence, boundary);
            *self = Bands::Many(Box::new(many));
        }
    }
}
