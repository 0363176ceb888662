//! What time does to the view: messages fall due, leases expire, TTLs end, and a view that another clock brought too
//! far forward is rebuilt.

use super::{MovedByTime, Refreshed, Stand, UncommonState, View};
use crate::counters::Uncounted;
use crate::delivery_starts::DeliveryStarts;
use crate::groups::GroupView;
use crate::messages::Messages;
use crate::record::{Reason, Record, State};
use crate::sorted_set::{Key, OrderedKeys};
use crate::store::{At, Placement};
use crate::time::UnixMs;
use crate::waiting::Waiting;

impl View {
    /// The latest instant to which the view was brought.
    pub fn at(&self) -> UnixMs {
        self.at
    }

    /// An empty view whose totals count what time did up to `at`.
    pub fn starting_at(at: UnixMs) -> View {
        View { at, ..View::default() }
    }

    /// Makes the messages ready that are due by `now`. O(log n) for any number of messages.
    #[inline]
    pub fn advance_due(&mut self, now: UnixMs) {
        self.at = self.at.max(now);
        let mut ready = self.waiting.advance(now);
        if let Some(groups) = &mut self.groups {
            ready += groups.advance(now);
        }
        self.moved.ready = self.moved.ready.saturating_add(u32::try_from(ready).unwrap_or(u32::MAX));
    }

    /// Whether another clock brought the view beyond `now`.
    #[inline]
    pub fn is_beyond(&self, now: UnixMs) -> bool {
        self.moved_to > now || self.groups.as_ref().is_some_and(|groups| groups.opened_to() > now)
    }

    /// Takes the instant of the view back to `now` if it is later. The caller knows that nothing was moved after `now`,
    /// so nothing after it was counted.
    #[inline]
    pub fn limit_to(&mut self, now: UnixMs) {
        self.at = self.at.min(now);
    }

    /// The first lease or TTL that ends by `now` and was not ended yet; `None` if there is none. O(1).
    #[inline]
    pub fn first_end(&self, now: UnixMs) -> Option<Key> {
        let end = Key::end_of(now);
        let due = |keys: &OrderedKeys| keys.first().filter(|first| *first <= end);
        due(&self.inflight).or_else(|| due(&self.expiring))
    }

    /// Whether the TTL of a waiting message has ended by `now`, and the message does not stand among the dead yet.
    /// O(1).
    #[inline]
    pub fn has_expired(&self, now: UnixMs) -> bool {
        self.expiring.first().is_some_and(|first| first <= Key::end_of(now))
    }

    /// Removes a key that belongs to no message; otherwise it would stay the first one forever.
    pub fn forget_end(&mut self, key: Key) {
        let _ = self.inflight.remove(key) || self.expiring.remove(key);
    }

    /// Brings one message up to `now`. O(log n) if that moves it, else O(1).
    ///
    /// Returns what that changed; `None` if the message already stands where it should at `now`, as most do.
    #[inline]
    pub fn refresh(&mut self, messages: &mut Messages, at: At, record: &Record, now: UnixMs) -> Option<Refreshed> {
        let is = Stand::at(record, now).placement();
        (messages.placement(at) != is).then(|| self.move_to(messages, at, record, is, now))
    }

    #[cold]
    fn move_to(&mut self, messages: &mut Messages, at: At, record: &Record, is: Placement, now: UnixMs) -> Refreshed {
        let was = messages.placement(at);
        let lease_ended = was == Placement::InFlight;
        self.advance_due(now);
        self.restand(messages, at, record, now);
        self.moved.ready = self.moved.ready.saturating_add(u32::from(lease_ended && is == Placement::Waiting));
        let died = match record.state_at(now) {
            State::Dead { died, reason } => Some((died, reason)),
            State::Delayed | State::Ready | State::InFlight => None,
        };
        self.moved.died = self.moved.died.saturating_add(u32::from(died.is_some()));
        Refreshed { lease_ended, died, uncounted: uncounted(record, was, is) }
    }

    /// The recurring message whose run failed first and was not ended yet; `None` if there is none. O(1).
    #[inline]
    pub fn first_failed(&self) -> Option<Key> {
        self.uncommon.as_ref().and_then(|uncommon| uncommon.failed.first())
    }

