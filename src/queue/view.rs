//! The view: which sets a message is in, as follows from its record and the time.
//!
//! Time only moves forward in a queue, and the view with it. But the view may have been brought forward by another
//! clock, that of a master or of this server before it was set right: then it is laid out anew, once, so that no
//! message counts as free whose lease still runs.

use super::begun::Begun;
use super::order::{Key, OrderedKeys};
use super::record::{Phase, Reason, Record, State};
use super::store::{At, Placement};
use super::time::UnixMs;
use super::waiting::Waiting;
use super::Queue;

/// Where a message belongs at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Among those that wait.
    Waiting,
    /// Among the leases, there.
    InFlight(Key),
    /// Among the dead, there.
    Dead(Key),
}

impl Home {
    /// The home of a message at `now`.
    pub fn of(record: &Record, now: UnixMs) -> Home {
        match (record.state_at(now), record.phase) {
            (State::InFlight, Phase::Leased { deadline, .. }) => Home::InFlight(Key::at(deadline, record.sequence)),
            (State::Dead { died, .. }, _) => Home::Dead(Key::at(died, record.sequence)),
            _ => Home::Waiting,
        }
    }

    pub fn placement(self) -> Placement {
        match self {
            Home::Waiting => Placement::Waiting,
            Home::InFlight(_) => Placement::InFlight,
            Home::Dead(_) => Placement::Dead,
        }
    }

    /// The instant at which time alone brought a message there; none where a client did.
    fn moved_at(self, record: &Record) -> Option<UnixMs> {
        match (self, record.phase) {
            (Home::InFlight(_), _) | (Home::Waiting, Phase::Waiting) | (_, Phase::Dead { .. }) => None,
            (Home::Dead(key), _) => Some(key.time()),
            (Home::Waiting, Phase::Leased { deadline, .. }) => Some(deadline),
        }
    }
}

impl Queue {
    /// Takes notice of the time, which never runs backwards here. Where the view was brought beyond it by another
    /// clock, the view comes back.
    pub(super) fn tick(&mut self, now: UnixMs) -> UnixMs {
        self.clock = self.clock.max(now);
        if self.moved_to > self.clock {
            self.rewind(self.clock);
        }
        // Nothing was moved beyond it, so nothing was counted.
        self.viewed = self.viewed.min(self.clock);
        self.clock
    }

    /// Brings the view of due times to `now`: the totals count nothing beyond it.
    pub(super) fn view_at(&mut self, now: UnixMs) {
        self.viewed = self.viewed.max(now);
        self.moved.count_ready(self.waiting.advance(now));
    }

    /// Puts a message into the sets in which it belongs at `now`.
    pub(super) fn place(&mut self, at: At, record: &Record, now: UnixMs) {
        let home = Home::of(record, now);
        match home {
            Home::Waiting => {
                self.waiting.insert(record.priority, record.due, record.sequence);
                if let Some(ttl) = record.ttl {
                    self.expiring.insert(Key::at(ttl.end, record.sequence));
                }
            }
            Home::InFlight(key) => {
                self.inflight.insert(key);
                record.receipt().into_iter().for_each(|receipt| self.begun.begin(receipt));
            }
            Home::Dead(key) => self.dead.insert(key),
        }
        self.moved_to = self.moved_to.max(home.moved_at(record).unwrap_or_default());
        self.store.set_placement(at, home.placement());
    }

    /// Takes a message out of the sets in which it is.
    pub(super) fn unplace(&mut self, at: At, record: &Record) {
        // Where it is follows from its placement: a lease from its deadline, and death is final in time, so that what
        // was dead once has the same instant of death ever after.
        let then = match self.store.placement(at) {
            Placement::Waiting => {
                self.waiting.remove(record.priority, record.due, record.sequence);
                if let Some(ttl) = record.ttl {
                    self.expiring.remove(Key::at(ttl.end, record.sequence));
                }
                return;
            }
            Placement::InFlight => UnixMs::EPOCH,
            Placement::Dead => UnixMs::MAX,
        };
        match Home::of(record, then) {
            Home::InFlight(key) => {
                record.receipt().into_iter().for_each(|receipt| self.begun.end(receipt));
                self.inflight.remove(key)
            }
            Home::Dead(key) => self.dead.remove(key),
            Home::Waiting => false,
        };
    }

    /// Notes that the time is `now`, for a caller who only looks: no later answer is of an earlier time. O(1).
    #[inline]
    pub fn notice(&mut self, now: UnixMs) {
        self.clock = self.clock.max(now);
    }

