//! Scanning all messages in push order, a few at a time.
//!
//! The cursor of a scan is the sequence of the last message that it visited. A message has its sequence for as long as
//! it is held, so one that is held during the whole scan is returned once. A message that replaces another gets a new
//! sequence, above all others: an id whose message is replaced is returned before or after that, or both.

use super::{Queue, Sequence, StateKind, UnixMs};
/// Which messages a scan returns. The default is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanFilter {
    /// Only messages in this state.
    pub kind: Option<StateKind>,
    /// Only recurring messages.
    pub recurring: bool,
}

impl Queue {
    /// Visits the next `count` messages after the one with the sequence `after`, from the first one on if it is `None`.
    /// Returns those that the filter accepts, and the sequence after which the next call goes on, which is `None` if
    /// the scan is complete. O(count + log n).
    pub fn scan(
        &self,
        now: UnixMs,
        after: Option<Sequence>,
        count: usize,
        filter: ScanFilter,
    ) -> (Vec<Sequence>, Option<Sequence>) {
        let now = self.own_time(now);
        let held = self.messages.iter_after(after).map(|at| {
            let is_wanted = filter.kind.is_none_or(|kind| self.messages.record(at).state_at(now).kind() == kind)
                && (!filter.recurring || self.messages.recurring(at).is_some());
            (self.messages.sequence(at), is_wanted)
        });
        let wants_done = filter.kind.is_none_or(|kind| kind == StateKind::Done) && !filter.recurring;
        let done = self.optional.done.iter().flat_map(|done| done.iter_after(after));
        let done = done.map(|message| (message.sequence, wants_done && now < message.until));
        let (mut held, mut done) = (held.peekable(), done.peekable());
        let mut next = || match (held.peek(), done.peek()) {
            (Some(first), Some(second)) if first.0 > second.0 => done.next(),
            (Some(_), _) => held.next(),
            (None, _) => done.next(),
        };
        let (mut found, mut left, mut last) = (Vec::new(), count, None);
        while let Some((sequence, is_wanted)) = next() {
            if left == 0 {
                return (found, last);
            }
            left -= 1;
            last = Some(sequence);
            found.extend(is_wanted.then_some(sequence));
        }
        (found, None)
    }
}
