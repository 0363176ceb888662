//! The rate limit: at most n deliveries begin in any time span as long as its period.
//!
//! The log of recent deliveries decides, so the limit is exact: it is a sliding window, and not a fixed one that lets
//! twice as many pass at the boundary of two windows. Deliveries of the same millisecond share an entry, so the log
//! holds at most min(n, period in ms) entries of 16 bytes. Each entry holds the number of deliveries up to it, so a
//! binary search answers how many are in the window.
//!
//! The log follows from the effects of deliveries alone, with the instants that they carry, so a replica that is
//! promoted and a server that restarts continue with the same log and do not burst.

use super::memory::vec_bytes;
use super::time::{DurationMs, UnixMs};
use std::collections::VecDeque;

/// The largest number of deliveries that a rate can allow in a period.
pub const RATE_MAX: u64 = 1_000_000;

/// The longest period of a rate: a day.
pub const RATE_PERIOD_MAX: DurationMs = DurationMs::new(86_400_000);

/// A limit on how many deliveries begin in a period. Either both numbers are zero, which is no limit, or neither is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number of deliveries that may begin in any span of `period`, at most [`RATE_MAX`].
    pub most: u64,
    /// The length of the span, at most [`RATE_PERIOD_MAX`].
    pub period: DurationMs,
}

impl Rate {
    /// No limit.
    pub const OFF: Rate = Rate { most: 0, period: DurationMs::ZERO };

    /// Whether there is no limit.
    #[inline]
    pub const fn is_off(self) -> bool {
        self.period.is_zero()
    }
}

/// Deliveries that began in one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: UnixMs,
    /// The number of deliveries up to and including these, since the log was empty.
    total: u64,
}

/// The deliveries that began recently, by the queue's own time. A delivery is in the window for one period after it
/// began.
#[derive(Clone, Debug, Default)]
pub struct RateLog {
    /// In ascending order of time; each adds to the total.
    entries: VecDeque<Entry>,
    /// The total before the first entry.
    before: u64,
}

impl PartialEq for RateLog {
    fn eq(&self, other: &RateLog) -> bool {
        self.pairs().eq(other.pairs())
    }
}

impl Eq for RateLog {}

