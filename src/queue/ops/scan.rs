//! Scanning all messages, some at a time.
//!
//! A scan visits the messages without a name in reverse push order, then the named ones in the order of the hashes of
//! their names. In both orders a message keeps its place, whatever is pushed, acked and replaced meanwhile: a generated
//! id keeps its sequence, and a name keeps its hash when its message is replaced. So every message that is present
//! during the whole scan is returned, and returned once. The scan ends even if messages are pushed meanwhile: an
//! unnamed one is added behind the place where the scan began, and a named one somewhere among the names.

use super::super::id::Sequence;
use super::super::order::Key;
use super::super::record::StateKind;
use super::super::store::At;
use super::super::time::UnixMs;
use super::super::Queue;

/// The position of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The start.
    Start,
    /// Before this sequence, among the messages without a name.
    Before(Sequence),
    /// Behind the names whose hash begins with these 63 bits.
    Behind(u64),
}

/// The bit of a printed cursor that marks a position among the names: no sequence has it before the year 2248.
const NAMED: u64 = 1 << 63;

impl Cursor {
    /// The cursor that a number represents.
    pub const fn from_number(number: u64) -> Cursor {
        match number {
            0 => Cursor::Start,
            _ if number & NAMED != 0 => Cursor::Behind(number & !NAMED),
            _ => Cursor::Before(Sequence(number)),
        }
    }

    /// The number that represents the cursor.
    pub const fn number(self) -> u64 {
        match self {
            Cursor::Start => 0,
            Cursor::Before(sequence) => sequence.0 & !NAMED,
            Cursor::Behind(hash) => hash | NAMED,
        }
    }
}

/// Which messages a scan returns. The default is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanFilter {
    /// Only messages in this state.
    pub kind: Option<StateKind>,
    /// Only recurring messages.
    pub recurring: bool,
}

/// The result of one step of a scan.
struct Page {
    found: Vec<Sequence>,
    /// The number of messages that the step may still visit.
    left: usize,
}

impl Queue {
    /// Visits the next `count` messages from `cursor` on. Returns those that the filter accepts, and the cursor of the
    /// next step, which is `None` if the scan is complete. O(count + log n).
    pub fn scan(
        &self,
        now: UnixMs,
        cursor: Cursor,
        count: usize,
        filter: ScanFilter,
    ) -> (Vec<Sequence>, Option<Cursor>) {
        let now = self.own_time(now);
        let is_wanted = |at: At| {
            filter.kind.is_none_or(|kind| self.messages.record(at).state_at(now).kind() == kind)
                && (!filter.recurring || self.messages.recurring(at).is_some())
        };
        let mut page = Page { found: Vec::new(), left: count };
        let next = match cursor {
            // All messages have a name.
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
            // This cursor lies before the first message, so the next step begins with the names.
            0 if self.messages.named() > 0 => Some(Cursor::Before(Sequence(1))),
            _ => self.scan_named(page, None, is_wanted),
        }
    }

    fn scan_named(&self, page: &mut Page, behind: Option<u64>, is_wanted: impl Fn(At) -> bool) -> Option<Cursor> {
        let start = behind.map(|hash| Key::hashed(hash << 1 | 1, Sequence(u64::MAX)));
        let mut last = None;
        for key in self.messages.names_after(start) {
            let hash = key.hash() >> 1;
            // Names with the same hash are returned together: a cursor cannot distinguish them.
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
