//! Consumers with names: which messages each of them holds, and what becomes of these when it is gone.

use super::advance::PILED_MAX;
use super::nack::{GivenBack, Verdict};
use super::{At, Ended, Loss, Queue, Reason, Record, Sequence, State, UnixMs};
use crate::effect::Fate;
use crate::name_index::NameHash;
use crate::recurring::Failure;
use crate::store::Placement;

/// A consumer that holds messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumer<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// How many messages of it are in flight.
    pub inflight: usize,
    /// When the oldest of these deliveries began.
    pub oldest: UnixMs,
}

/// The messages that were taken from a consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// How many there were, with the runs of schedules that failed because of it.
    pub count: usize,
    /// Those whose leases have ended.
    pub ended: Vec<Sequence>,
    /// Those that were given back without being counted.
    pub given_back: Vec<Sequence>,
    /// Whether a message is dead that was given back.
    pub died: bool,
}

impl Queue {
    /// Notes the name of the consumer of deliveries that have just begun. O(m log n).
    pub fn hold_as(&mut self, deliveries: impl Iterator<Item = Sequence>, name: &[u8]) {
        for sequence in deliveries {
            if let Some(at) = self.messages.find_sequence(sequence) {
                self.bear(at, name);
            }
        }
    }

    /// Notes the name of the consumer of a delivery that bears none.
    fn bear(&mut self, at: At, name: &[u8]) {
        let Some(receipt) = self.messages.record(at).receipt() else { return };
        if self.messages.consumer(at).is_none() {
            self.messages.set_consumer(at, Some(name));
            if self.messages.placement(at) == Placement::InFlight {
                self.view.name_delivery(&self.messages, at, receipt);
            }
        }
    }

    /// Visits the next `count` consumers, in the order of the hashes of their names, from `cursor` on. Returns those
    /// that hold a message at `now`, and the next cursor, which is `None` at the end. At most [`PILED_MAX`] leases that
    /// have ended since the last advance are recognised as ended. O(count × log n + m), where m is the number of these.
    pub fn scan_consumers(&self, now: UnixMs, cursor: Option<u64>, count: usize) -> (Vec<Consumer<'_>>, Option<u64>) {
        let Some(consumers) = self.messages.consumers() else { return (Vec::new(), None) };
        let ended = self.view.ended_of_consumers(&self.messages, self.own_time(now), PILED_MAX);
        let (mut page, mut left, mut last) = (Vec::new(), count, None);
        for (hash, id) in consumers.iter_behind(cursor.map(NameHash::last_of)) {
            let here = hash.cursor();
            if left == 0 && last != Some(here) {
                return (page, last);
            }
            left = left.saturating_sub(1);
            last = Some(here);
            let held = self.view.held_by(id, &ended);
            page.extend(held.map(|(inflight, oldest)| Consumer { name: consumers.name(id), inflight, oldest }));
        }
        (page, None)
    }

    /// Takes from a consumer the messages that it holds, or the `count` that were delivered to it first: as if their
    /// leases had just ended, or as if each were given back with [`Verdict::NotCounted`]. O(m log n), where m is the
    /// number of these messages, and O(log n) for each lease of the consumer that has ended since the last advance.
    pub fn release(&mut self, now: UnixMs, name: &[u8], count: Option<usize>, verdict: Verdict) -> Released {
        let now = self.observe(now);
        let Some(consumer) = self.messages.consumers().and_then(|consumers| consumers.find(name)) else {
            return Released::default();
        };
        let held = self.view.first_held(&self.messages, consumer, now, count.unwrap_or(usize::MAX));
        // The ends of runs are an effect of their own, which comes first.
        let fails_at = |at| fails(&self.messages.record(at), now);
        let is_first = |sequence: &Sequence| {
            verdict == Verdict::NotCounted
                && self.messages.recurring_count() > 0
                && self.messages.locate(*sequence).is_some_and(fails_at)
        };
        let (first, then): (Vec<_>, Vec<_>) = held.into_iter().partition(is_first);
        let mut released = Released { count: first.len() + then.len(), ..Released::default() };
        let mut ended_runs = false;
        for sequence in first.into_iter().chain(then) {
            let Some((at, record)) = self.refreshed(sequence, now) else { continue };
            if !fails(&record, now) && std::mem::take(&mut ended_runs) {
                self.settle(now);
            }
            self.note_lost(at, &record, Loss::Released, now);
            if verdict != Verdict::NotCounted {
                self.move_deadline(at, &record, now, None, now);
                released.ended.push(sequence);
            } else if let Some(state) = self.take_back(at, &record, now) {
                released.died |= matches!(state, State::Dead { .. });
                released.given_back.push(sequence);
            } else {
                let attempts = record.attempts.saturating_sub(1);
                let failure = Failure { died: now, reason: Reason::Expired, attempts, copy: None };
                self.end_run(at, &record, Ended::Nacked { error: None, checkpoint: None }, Some(failure), now);
                (released.died, ended_runs) = (true, true);
            }
        }
        released
    }

