//! The view: the orders of the messages, which follow from their records and the time.
//!
//! A message waits, is in flight, or is dead, and stands in the order of its state: waiting messages in delivery order,
//! leases by deadline, dead messages by age. Waiting messages with a TTL also stand in a fourth order, by the end of
//! the TTL. The records hold what clients decided; the view is derived from them and is never saved or replicated.
//!
//! Time only moves forward in a queue, and the view follows in bounded steps: a message whose lease has ended may still
//! stand among the leases. But another clock may have brought the view too far forward, namely that of a master, or
//! that of this server before it was corrected. The view is then rebuilt once, so that no message counts as ready while
//! its lease still runs.
//!
//! Only the operations of [`View`] change where a message stands. Its fields are private, and [`View::check`] verifies
//! its invariants.

use super::begun::Begun;
use super::effect::Grant;
use super::id::Sequence;
use super::messages::Messages;
use super::order::{Key, OrderedKeys};
use super::record::{Phase, Reason, Record, State, StateKind, States};
use super::store::{At, Placement};
use super::time::UnixMs;
use super::waiting::Waiting;
use super::Counts;

/// The orders of a queue's messages, as of an instant.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Waiting messages, in delivery order.
    waiting: Waiting,
    /// Leases, by (deadline, sequence).
    inflight: OrderedKeys,
    /// The instants at which the deliveries of these leases began.
    begun: Begun,
    /// The ends of the TTLs of waiting messages, by (end, sequence).
    expiring: OrderedKeys,
    /// Dead messages, by (died, sequence).
    dead: OrderedKeys,
    /// The latest instant to which the view was brought: the totals count what time did up to it.
    at: UnixMs,
    /// The latest instant at which time alone moved a message.
    moved_to: UnixMs,
    /// What time alone moved since [`View::take_moved`] was last called.
    moved: Moved,
}

/// The number of messages that time alone moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    pub ready: u32,
    pub died: u32,
}

/// The result of moving one message to where it stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refreshed {
    /// Whether its lease ended.
    pub lease_ended: bool,
    /// Why it died, if it did.
    pub died: Option<Reason>,
}

/// What the totals had counted beyond the instant to which a view was taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncounted {
    pub lease_expired: u64,
    pub died: u64,
    pub expired: u64,
}

/// The order in which a message stands at an instant, and its key there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Waiting,
    InFlight(Key),
    Dead(Key),
}

impl Stand {
    fn of(record: &Record, now: UnixMs) -> Stand {
        match (record.state_at(now), record.phase) {
            (State::InFlight, Phase::Leased { deadline, .. }) => Stand::InFlight(Key::at(deadline, record.sequence)),
            (State::Dead { died, .. }, _) => Stand::Dead(Key::at(died, record.sequence)),
            _ => Stand::Waiting,
        }
    }

    fn placement(self) -> Placement {
        match self {
            Stand::Waiting => Placement::Waiting,
            Stand::InFlight(_) => Placement::InFlight,
            Stand::Dead(_) => Placement::Dead,
        }
    }

    /// The instant at which time alone brought a message there; `None` if a client did.
    fn moved_at(self, record: &Record) -> Option<UnixMs> {
        match (self, record.phase) {
            (Stand::InFlight(_), _) | (Stand::Waiting, Phase::Waiting) | (_, Phase::Dead { .. }) => None,
            (Stand::Dead(key), _) => Some(key.time()),
            (Stand::Waiting, Phase::Leased { deadline, .. }) => Some(deadline),
        }
    }
}

/// Operations on messages: where each one stands.
impl View {
    /// Puts a message into the order in which it stands at `now`. O(log n).
    pub fn place(&mut self, messages: &mut Messages, at: At, record: &Record, now: UnixMs) {
        let stand = Stand::of(record, now);
        match stand {
            Stand::Waiting => {
                self.waiting.insert(record.priority, record.due, record.sequence);
                if let Some(ttl) = record.ttl {
                    self.expiring.insert(Key::at(ttl.end, record.sequence));
                }
            }
            Stand::InFlight(key) => {
                self.inflight.insert(key);
                record.receipt().into_iter().for_each(|receipt| self.begun.begin(receipt));
            }
            Stand::Dead(key) => self.dead.insert(key),
        }
        self.moved_to = self.moved_to.max(stand.moved_at(record).unwrap_or_default());
        messages.set_placement(at, stand.placement());
    }

