//! The view: the orders of the messages, which follow from their records and the time.
//!
//! A message waits, is in flight, or is dead, and stands in the order of its state: waiting messages in delivery order,
//! leases by deadline, dead messages by age. Waiting messages with a TTL also stand in a fourth order, by the end of
//! the TTL. The records hold what clients decided; the view is derived from them and is never saved or replicated.
//!
//! Time only moves forward in a queue, and the view follows in bounded steps: a message whose lease has expired may
//! still stand among the leases. But another clock may have brought the view too far forward, namely that of a master,
//! or that of this server before it was corrected. The view is then rebuilt once, so that no message counts as ready
//! while its lease still runs.
//!
//! Only the operations of [`View`] change where a message stands. Its fields are private, and [`View::check`] verifies
//! its invariants.

mod groups;
mod holders;
mod look;
mod time;

use super::counters::Uncounted;
use super::delivery_starts::DeliveryStarts;
use super::effect::Grant;
use super::groups::GroupView;
use super::messages::Messages;
use super::record::{Phase, Reason, Record, State};
use super::sorted_set::{Key, OrderedKeys};
use super::spans::Spans;
use super::store::{At, Placement};
use super::time::UnixMs;
use super::waiting::Waiting;
use holders::Holders;

/// The orders of a queue's messages, as of an instant.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Waiting messages, in delivery order; without those that have a group.
    waiting: Waiting,
    /// The orders of the messages that have a group. Allocated with the first one.
    groups: Option<Box<GroupView>>,
    /// Leases, by (deadline, sequence).
    inflight: OrderedKeys,
    /// The instants at which those deliveries of these leases began that bear no name.
    starts: DeliveryStarts,
    /// The ends of the TTLs of waiting messages, by (end, sequence).
    expiring: OrderedKeys,
    /// Dead messages, by (died, sequence).
    dead: OrderedKeys,
    /// Allocated with the first message that needs it.
    uncommon: Option<Box<UncommonState>>,
    /// The latest instant to which the view was brought: the totals count what time did up to it.
    at: UnixMs,
    /// The latest instant at which time alone moved a message.
    moved_to: UnixMs,
    /// What time alone moved since [`View::take_moved`] was last called.
    moved: MovedByTime,
}

/// What the view stores about failed runs and successors, which few queues have.
#[derive(Debug, Default)]
struct UncommonState {
    /// Recurring messages whose run has failed by time alone, by (died, sequence). A master ends these runs.
    failed: OrderedKeys,
    /// The bytes of the payloads that are still stored next to a successor although their delivery has ended.
    over: u64,
    /// The consumers that hold messages; allocated with the first one.
    holders: Option<Box<Holders>>,
}

/// The number of messages that time alone moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MovedByTime {
    pub ready: u32,
    pub died: u32,
}

/// The result of moving one message to where it stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refreshed {
    /// Whether its lease expired.
    pub lease_ended: bool,
    /// When and why it died, if it did.
    pub died: Option<(UnixMs, Reason)>,
    /// What was counted of it, if it goes back in time: an effect came late, and the clock of this server had gone on.
    pub uncounted: Uncounted,
}

/// The order in which a message stands at an instant, and its key there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Waiting,
    InFlight(Key),
    Dead(Key),
    /// It is recurring, and its run has failed.
    Failed(Key),
}

impl Stand {
    fn at(record: &Record, now: UnixMs) -> Stand {
        match (record.state_at(now), record.phase) {
            (State::InFlight, Phase::Leased { deadline, .. } | Phase::Successor { deadline, .. }) => {
                Stand::InFlight(Key::at(deadline, record.sequence))
            }
            (State::Dead { died, .. }, _) if record.recurring => Stand::Failed(Key::at(died, record.sequence)),
            (State::Dead { died, .. }, _) => Stand::Dead(Key::at(died, record.sequence)),
            _ => Stand::Waiting,
        }
    }

    fn placement(self) -> Placement {
        match self {
            Stand::Waiting => Placement::Waiting,
            Stand::InFlight(_) => Placement::InFlight,
            Stand::Dead(_) | Stand::Failed(_) => Placement::Dead,
        }
    }

    /// The instant at which time alone brought a message there; `None` if a client did.
    fn moved_at(self, record: &Record) -> Option<UnixMs> {
        match (self, record.phase) {
            (Stand::InFlight(_), _) | (Stand::Waiting, Phase::Waiting) | (_, Phase::Dead { .. }) => None,
            // The TTL of a successor may end before the delivery does, but it takes effect only when the delivery ends.
            (Stand::Dead(key) | Stand::Failed(key), Phase::Successor { deadline, .. }) => {
                Some(key.time().max(deadline))
            }
            (Stand::Dead(key) | Stand::Failed(key), _) => Some(key.time()),
            (Stand::Waiting, Phase::Leased { deadline, .. } | Phase::Successor { deadline, .. }) => Some(deadline),
        }
    }
}