    /// Applies a release without counting the attempt. Returns the state of the message; `None`, and changes nothing,
    /// if it is a run that fails by it.
    pub(crate) fn take_back(&mut self, at: At, record: &Record, now: UnixMs) -> Option<State> {
        let attempts = match self.messages.leaving(at).filter(|_| record.is_successor_at(now)) {
            Some(leaving) => leaving.record.attempts,
            None => record.attempts,
        };
        if fails(record, now) {
            return None;
        }
        let expired = record.ttl.is_some_and(|ttl| ttl.end <= now) && !record.is_successor_at(now);
        let fate = if expired { Fate::Dead { died: now, reason: Reason::Expired } } else { Fate::Due(record.due) };
        let how = GivenBack { fate, attempts: attempts.saturating_sub(1), error: None, checkpoint: None };
        Some(self.give_back(at, record, &how, now))
    }
}

/// Whether a message in flight is a run that fails if it is given back, because its TTL has ended.
fn fails(record: &Record, now: UnixMs) -> bool {
    record.recurring && record.ttl.is_some_and(|ttl| ttl.end <= now) && !record.is_successor_at(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Floor;
    use crate::lost::Lost;
    use crate::settings::Settings;
    use crate::time::DurationMs;
    use crate::{Lease, NewMessage, Pop, Queue};

    const COUNT: u64 = 5_000;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_760_000_000_000 + ms)
    }

    /// A queue with [`COUNT`] messages, each delivered in a millisecond of its own, to the consumer with this name if
    /// there is one.
    fn delivered(name: Option<&[u8]>) -> Queue {
        let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
        let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(3_600_000)) };
        (0..COUNT).for_each(|_| drop(queue.push(at(0), &mut floor, &NewMessage::default())));
        for ms in 0..COUNT {
            let mut grants = Vec::new();
            queue.pop(at(ms), &mut floor, &pop, &mut grants, |_| ());
            name.into_iter().for_each(|name| queue.hold_as(grants.iter().map(|grant| grant.sequence), name));
        }
        assert_eq!(queue.oldest_inflight(at(COUNT)), Some(DurationMs::new(COUNT)));
        queue
    }

    #[test]
    fn a_name_takes_at_most_fourteen_bytes_for_each_delivery() {
        let taken = |name| delivered(name).heap_bytes() as u64;
        let names = taken(Some(b"worker-1")) - taken(None);
        assert!(names <= 14 * COUNT, "{names} bytes");
    }

    #[test]
    fn a_release_of_many_is_told_in_one_word() {
        for verdict in [Verdict::Failed, Verdict::NotCounted] {
            let mut queue = delivered(Some(b"worker-1"));
            let mut notices = |count| {
                let released = queue.release(at(COUNT), b"worker-1", Some(count), verdict);
                assert_eq!(released.count, count);
                queue.take_lost().map_or_else(Vec::new, |lost| lost.0)
            };
            let named = notices(1_000);
            assert_eq!(named.len(), 1_000);
            assert!(named.iter().all(|lost| lost.how == Loss::Released && lost.receipt.is_some()));
            assert_eq!(notices(1_001), [Lost { how: Loss::Purged, receipt: None }]);
        }
    }
}