    /// Removes a message from the order in which it stands. `record` must be the record with which it was placed.
    /// O(log n).
    #[inline]
    pub fn unplace(&mut self, messages: &Messages, at: At, record: &Record) {
        match (messages.placement(at), record.phase) {
            (Placement::Waiting, _) => {
                self.waiting.remove(record.priority, record.due, record.sequence);
                if let Some(ttl) = record.ttl {
                    self.expiring.remove(Key::at(ttl.end, record.sequence));
                }
            }
            (Placement::InFlight, Phase::Leased { deadline, receipt }) => {
                self.begun.end(receipt);
                self.inflight.remove(Key::at(deadline, record.sequence));
            }
            // Only leased messages stand among the leases.
            (Placement::InFlight, Phase::Waiting | Phase::Dead { .. }) => {}
            // Time never revives a dead message, so its instant of death is the same at every later instant.
            (Placement::Dead, _) => {
                if let State::Dead { died, .. } = record.state_at(UnixMs::MAX) {
                    self.dead.remove(Key::at(died, record.sequence));
                }
            }
        }
    }

    /// Removes the first message in delivery order that is due by `now` from the view, for a delivery. The caller
    /// either puts it back as leased with [`View::lend`], or removes it from the queue. Returns `None` if no message is
    /// due. O(log n).
    #[inline]
    pub fn take_next(&mut self, messages: &mut Messages, now: UnixMs) -> Option<(At, Record)> {
        let sequence = self.waiting.pop(now)?;
        let (at, record) = messages.of(sequence)?;
        if let Some(ttl) = record.ttl {
            self.expiring.remove(Key::at(ttl.end, sequence));
        }
        Some((at, record))
    }

    /// Leases a message that [`View::take_next`] took. O(log n).
    #[inline]
    pub fn lend(&mut self, messages: &mut Messages, at: At, grant: &Grant) {
        messages.lend(at, grant.attempt, grant.deadline, grant.receipt);
        self.inflight.insert(Key::at(grant.deadline, grant.sequence));
        self.begun.begin(grant.receipt);
    }

    /// Removes the oldest dead message from the view, unless it is beyond `limit`. The caller removes it from the
    /// queue. O(log n).
    pub fn take_oldest_dead(&mut self, limit: Key) -> Option<Key> {
        self.dead.pop_first(limit)
    }

    /// Removes all dead messages up to `last` from the view. The caller removes them from the queue. O(n).
    pub fn take_dead_up_to(&mut self, last: Key) {
        self.dead.retain(|key| key > last);
    }

    /// Removes all messages that stood in one of `states` at `now`, after they were removed from `messages`.
    /// O(n log n).
    pub fn take_states(&mut self, messages: &Messages, now: UnixMs, states: States) {
        let (delayed, ready) = (states.contain(StateKind::Delayed), states.contain(StateKind::Ready));
        if delayed || ready {
            self.waiting.retain(|due| if due > now { !delayed } else { !ready });
            self.gather_expiring(messages);
        }
        if states.contain(StateKind::InFlight) {
            self.inflight = OrderedKeys::default();
            self.begun = Begun::default();
        }
        if states.contain(StateKind::Dead) {
            self.dead = OrderedKeys::default();
        }
    }

    fn gather_expiring(&mut self, messages: &Messages) {
        if self.expiring.is_empty() {
            return;
        }
        let waiting = messages.iter_after(None).filter(|at| messages.placement(*at) == Placement::Waiting);
        let ends = waiting.map(|at| messages.record(at)).filter_map(|record| {
            let end = record.ttl?.end;
            Some(Key::at(end, record.sequence))
        });
        self.expiring = OrderedKeys::from_unsorted(ends.collect());
    }

    /// Removes every message. O(n), for freeing the memory.
    pub fn clear(&mut self) {
        let View { at, moved_to, moved, .. } = *self;
        *self = View { at, moved_to, moved, ..View::default() };
        self.waiting.advance(at);
    }
}