    /// Takes the view back to `now`, which lies before the instant that another clock brought it to. What time did
    /// in between will happen again, so the totals forget it. O(n log n).
    pub(super) fn rewind(&mut self, now: UnixMs) {
        let (mut lease_expired, mut died, mut expired) = (0, 0, 0);
        for at in self.store.iter_after(None) {
            let record = self.store.record(at);
            let (was, is) = (self.store.placement(at), Home::of(&record, now).placement());
            if is == Placement::InFlight && was != Placement::InFlight {
                lease_expired += 1;
            }
            // Death by time is final in time, so its reason is the same at every later instant.
            if let (Placement::Dead, State::Dead { reason, .. }) = (was, record.state_at(UnixMs::MAX)) {
                died += u64::from(is != Placement::Dead);
                expired += u64::from(is != Placement::Dead && reason == Reason::Expired);
            }
        }
        if lease_expired + died > 0 {
            let totals = self.tally.rare();
            totals.lease_expired = totals.lease_expired.saturating_sub(lease_expired);
            totals.died = totals.died.saturating_sub(died);
            totals.expired = totals.expired.saturating_sub(expired);
        }
        self.lay_out(now);
    }

    /// Lays the whole view out anew, as it is at `now`. O(n log n), for a load and for a clock that was set right.
    pub(super) fn lay_out(&mut self, now: UnixMs) {
        let (mut waiting, mut expiring) = (Vec::new(), Vec::new());
        let (mut inflight, mut receipts, mut dead) = (Vec::new(), Vec::new(), Vec::new());
        let mut moved_to = UnixMs::EPOCH;
        self.store.place_all(|record| {
            let home = Home::of(record, now);
            match home {
                Home::Waiting => {
                    waiting.push((record.priority, Key::at(record.due, record.sequence)));
                    expiring.extend(record.ttl.map(|ttl| Key::at(ttl.end, record.sequence)));
                }
                Home::InFlight(key) => {
                    inflight.push(key);
                    receipts.extend(record.receipt());
                }
                Home::Dead(key) => dead.push(key),
            }
            moved_to = moved_to.max(home.moved_at(record).unwrap_or_default());
            home.placement()
        });
        self.waiting = Waiting::from_unsorted(waiting);
        self.expiring = OrderedKeys::from_unsorted(expiring);
        self.inflight = OrderedKeys::from_unsorted(inflight);
        self.begun = Begun::from_receipts(receipts);
        self.dead = OrderedKeys::from_unsorted(dead);
        self.moved_to = moved_to;
        self.viewed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::super::id::{Floor, Target};
    use super::super::settings::Settings;
    use super::super::time::DurationMs;
    use super::super::{Effect, Lease, NewMessage, Pop, Stamped};
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    /// A queue with one message, lent from 1,000 until 61,000.
    fn lent() -> (Queue, Floor) {
        let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
        queue.push(at(1_000), &mut floor, &NewMessage { name: Some(b"m"), ..NewMessage::default() });
        let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(60_000)) };
        queue.pop(at(1_000), &mut floor, &pop, &mut Vec::new(), |_| ());
        (queue, floor)
    }

    fn popped(queue: &mut Queue, floor: &mut Floor, now: u64) -> usize {
        let mut grants = Vec::new();
        queue.pop(at(now), floor, &Pop { count: 9, lease: Lease::Default }, &mut grants, |_| ());
        grants.len()
    }

    #[test]
    fn a_clock_of_another_server_that_was_ahead_ends_no_lease_here() {
        let (mut queue, mut floor) = lent();
        // A master whose clock was an hour ahead decided something.
        queue.apply(&Stamped { now: at(3_600_000), effect: Effect::Ack(Vec::new()) }).unwrap();
        assert_eq!(queue.counts().inflight, 0);
        assert_eq!(popped(&mut queue, &mut floor, 2_000), 0);
        assert_eq!((queue.counts().inflight, queue.counts().ready), (1, 0));
        assert!(queue.ack(at(2_000), &Target::parse(b"m").unwrap()).is_some());
    }

    #[test]
    fn a_clock_that_was_ahead_before_a_save_ends_no_lease_after_the_load() {
        let (mut queue, mut floor) = lent();
        queue.push(at(3_600_000), &mut floor, &NewMessage::default());
        queue.advance(at(3_600_000), usize::MAX);
        let mut loader = super::super::snapshot::Loader::default();
        queue.save(|piece| loader.take(piece)).unwrap();
        let mut loaded = loader.finish(at(2_000)).unwrap();
        assert_eq!(loaded.counts().inflight, 1);
        assert_eq!(popped(&mut loaded, &mut floor, 2_000), 0);
    }
}