/// Operations on messages: where each one stands.
impl View {
    /// Puts a message into the order in which it stands at `now`. O(log n).
    pub fn place(&mut self, messages: &mut Messages, at: At, record: &Record, now: UnixMs) {
        if messages.has_groups() {
            if let Some(id) = messages.group(at) {
                return self.place_in(id, messages, at, record, now);
            }
        }
        if self.enter(messages, at, record, now) == Stand::Waiting {
            self.waiting.insert(record.priority, record.due, record.sequence);
        }
    }

    /// Puts a message into the orders in which it stands at `now`, except the delivery order. Returns where it stands.
    fn enter(&mut self, messages: &mut Messages, at: At, record: &Record, now: UnixMs) -> Stand {
        let stand = Stand::at(record, now);
        match stand {
            Stand::Waiting => {
                if let Some(ttl) = record.ttl {
                    self.expiring.insert(Key::at(ttl.end, record.sequence));
                }
            }
            Stand::InFlight(key) => {
                self.inflight.insert(key);
                record.receipt().into_iter().for_each(|receipt| self.begin_delivery(messages, at, receipt));
            }
            Stand::Dead(key) => self.dead.insert(key),
            Stand::Failed(key) => self.uncommon.get_or_insert_default().failed.insert(key),
        }
        if !matches!(stand, Stand::InFlight(_)) {
            self.add_over(payload_left(messages, at, record));
        }
        self.moved_to = self.moved_to.max(stand.moved_at(record).unwrap_or_default());
        messages.set_placement(at, stand.placement());
        stand
    }

    /// Removes a message from the order in which it stands. `record` must be the record with which it was placed.
    /// O(log n).
    #[inline]
    pub fn unplace(&mut self, messages: &Messages, at: At, record: &Record) {
        if messages.has_groups() {
            if let Some(id) = messages.group(at) {
                return self.unplace_from(id, messages, at, record);
            }
        }
        if self.leave(messages, at, record) == Placement::Waiting {
            self.waiting.remove(record.priority, record.due, record.sequence);
        }
    }

    /// Removes a message from the orders in which it stands, except the delivery order. Returns where it stood.
    #[inline]
    fn leave(&mut self, messages: &Messages, at: At, record: &Record) -> Placement {
        let placement = messages.placement(at);
        if placement != Placement::InFlight {
            self.subtract_over(payload_left(messages, at, record));
        }
        match (placement, record.phase) {
            (Placement::Waiting, _) => {
                if let Some(ttl) = record.ttl {
                    self.expiring.remove(Key::at(ttl.end, record.sequence));
                }
            }
            (Placement::InFlight, Phase::Leased { deadline, receipt } | Phase::Successor { deadline, receipt }) => {
                self.end_delivery(messages, at, receipt);
                self.inflight.remove(Key::at(deadline, record.sequence));
            }
            // Only messages with a delivery stand among the leases.
            (Placement::InFlight, Phase::Waiting | Phase::Dead { .. }) => {}
            // Time never revives a dead message, so its instant of death is the same at every later instant.
            (Placement::Dead, _) => {
                if let State::Dead { died, .. } = record.state_at(UnixMs::MAX) {
                    let key = Key::at(died, record.sequence);
                    if record.recurring {
                        self.take_failed(key);
                    } else {
                        self.dead.remove(key);
                    }
                }
            }
        }
        placement
    }

    /// Moves a message from where it stood with its `old` record to where it stands with its `new` one. O(log n).
    pub fn replace(&mut self, messages: &mut Messages, at: At, old: &Record, new: &Record, now: UnixMs) {
        match messages.group(at) {
            None => match self.lease_moved(messages, at, old, new, now) {
                Some((from, to)) => {
                    messages.update(at, new);
                    // Leases usually move to the end, where an insertion costs least.
                    self.inflight.remove(from);
                    self.inflight.insert(to);
                }
                None => {
                    self.unplace(messages, at, old);
                    messages.update(at, new);
                    self.place(messages, at, new, now);
                }
            },
            Some(id) => {
                // The group settles once, so that no message is admitted in between.
                self.leave_from(id, messages, at, old);
                messages.update(at, new);
                self.enter_in(id, messages, at, new, now);
                self.settle(messages, id);
            }
        }
    }

    /// The old and the new place among the leases if only the deadline of the delivery is another one.
    #[inline]
    fn lease_moved(&self, messages: &Messages, at: At, old: &Record, new: &Record, now: UnixMs) -> Option<(Key, Key)> {
        let (Phase::Leased { deadline, receipt } | Phase::Successor { deadline, receipt }) = old.phase else {
            return None;
        };
        let Stand::InFlight(to) = Stand::at(new, now) else { return None };
        let is_same = messages.placement(at) == Placement::InFlight && new.receipt() == Some(receipt);
        is_same.then_some((Key::at(deadline, old.sequence), to))
    }