impl RateLog {
    /// The log of these deliveries: pairs of an instant and a number. Returns `None` if the instants do not ascend or a
    /// number is zero.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (UnixMs, u64)>) -> Option<RateLog> {
        let mut log = RateLog::default();
        for (at, count) in pairs {
            let last = log.entries.back().map(|last| last.at);
            if count == 0 || last.is_some_and(|last| last >= at) {
                return None;
            }
            log.entries.push_back(Entry { at, total: log.total().checked_add(count)? });
        }
        Some(log)
    }

    /// The deliveries, as [`RateLog::from_pairs`] takes them.
    pub fn pairs(&self) -> impl Iterator<Item = (UnixMs, u64)> + '_ {
        self.entries.iter().scan(self.before, |before, entry| {
            let count = entry.total - std::mem::replace(before, entry.total);
            Some((entry.at, count))
        })
    }

    /// Whether the log has no deliveries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The instant of the last delivery.
    pub(super) fn last(&self) -> Option<UnixMs> {
        self.entries.back().map(|last| last.at)
    }

    /// The next instant after `now` at which a delivery leaves the window. O(log n).
    pub(super) fn leaves_after(&self, now: UnixMs, period: DurationMs) -> Option<UnixMs> {
        self.entries.get(self.window(now, period)).map(|next| next.at.after(period))
    }

    /// The last instant by `now` at which a delivery of the log left the window. O(log n).
    pub(super) fn left_by(&self, now: UnixMs, period: DurationMs) -> Option<UnixMs> {
        let gone = self.window(now, period).checked_sub(1).and_then(|last| self.entries.get(last));
        gone.map(|last| last.at.after(period))
    }

    fn total(&self) -> u64 {
        self.entries.back().map_or(self.before, |last| last.total)
    }

    /// The index of the first entry that is in the window at `now`.
    fn window(&self, now: UnixMs, period: DurationMs) -> usize {
        self.entries.partition_point(|entry| entry.at.after(period) <= now)
    }

    /// The total before the entry at an index.
    fn total_before(&self, index: usize) -> u64 {
        let before = index.checked_sub(1).and_then(|last| self.entries.get(last));
        before.map_or(self.before, |last| last.total)
    }

    /// How many deliveries are in the window at `now`. O(log n).
    pub fn count(&self, now: UnixMs, period: DurationMs) -> u64 {
        self.total() - self.total_before(self.window(now, period))
    }

    /// The instant at which `rate` allows a delivery again; `None` if it does at `now`. O(log n).
    pub fn opens_after(&self, now: UnixMs, rate: Rate) -> Option<UnixMs> {
        if rate.is_off() {
            return None;
        }
        let gone = self.total_before(self.window(now, rate.period));
        let excess = (self.total() - gone).checked_sub(rate.most)?;
        // One more than the excess must leave the window.
        let left = self.entries.partition_point(|entry| entry.total <= gone + excess);
        self.entries.get(left).map(|last| last.at.after(rate.period))
    }

    /// Adds `count` deliveries that begin at `now`, and forgets those that have left the window. O(log n) amortised.
    pub fn record(&mut self, now: UnixMs, count: u64, period: DurationMs) {
        let left = self.window(now, period);
        self.before = self.total_before(left);
        self.entries.drain(..left);
        let total = self.total().saturating_add(count);
        match self.entries.back_mut() {
            // Another clock was ahead. The new deliveries count as if they had begun with the last ones.
            Some(last) if last.at >= now => last.total = total,
            _ => self.entries.push_back(Entry { at: now, total }),
        }
    }

    /// Whether the log has a delivery later than `now`, because another clock was ahead.
    #[inline]
    pub fn is_ahead_of(&self, now: UnixMs) -> bool {
        self.entries.back().is_some_and(|last| last.at > now)
    }

    /// Makes the deliveries that are later than `now` count as if they had begun at `now`. They did not begin later
    /// than that, so the limit holds, and delivery resumes after one period instead of after the difference of clocks.
    pub fn pull_back_to(&mut self, now: UnixMs) {
        let total = self.total();
        self.entries.truncate(self.entries.partition_point(|entry| entry.at < now));
        if total > self.total() {
            self.entries.push_back(Entry { at: now, total });
        }
    }

    /// The number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        vec_bytes::<Entry>(self.entries.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    fn rate(most: u64, period: u64) -> Rate {
        Rate { most, period: DurationMs::new(period) }
    }

    fn log(pairs: &[(u64, u64)]) -> RateLog {
        RateLog::from_pairs(pairs.iter().map(|(ms, count)| (at(*ms), *count))).unwrap()
    }

    #[test]
    fn a_delivery_leaves_the_window_after_one_period() {
        let log = log(&[(100, 2), (105, 1)]);
        let count = |now| log.count(at(now), DurationMs::new(10));
        assert_eq!([100, 109, 110, 114, 115].map(count), [3, 3, 1, 1, 0]);
        let opens = |now, most| log.opens_after(at(now), rate(most, 10)).map(UnixMs::as_ms);
        assert_eq!(
            (opens(106, 3), opens(106, 2), opens(106, 1), opens(106, 4)),
            (Some(110), Some(110), Some(115), None)
        );
        assert_eq!((opens(110, 2), opens(110, 1)), (None, Some(115)));
    }

    #[test]
    fn deliveries_of_a_clock_that_was_ahead_hold_back_for_one_period_only() {
        let mut log = log(&[(100, 1), (5_000, 2), (5_001, 1)]);
        assert!(log.is_ahead_of(at(105)) && !log.is_ahead_of(at(5_001)));
        log.pull_back_to(at(105));
        assert_eq!(log.pairs().collect::<Vec<_>>(), [(at(100), 1), (at(105), 3)]);
        assert_eq!(log.opens_after(at(105), rate(3, 10)), Some(at(115)));
    }

    #[test]
    fn a_log_out_of_order_is_refused() {
        let from = |pairs: &[(u64, u64)]| RateLog::from_pairs(pairs.iter().map(|(ms, count)| (at(*ms), *count)));
        assert!(from(&[(1, 1), (2, 5)]).is_some());
        assert!(from(&[(2, 1), (2, 5)]).is_none() && from(&[(2, 1), (1, 1)]).is_none() && from(&[(2, 0)]).is_none());
        assert!(from(&[(1, u64::MAX), (2, 1)]).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn no_window_ever_holds_more_than_the_rate(
            most in 1u64..6,
            period in 1u64..30,
            steps in prop::collection::vec((0u64..12, 0u64..8), 1..if cfg!(miri) { 30 } else { 200 }),
        ) {
            let (limit, mut log, mut now, mut begun) = (rate(most, period), RateLog::default(), 1_000, Vec::new());
            for (passed, wanted) in steps {
                now += passed;
                let room = most - log.count(at(now), limit.period).min(most);
                prop_assert_eq!(room == 0, log.opens_after(at(now), limit).is_some());
                if let Some(opens) = log.opens_after(at(now), limit) {
                    prop_assert_eq!(log.count(at(opens.as_ms() - 1), limit.period), most, "not too late");
                    prop_assert!(log.count(opens, limit.period) < most, "not too early");
                }
                let count = wanted.min(room);
                if count > 0 {
                    log.record(at(now), count, limit.period);
                    begun.extend((0..count).map(|_| now));
                }
                prop_assert!(log.entries.len() as u64 <= most.min(period));
                prop_assert_eq!(RateLog::from_pairs(log.pairs()).unwrap(), log.clone());
            }
            for first in &begun {
                let window = begun.iter().filter(|later| (*first..first + period).contains(later));
                prop_assert!(window.count() as u64 <= most);
            }
        }
    }
}