/// Changes that time alone makes.
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
        let ready = self.waiting.advance(now);
        self.moved.ready = self.moved.ready.saturating_add(u32::try_from(ready).unwrap_or(u32::MAX));
    }

    /// Whether another clock brought the view beyond `now`.
    #[inline]
    pub fn is_beyond(&self, now: UnixMs) -> bool {
        self.moved_to > now
    }

    /// Records that nothing was moved beyond `now`, so that nothing beyond it was counted.
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

    /// Removes a key that belongs to no message; otherwise it would stay the first one forever.
    pub fn forget_end(&mut self, key: Key) {
        let _ = self.inflight.remove(key) || self.expiring.remove(key);
    }

    /// Brings one message up to `now`. O(log n) if that moves it, else O(1).
    ///
    /// Returns what that changed; `None` if the message already stands where it should at `now`, as most do.
    #[inline]
    pub fn refresh(&mut self, messages: &mut Messages, at: At, record: &Record, now: UnixMs) -> Option<Refreshed> {
        let is = Stand::of(record, now).placement();
        (messages.placement(at) != is).then(|| self.move_to(messages, at, record, is, now))
    }

    #[cold]
    fn move_to(&mut self, messages: &mut Messages, at: At, record: &Record, is: Placement, now: UnixMs) -> Refreshed {
        let lease_ended = messages.placement(at) == Placement::InFlight;
        self.advance_due(now);
        self.unplace(messages, at, record);
        self.place(messages, at, record, now);
        self.moved.ready = self.moved.ready.saturating_add(u32::from(lease_ended && is == Placement::Waiting));
        let died = match record.state_at(now) {
            State::Dead { reason, .. } => Some(reason),
            State::Delayed | State::Ready | State::InFlight => None,
        };
        self.moved.died = self.moved.died.saturating_add(u32::from(died.is_some()));
        Refreshed { lease_ended, died }
    }

    /// What time alone moved since the last call.
    pub fn take_moved(&mut self) -> Moved {
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
        earlier(earlier(self.waiting.next_due(), &self.inflight), &self.expiring)
    }

    /// Takes the view back to `now`, which lies before the instant to which another clock brought it. What time did in
    /// between will happen again, so the totals must subtract what is returned. O(n log n).
    pub fn rewind(&mut self, messages: &mut Messages, now: UnixMs) -> Uncounted {
        let mut uncounted = Uncounted::default();
        for at in messages.iter_after(None) {
            let record = messages.record(at);
            let (was, is) = (messages.placement(at), Stand::of(&record, now).placement());
            if is == Placement::InFlight && was != Placement::InFlight {
                uncounted.lease_expired += 1;
            }
            // Time never revives a dead message, so its reason is the same at every later instant.
            if let (Placement::Dead, State::Dead { reason, .. }) = (was, record.state_at(UnixMs::MAX)) {
                uncounted.died += u64::from(is != Placement::Dead);
                uncounted.expired += u64::from(is != Placement::Dead && reason == Reason::Expired);
            }
        }
        self.rebuild(messages, now);
        uncounted
    }

    /// Rebuilds the whole view for `now`. O(n log n), for a load and for a clock that was corrected.
    pub fn rebuild(&mut self, messages: &mut Messages, now: UnixMs) {
        let (mut waiting, mut expiring) = (Vec::new(), Vec::new());
        let (mut inflight, mut receipts, mut dead) = (Vec::new(), Vec::new(), Vec::new());
        let mut moved_to = UnixMs::EPOCH;
        messages.place_all(|record| {
            let stand = Stand::of(record, now);
            match stand {
                Stand::Waiting => {
                    waiting.push((record.priority, Key::at(record.due, record.sequence)));
                    expiring.extend(record.ttl.map(|ttl| Key::at(ttl.end, record.sequence)));
                }
                Stand::InFlight(key) => {
                    inflight.push(key);
                    receipts.extend(record.receipt());
                }
                Stand::Dead(key) => dead.push(key),
            }
            moved_to = moved_to.max(stand.moved_at(record).unwrap_or_default());
            stand.placement()
        });
        *self = View {
            waiting: Waiting::from_unsorted(waiting),
            inflight: OrderedKeys::from_unsorted(inflight),
            begun: Begun::from_receipts(receipts),
            expiring: OrderedKeys::from_unsorted(expiring),
            dead: OrderedKeys::from_unsorted(dead),
            at: now,
            moved_to,
            moved: self.moved,
        };
    }
}

/// Reading.
impl View {
    /// The number of messages in each state, as of the last advance. O(1).
    #[inline]
    pub fn counts(&self, messages: &Messages) -> Counts {
        let ready = self.waiting.ready();
        Counts {
            delayed: (self.waiting.len() - ready) as u64,
            ready: ready as u64,
            inflight: self.inflight.len() as u64,
            dead: self.dead.len() as u64,
            payload_bytes: messages.payload_bytes(),
        }
    }

    /// The number of ready messages, as of the last advance. O(1).
    #[inline]
    pub fn ready(&self) -> usize {
        self.waiting.ready()
    }

    /// The number of messages in flight, as of the last advance. O(1).
    #[inline]
    pub fn inflight(&self) -> usize {
        self.inflight.len()
    }

    /// The number of dead messages, as of the last advance. O(1).
    #[inline]
    pub fn dead(&self) -> usize {
        self.dead.len()
    }

    /// The number of waiting messages that are due by `now`. O(log n).
    pub fn due_by(&self, now: UnixMs) -> usize {
        self.waiting.due_by(now, usize::MAX)
    }

    /// The earliest due time of a waiting message.
    pub fn earliest_due(&self) -> Option<UnixMs> {
        self.waiting.earliest()
    }

    /// The earliest due time of a waiting message after `now`.
    pub fn due_after(&self, now: UnixMs) -> Option<UnixMs> {
        self.waiting.due_after(now)
    }

    /// The earliest deadline of a lease.
    pub fn first_deadline(&self) -> Option<UnixMs> {
        self.inflight.first().map(Key::time)
    }