    /// Moves a message from where it stands to where it should stand at `now`. O(log n).
    pub(super) fn restand(&mut self, messages: &mut Messages, at: At, record: &Record, now: UnixMs) {
        match messages.group(at) {
            None => {
                self.unplace(messages, at, record);
                self.place(messages, at, record, now);
            }
            Some(id) => {
                self.leave_from(id, messages, at, record);
                self.enter_in(id, messages, at, record, now);
                self.settle(messages, id);
            }
        }
    }

    /// Removes the first message in delivery order that is due by `now` from the view, for a delivery. The caller
    /// either puts it back as leased with [`View::lend`], or removes it from the queue. Returns `None` if no message is
    /// due. O(log n).
    #[inline]
    pub fn take_next(&mut self, messages: &mut Messages, now: UnixMs) -> Option<(At, Record)> {
        if self.groups.is_some() {
            return self.take_next_of_all(messages, now);
        }
        let sequence = self.waiting.pop(now)?;
        let (at, record) = messages.locate_record(sequence)?;
        self.subtract_over(payload_left(messages, at, &record));
        if let Some(ttl) = record.ttl {
            self.expiring.remove(Key::at(ttl.end, sequence));
        }
        Some((at, record))
    }

    /// Leases a message that [`View::take_next`] took. O(log n).
    #[inline]
    pub fn lend(&mut self, messages: &mut Messages, at: At, grant: &Grant) {
        messages.lend(at, grant.attempt, grant.deadline, grant.receipt);
        let key = Key::at(grant.deadline, grant.sequence);
        self.inflight.insert(key);
        self.starts.begin(grant.receipt);
        if let (Some(groups), Some(id)) = (&mut self.groups, messages.group(at)) {
            groups.lend(id, key);
        }
    }

    /// Removes a dead message from the view. The caller removes it from the queue. O(log n).
    pub fn take_dead(&mut self, messages: &mut Messages, key: Key) {
        self.dead.remove(key);
        self.take_dead_of_group(messages, key);
    }

    /// Removes a recurring message from those whose run has failed. O(log n).
    fn take_failed(&mut self, key: Key) {
        if let Some(uncommon) = &mut self.uncommon {
            uncommon.failed.remove(key);
            self.free_uncommon();
        }
    }

    fn free_uncommon(&mut self) {
        if self
            .uncommon
            .as_ref()
            .is_some_and(|uncommon| uncommon.failed.is_empty() && uncommon.over == 0 && uncommon.holders.is_none())
        {
            self.uncommon = None;
        }
    }

    /// The bytes of the payloads that are still stored next to a successor although their delivery has ended.
    #[inline]
    fn over(&self) -> u64 {
        self.uncommon.as_ref().map_or(0, |uncommon| uncommon.over)
    }

    #[inline]
    fn add_over(&mut self, bytes: u64) {
        if bytes > 0 {
            self.uncommon.get_or_insert_default().over += bytes;
        }
    }

    #[inline]
    fn subtract_over(&mut self, bytes: u64) {
        if bytes > 0 {
            self.uncommon.as_mut().into_iter().for_each(|uncommon| uncommon.over -= bytes);
            self.free_uncommon();
        }
    }

    /// Removes all messages in `spans`, after they were removed from `messages`. O(n log n).
    pub fn forget(&mut self, messages: &Messages, spans: &Spans) {
        let stays = |key: Key| !spans.contain(key.sequence());
        self.waiting.retain(stays);
        self.expiring.retain(stays);
        self.dead.retain(stays);
        let over = self.payloads_left(messages);
        if let Some(uncommon) = &mut self.uncommon {
            uncommon.failed.retain(stays);
            uncommon.over = over;
            self.free_uncommon();
        }
        let inflight = self.inflight.len();
        self.inflight.retain(stays);
        if self.inflight.len() < inflight {
            self.recount_deliveries(messages);
        }
        if self.groups.is_some() {
            self.groups = GroupView::rebuilt(messages, self.waiting.boundary());
        }
    }

    /// Removes every message. O(n), for freeing the memory.
    pub fn clear(&mut self) {
        let View { at, moved_to, moved, .. } = *self;
        *self = View { at, moved_to, moved, ..View::default() };
        self.waiting.advance(at);
    }
}

/// The bytes of the payload that is stored next to the message, if that is a successor. It is left over if the delivery
/// has ended.
#[inline]
fn payload_left(messages: &Messages, at: At, record: &Record) -> u64 {
    match record.phase {
        Phase::Successor { .. } => messages.leaving(at).map_or(0, |leaving| leaving.payload.len() as u64),
        Phase::Waiting | Phase::Leased { .. } | Phase::Dead { .. } => 0,
    }
}

impl View {
    /// The bytes of all payloads that are still stored next to a successor although their delivery has ended.
    /// O(m log n).
    fn payloads_left(&self, messages: &Messages) -> u64 {
        let over = messages.all_leaving().filter(|(sequence, _)| {
            messages.locate(*sequence).is_some_and(|at| messages.placement(at) != Placement::InFlight)
        });
        over.map(|(_, leaving)| leaving.payload.len() as u64).sum()
    }
}
