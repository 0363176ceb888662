//! The deduplication window: an id that was accepted is refused until `DEDUPE` has passed, even if its message is gone.

use super::{At, DurationMs, Queue, Sequence, UnixMs};
use crate::known::{Known, KnownId};

/// The largest number of forgotten ids whose memory one call frees: a few microseconds of work. A call forgets fewer on
/// average, so the timer is needed only if many windows end at once.
const SWEPT: usize = 16;

/// What becomes of the ids of messages that are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// They stay known for as long as `DEDUPE` says.
    Remembered,
    /// They may be used again at once.
    Forgotten,
}

impl Queue {
    /// The number of ids that are known at `now` and whose message is gone. O(log n).
    pub fn known(&self, now: UnixMs) -> usize {
        let over = self.over_by(self.own_time(now));
        self.optional.known.as_ref().map_or(0, |known| known.count_after(over))
    }

    /// Forgets an id whose message is gone, and returns whether it was known. O(log n).
    pub fn forget(&mut self, now: UnixMs, name: &[u8]) -> bool {
        let now = self.observe(now);
        let is_known = self.is_known(name, now);
        if is_known {
            self.drop_done_named(name, now);
            self.unlearn(name);
        }
        is_known
    }

    /// The instant with which an effect that was decided at `now` must be stamped. Call this once for each effect: the
    /// ids whose window has ended by then are forgotten, here and where the effect is applied.
    #[inline]
    pub fn stamp(&mut self, now: UnixMs) -> UnixMs {
        let now = self.own_time(now);
        self.forget_ended(now);
        self.end_effect(now);
        now
    }

    /// Whether an id is known whose message is gone. O(log n).
    #[inline]
    pub(crate) fn is_known(&self, name: &[u8], now: UnixMs) -> bool {
        if self.optional.known.is_none() && self.optional.done.is_none() {
            return false;
        }
        let known = self.optional.known.as_ref().and_then(|known| known.accepted(name));
        let accepted = known.or_else(|| self.accepted_of_ended(name, now));
        accepted.is_some_and(|accepted| self.over_by(now).is_none_or(|over| over < accepted))
    }

    /// The instant up to which accepted ids are no longer known at `now`; `None` if there is none.
    fn over_by(&self, now: UnixMs) -> Option<UnixMs> {
        over_by(self.settings.dedupe, now)
    }

    /// Remembers the id of a message that is about to be removed, if its window has not ended. O(log n).
    #[inline]
    pub(crate) fn remember(&mut self, at: At, now: UnixMs) {
        if !self.settings.dedupe.is_zero() && self.messages.is_named(at) {
            self.learn(at, now);
        }
    }

    /// When a push accepted the id of a message; `None` if no push did. A schedule begins no window, but continues that
    /// of the message whose place it took.
    pub(crate) fn accepted_of(&self, at: At) -> Option<UnixMs> {
        let is_series = self.messages.recurring(at).is_some_and(|state| state.series.is_some());
        match self.messages.bytes(at).origin {
            None if is_series => None,
            _ => Some(self.origin(at).accepted),
        }
    }

    /// When the id of a message that is done or gone was accepted, if its window has not ended. O(log n).
    pub(crate) fn accepted_of_gone(&self, name: &[u8], now: UnixMs) -> Option<UnixMs> {
        let known = self.optional.known.as_ref().and_then(|known| known.accepted(name));
        let done = || Some(self.optional.done.as_ref()?.find_named(name)?.accepted);
        known.or_else(done).filter(|accepted| self.over_by(now).is_none_or(|over| over < *accepted))
    }

    /// Remembers the id of a schedule whose series is over, if a push had accepted it and its window has not ended.
    pub(crate) fn remember_series(&mut self, at: At, now: UnixMs) {
        if !self.settings.dedupe.is_zero() && self.accepted_of(at).is_some() {
            self.learn(at, now);
        }
    }

    #[cold]
    fn learn(&mut self, at: At, now: UnixMs) {
        let over = self.over_by(now);
        let accepted = self.origin(at).accepted;
        let Some(name) = self.messages.bytes(at).name else { return };
        if over.is_none_or(|over| over < accepted) {
            self.optional.for_adding().known.get_or_insert_default().insert(KnownId { name, accepted });
        }
    }

    /// Forgets an id because it was cancelled, or because a message has it again. O(log n).
    #[inline]
    pub(crate) fn unlearn(&mut self, name: &[u8]) {
        if let Some(known) = self.known_mut() {
            known.remove(name);
            self.free_known();
        }
    }

    /// Forgets the ids whose window has ended by `now`, and frees the memory of some.
    #[inline]
    pub(crate) fn forget_ended(&mut self, now: UnixMs) {
        if self.optional.known.is_some() {
            self.forget_ended_names(now);
        }
    }

    #[inline(never)]
    fn forget_ended_names(&mut self, now: UnixMs) {
        let over = self.over_by(now);
        if let (Some(known), Some(over)) = (self.known_mut(), over) {
            known.forget_up_to(over);
            self.sweep_known(SWEPT);
        }
    }

    /// Frees the memory of at most `budget` forgotten ids. O(budget × log n).
    #[inline]
    pub(crate) fn sweep_known(&mut self, budget: usize) {
        if let Some(known) = self.known_mut().filter(|known| !known.is_swept()) {
            known.sweep(budget);
            self.free_known();
        }
    }

    /// Whether memory of forgotten ids is still to be freed.
    #[inline]
    pub(crate) fn must_sweep_known(&self) -> bool {
        self.optional.known.as_ref().is_some_and(|known| !known.is_swept())
    }

    #[inline]
    fn known_mut(&mut self) -> Option<&mut Known> {
        self.optional.held_mut()?.known.as_deref_mut()
    }

    fn free_known(&mut self) {
        if self.optional.known.as_deref().is_some_and(Known::is_empty) {
            self.optional.take(|parts| &mut parts.known);
        }
    }

    /// The ids that were known when the last effect was decided, by the hash of their names.
    pub(crate) fn known_ids(&self) -> impl Iterator<Item = KnownId<'_>> + '_ {
        self.optional.known.iter().flat_map(|known| known.iter())
    }

    /// Whether these ids may be known in addition to the messages and the ids that the queue holds while it is loaded.
    pub(crate) fn may_recall(&self, ids: &[KnownId<'_>]) -> bool {
        let mut names = std::collections::BTreeSet::new();
        ids.is_empty()
            || !self.settings.dedupe.is_zero()
                && ids.iter().all(|id| {
                    super::super::id::Id::is_name(id.name)
                        && names.insert(id.name)
                        && self.messages.find_named(id.name).is_none()
                        && !self.holds_done(Sequence::ZERO, Some(id.name))
                        && !self.remembers(id.name)
                })
    }

    /// Whether the id was known when the last effect was decided.
    pub(crate) fn remembers(&self, name: &[u8]) -> bool {
        self.optional.known.as_ref().is_some_and(|known| known.accepted(name).is_some())
    }

    /// Adds the ids that a queue knew when it was saved.
    pub(crate) fn recall(&mut self, ids: &[KnownId<'_>]) {
        for id in ids {
            self.optional.for_adding().known.get_or_insert_default().insert(*id);
        }
    }
}

/// The instant up to which accepted ids are no longer known at `now`, given this window; `None` if there is none.
pub(super) fn over_by(window: DurationMs, now: UnixMs) -> Option<UnixMs> {
    if window.is_zero() {
        return Some(UnixMs::MAX);
    }
    now.as_ms().checked_sub(window.as_ms()).map(UnixMs::new)
}