    /// The instant at which the oldest delivery began that is still running at `now`; `None` if none is. At most
    /// `ended_max` leases that have ended since the last advance are recognised as ended.
    pub fn oldest_begun(&self, messages: &Messages, now: UnixMs, ended_max: usize) -> Option<UnixMs> {
        let end = Key::end_of(now);
        let ended = self.inflight.iter_after(None).take(ended_max).take_while(|lease| *lease <= end);
        let record = |lease: Key| messages.locate(lease.sequence()).map(|at| messages.record(at));
        self.begun.earliest_but(ended.filter_map(|lease| record(lease)?.receipt()).collect())
    }

    /// The first `count` messages of a state, in the order in which they leave it; dead messages are returned newest
    /// first.
    pub fn in_state(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        match kind {
            StateKind::Delayed => self.waiting.iter_delayed(now).take(count).collect(),
            StateKind::Ready => self.waiting.iter_ready(now).take(count).collect(),
            StateKind::InFlight => self.inflight.iter_after(None).take(count).map(Key::sequence).collect(),
            StateKind::Dead => self.dead.iter_backwards().take(count).map(Key::sequence).collect(),
        }
    }

    /// The oldest dead message.
    #[inline]
    pub fn oldest_dead(&self) -> Option<Key> {
        self.dead.first()
    }

    /// The newest dead message.
    pub fn newest_dead(&self) -> Option<Key> {
        self.dead.last()
    }

    /// The last of the `count` oldest dead messages; `None` if there is none. O(count).
    pub fn last_of_oldest_dead(&self, count: usize) -> Option<Key> {
        self.dead.iter_after(None).take(count).last()
    }

    /// The dead messages up to `last`, the oldest first.
    pub fn dead_up_to(&self, last: Key) -> Vec<Sequence> {
        self.dead.iter_after(None).take_while(|key| *key <= last).map(Key::sequence).collect()
    }

    /// The number of dead messages up to `last`. O(log n).
    pub fn count_dead_up_to(&self, last: Key) -> usize {
        self.dead.rank(last)
    }

    /// The leases and the TTLs that have ended by the instant of the view and were not ended in it yet.
    pub fn overdue(&self) -> (Vec<Key>, Vec<Key>) {
        let end = Key::end_of(self.at);
        let overdue = |keys: &OrderedKeys| keys.iter_after(None).take_while(|key| *key <= end).collect();
        (overdue(&self.inflight), overdue(&self.expiring))
    }

    /// The number of bytes on the heap. O(n / 64).
    pub fn heap_bytes(&self) -> usize {
        let sets = [&self.inflight, &self.expiring, &self.dead];
        self.waiting.heap_bytes() + self.begun.heap_bytes() + sets.iter().map(|set| set.heap_bytes()).sum::<usize>()
    }

    /// The number of allocations to free, an estimate. O(priorities in use).
    pub fn allocations(&self) -> usize {
        let sets = [&self.inflight, &self.expiring, &self.dead].into_iter().filter(|set| !set.is_empty());
        self.waiting.allocations() + sets.map(OrderedKeys::allocations).sum::<usize>()
    }

    /// Checks that each message stands in the one order that its record and its placement name, that no order holds
    /// anything else, and that the counts agree. O(n log n), for tests.
    pub fn check(&self, messages: &Messages) -> Result<(), &'static str> {
        self.waiting.check()?;
        let (mut waiting, mut expiring, mut inflight, mut dead) = (0, 0, 0, 0);
        let mut receipts = Vec::new();
        for at in messages.iter_after(None) {
            let record = messages.record(at);
            let stands = match messages.placement(at) {
                Placement::Waiting => {
                    waiting += 1;
                    let ttl = record.ttl.map(|ttl| Key::at(ttl.end, record.sequence));
                    expiring += usize::from(ttl.is_some());
                    !matches!(record.phase, Phase::Dead { .. })
                        && self.waiting.contains(record.priority, record.due, record.sequence)
                        && ttl.is_none_or(|end| self.expiring.contains(end))
                }
                Placement::InFlight => {
                    inflight += 1;
                    receipts.extend(record.receipt());
                    matches!(Stand::of(&record, UnixMs::EPOCH), Stand::InFlight(key) if self.inflight.contains(key))
                }
                Placement::Dead => {
                    dead += 1;
                    matches!(Stand::of(&record, UnixMs::MAX), Stand::Dead(key) if self.dead.contains(key))
                }
            };
            if !stands {
                return Err("a message does not stand where its record says");
            }
        }
        let counted = (self.waiting.len(), self.expiring.len(), self.inflight.len(), self.dead.len());
        if counted != (waiting, expiring, inflight, dead) {
            return Err("an order holds a message that is not there");
        }
        if self.begun.earliest_but(Vec::new()) != Begun::from_receipts(receipts).earliest_but(Vec::new()) {
            return Err("the earliest running delivery is wrong");
        }
        Ok(())
    }
}