    /// What time alone moved since the last call.
    pub fn take_moved(&mut self) -> MovedByTime {
        std::mem::take(&mut self.moved)
    }

    /// The earliest instant after the last advance at which time will move something. O(1).
    #[inline]
    pub fn next_wake(&self) -> Option<UnixMs> {
        // This runs with every command, so it is written out: an iterator over the three takes three times as long.
        let earlier = |wake: Option<UnixMs>, keys: &OrderedKeys| match (wake, keys.first().map(Key::time)) {
            (Some(wake), Some(first)) => Some(wake.min(first)),
            (wake, first) => wake.or(first),
        };
        let due = match &self.groups {
            None => self.waiting.next_due(),
            Some(groups) => {
                let due = self.all_waiting().filter_map(Waiting::next_due);
                due.chain(groups.first_opening()).min()
            }
        };
        earlier(earlier(due, &self.inflight), &self.expiring)
    }

    /// Takes the view back to `now`, which lies before the instant to which another clock brought it. What time did in
    /// between will happen again, so the totals must subtract what is returned. O(n log n).
    pub fn rewind(&mut self, messages: &mut Messages, now: UnixMs) -> Uncounted {
        let mut all = Uncounted::default();
        for at in messages.iter_after(None) {
            let record = messages.record(at);
            let (was, is) = (messages.placement(at), Stand::at(&record, now).placement());
            let one = uncounted(&record, was, is);
            all.lease_expired += one.lease_expired;
            all.died += one.died;
            all.expired += one.expired;
        }
        self.rebuild(messages, now);
        all
    }

    /// Rebuilds the whole view for `now`. O(n log n), for a load and for a clock that was corrected.
    pub fn rebuild(&mut self, messages: &mut Messages, now: UnixMs) {
        let (mut waiting, mut expiring) = (Vec::new(), Vec::new());
        let (mut inflight, mut receipts, mut dead, mut failed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut moved_to = UnixMs::EPOCH;
        messages.place_all(|record, group| {
            let stand = Stand::at(record, now);
            match stand {
                Stand::Waiting => {
                    if group.is_none() {
                        waiting.push((record.priority, Key::at(record.due, record.sequence)));
                    }
                    expiring.extend(record.ttl.map(|ttl| Key::at(ttl.end, record.sequence)));
                }
                Stand::InFlight(key) => {
                    inflight.push(key);
                    receipts.extend(record.receipt());
                }
                Stand::Dead(key) => dead.push(key),
                Stand::Failed(key) => failed.push(key),
            }
            moved_to = moved_to.max(stand.moved_at(record).unwrap_or_default());
            stand.placement()
        });
        let over = self.payloads_left(messages);
        *self = View {
            waiting: Waiting::from_unsorted(waiting),
            groups: GroupView::rebuilt(messages, UnixMs::EPOCH),
            inflight: OrderedKeys::from_unsorted(inflight),
            starts: DeliveryStarts::from_receipts(receipts),
            expiring: OrderedKeys::from_unsorted(expiring),
            dead: OrderedKeys::from_unsorted(dead),
            uncommon: (over > 0 || !failed.is_empty())
                .then(|| Box::new(UncommonState { failed: OrderedKeys::from_unsorted(failed), over, holders: None })),
            at: now,
            moved_to,
            moved: self.moved,
        };
        if messages.has_consumers() {
            self.recount_deliveries(messages);
        }
    }
}

/// What was counted of a message that stood where it `was`, and goes back in time to where it `is`.
fn uncounted(record: &Record, was: Placement, is: Placement) -> Uncounted {
    let lease_expired = u64::from(is == Placement::InFlight && was != Placement::InFlight);
    // Time never revives a dead message, so its reason is the same at every later instant.
    let (died, expired) = match record.state_at(UnixMs::MAX) {
        State::Dead { reason, .. } if was == Placement::Dead && is != Placement::Dead => {
            (1, u64::from(reason == Reason::Expired))
        }
        _ => (0, 0),
    };
    Uncounted { lease_expired, died, expired }
}
