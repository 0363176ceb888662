//! Scanning all messages, a few at a time.
//!
//! A scan visits the messages without a name in reverse push order, then the named ones in the order of the hashes of
//! their names. In both orders a message keeps its place, whatever is pushed, acked and replaced meanwhile: a generated
//! id keeps its sequence, and a name keeps its hash when its message is replaced. So every message that is present
//! during the whole scan is returned, and returned once. The scan ends even if messages are pushed meanwhile: an
//! unnamed one is added at a place that the scan has passed, and a named one somewhere among the names.

use super::super::done::DoneMessage;
use super::super::id::Sequence;
use super::super::name_index::NameHash;
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
    /// After the names whose hash begins with these 63 bits.
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
        let wants_done = filter.kind.is_none_or(|kind| kind == StateKind::Done) && !filter.recurring;
        let is_done_wanted = |message: &DoneMessage<'_>| wants_done && now < message.until;
        let is_wanted = |at: At| {
            filter.kind.is_none_or(|kind| self.messages.record(at).state_at(now).kind() == kind)
                && (!filter.recurring || self.messages.recurring(at).is_some())
        };
        let wanted = Wanted { held: &is_wanted, done: &is_done_wanted };
        let mut page = Page { found: Vec::new(), left: count };
        let next = match cursor {
            // All messages have a name.
            Cursor::Start if !self.has_unnamed() => self.scan_named(&mut page, None, &wanted),
            Cursor::Start => self.scan_unnamed(&mut page, None, &wanted),
            Cursor::Before(sequence) => self.scan_unnamed(&mut page, Some(sequence), &wanted),
            Cursor::Behind(hash) => self.scan_named(&mut page, Some(hash), &wanted),
        };
        (page.found, next)
    }

    fn has_unnamed(&self) -> bool {
        let done = self.optional.done.as_ref().map_or(0, |done| done.len() - done.named());
        self.messages.len() - self.messages.named() + done > 0
    }

    fn has_named(&self) -> bool {
        self.messages.named() > 0 || self.optional.done.as_ref().is_some_and(|done| done.named() > 0)
    }

    fn scan_unnamed(&self, page: &mut Page, before: Option<Sequence>, wanted: &Wanted<'_>) -> Option<Cursor> {
        let held = self.messages.iter_before(before).map(|at| {
            let sequence = self.messages.sequence(at);
            (sequence, !self.messages.is_named(at) && (wanted.held)(at))
        });
        let done = self.optional.done.iter().flat_map(|done| done.iter_before(before));
        let done = done.map(|message| (message.sequence, message.name.is_none() && (wanted.done)(&message)));
        let mut last = None;
        for (sequence, is_wanted) in merged(held, done, |(held, _), (done, _)| held > done) {
            if page.left == 0 {
                return last.map(Cursor::Before);
            }
            page.left -= 1;
            last = Some(sequence);
            page.found.extend(is_wanted.then_some(sequence));
        }
        match page.left {
            // This cursor lies before the first message, so the next step begins with the names.
            0 if self.has_named() => Some(Cursor::Before(Sequence(1))),
            _ => self.scan_named(page, None, wanted),
        }
    }

    fn scan_named(&self, page: &mut Page, behind: Option<u64>, wanted: &Wanted<'_>) -> Option<Cursor> {
        let start = behind.map(|hash| NameHash(hash << 1 | 1));
        let held = self.messages.names_behind(start).map(|key| {
            let is_wanted = self.messages.locate(key.1).is_some_and(wanted.held);
            (key, is_wanted)
        });
        let done = self
            .optional
            .done
            .iter()
            .flat_map(|done| done.names_behind(start).filter_map(|key| Some((key, done.get(key.1)?))));
        let done = done.map(|(key, message)| (key, (wanted.done)(&message)));
        let mut last = None;
        for ((hash, sequence), is_wanted) in merged(held, done, |(held, _), (done, _)| held < done) {
            let hash = hash.0 >> 1;
            // Names with the same hash are returned together: a cursor cannot distinguish them.
            if page.left == 0 && last != Some(hash) {
                return Some(last.map_or(Cursor::Before(Sequence(1)), Cursor::Behind));
            }
            page.left = page.left.saturating_sub(1);
            last = Some(hash);
            page.found.extend(is_wanted.then_some(sequence));
        }
        None
    }
}

/// Which messages a step returns.
struct Wanted<'a> {
    held: &'a dyn Fn(At) -> bool,
    done: &'a dyn Fn(&DoneMessage<'_>) -> bool,
}

/// Merges two iterators; `comes_first` says whether an item of the first one precedes an item of the second one.
fn merged<T>(
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
    comes_first: impl Fn(&T, &T) -> bool,
) -> impl Iterator<Item = T> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if comes_first(first, second) => one.next(),
        (_, Some(_)) => other.next(),
        (_, None) => one.next(),
    })
}
