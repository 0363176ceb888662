//! Looking at all messages, bit by bit.
//!
//! A scan goes through the messages without a name back in push order, then through the named ones in the order of
//! their names' hashes. In both what is there keeps its place, whatever is pushed, acked and replaced meanwhile: a
//! generated id has its sequence for life, and a name keeps its hash when its message is replaced. So each is met, and
//! met once; and a round ends, since what is pushed comes before where it began, or somewhere among the names.

use super::super::id::Sequence;
use super::super::order::Key;
use super::super::record::StateKind;
use super::super::store::At;
use super::super::time::UnixMs;
use super::super::Queue;

/// Where a scan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// At its start.
    Start,
    /// Before this one, among the messages without a name.
    Before(Sequence),
    /// Behind the names whose hash begins with these 63 bits.
    Behind(u64),
}

/// Tells the named from the others in a printed cursor: no sequence is so large before the year 2248.
const NAMED: u64 = 1 << 63;

impl Cursor {
    /// The cursor that a number stands for.
    pub const fn from_number(number: u64) -> Cursor {
        match number {
            0 => Cursor::Start,
            _ if number & NAMED != 0 => Cursor::Behind(number & !NAMED),
            _ => Cursor::Before(Sequence(number)),
        }
    }

    /// The number that stands for it.
    pub const fn number(self) -> u64 {
        match self {
            Cursor::Start => 0,
            Cursor::Before(sequence) => sequence.0 & !NAMED,
            Cursor::Behind(hash) => hash | NAMED,
        }
    }
}

/// What a step of a scan has seen.
struct Page {
    found: Vec<Sequence>,
    /// Messages that it may still look at.
    left: usize,
}

impl Queue {
    /// Looks at the next `count` messages from `cursor` on, and returns those of a state (or all), and the cursor for the
    /// next look; none where this was the last. O(count + log n).
    pub fn scan(
        &self,
        now: UnixMs,
        cursor: Cursor,
        count: usize,
        kind: Option<StateKind>,
    ) -> (Vec<Sequence>, Option<Cursor>) {
        let now = self.own_time(now);
        let is_wanted = |at: At| kind.is_none_or(|kind| self.messages.record(at).state_at(now).kind() == kind);
        let mut page = Page { found: Vec::new(), left: count };
        let next = match cursor {
            // Nothing but names.
            Cursor::Start if self.messages.named() == self.messages.len() => {
                self.scan_named(&mut page, None, is_wanted)
            }
            Cursor::Start => self.scan_unnamed(&mut page, None, is_wanted),
            Cursor::Before(sequence) => self.scan_unnamed(&mut page, Some(sequence), is_wanted),
            Cursor::Behind(hash) => self.scan_named(&mut page, Some(hash), is_wanted),
        };
        (page.found, next)
    }

    fn scan_unnamed(
        &self,
        page: &mut Page,
        before: Option<Sequence>,
        is_wanted: impl Fn(At) -> bool,
    ) -> Option<Cursor> {
        let mut last = None;
        for at in self.messages.iter_before(before) {
            if page.left == 0 {
                return last.map(Cursor::Before);
            }
            page.left -= 1;
            last = Some(self.messages.sequence(at));
            if !self.messages.is_named(at) && is_wanted(at) {
                page.found.extend(last);
            }
        }
        match page.left {
            // Before the first of all, where there is none: the names are next.
            0 if self.messages.named() > 0 => Some(Cursor::Before(Sequence(1))),
            _ => self.scan_named(page, None, is_wanted),
        }
    }

    fn scan_named(&self, page: &mut Page, behind: Option<u64>, is_wanted: impl Fn(At) -> bool) -> Option<Cursor> {
        let start = behind.map(|hash| Key::hashed(hash << 1 | 1, Sequence(u64::MAX)));
        let mut last = None;
        for key in self.messages.names_after(start) {
            let hash = key.hash() >> 1;
            // Names of one hash are not parted: a cursor could not tell them.
            if page.left == 0 && last != Some(hash) {
                return Some(last.map_or(Cursor::Before(Sequence(1)), Cursor::Behind));
            }
            page.left = page.left.saturating_sub(1);
            last = Some(hash);
            let wanted = self.messages.locate(key.sequence()).is_some_and(&is_wanted);
            page.found.extend(wanted.then_some(key.sequence()));
        }
        None
    }
}
