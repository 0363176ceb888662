//! Reading the view: counts, the first messages of a state, and checks of its invariants.

use super::{Holders, Stand, UncommonState, View};
use crate::groups::GroupView;
use crate::id::Sequence;
use crate::memory::box_bytes;
use crate::messages::Messages;
use crate::record::{Phase, StateKind};
use crate::sorted_set::{Key, OrderedKeys};
use crate::store::Placement;
use crate::time::UnixMs;
use crate::waiting::Waiting;
use crate::Counts;

impl View {
    /// The number of messages in each state except done, as of the last advance. O(1).
    #[inline(always)]
    pub fn counts(&self, messages: &Messages) -> Counts {
        let (waiting, ready) = match self.groups {
            None => (self.waiting.len(), self.waiting.ready()),
            Some(_) => (self.len_waiting(), self.ready()),
        };
        let (failed, over) = self.uncommon.as_ref().map_or((0, 0), |uncommon| (uncommon.failed.len(), uncommon.over));
        Counts {
            delayed: (waiting - ready) as u64,
            ready: ready as u64,
            inflight: self.inflight.len() as u64,
            dead: (self.dead.len() + failed) as u64,
            done: 0,
            payload_bytes: messages.payload_bytes().saturating_sub(over),
        }
    }

    /// The number of ready messages, as of the last advance. O(1).
    #[inline]
    pub fn ready(&self) -> usize {
        if self.groups.is_none() {
            return self.waiting.ready();
        }
        self.all_waiting().map(Waiting::ready).sum()
    }

    /// The number of waiting messages. O(1).
    #[inline]
    fn len_waiting(&self) -> usize {
        if self.groups.is_none() {
            return self.waiting.len();
        }
        self.all_waiting().map(Waiting::len).sum()
    }

    /// The number of messages in flight, as of the last advance. O(1).
    #[inline]
    pub fn inflight(&self) -> usize {
        self.inflight.len()
    }

    /// The number of recurring messages whose run has failed and was not ended yet, as of the last advance. O(1).
    #[inline]
    pub fn failed(&self) -> usize {
        self.uncommon.as_ref().map_or(0, |uncommon| uncommon.failed.len())
    }

    /// The number of dead messages, as of the last advance, without recurring ones. O(1).
    #[inline]
    pub fn dead(&self) -> usize {
        self.dead.len()
    }

    /// The number of waiting messages that are due by `now`. O(log n).
    pub fn due_by(&self, now: UnixMs) -> usize {
        self.all_waiting().map(|waiting| waiting.due_by(now, usize::MAX)).sum()
    }

    /// The earliest due time of a waiting message.
    pub fn earliest_due(&self) -> Option<UnixMs> {
        self.all_waiting().filter_map(Waiting::earliest).min()
    }

    /// The earliest due time of a waiting message after `now`.
    pub fn due_after(&self, now: UnixMs) -> Option<UnixMs> {
        self.all_waiting().filter_map(|waiting| waiting.due_after(now)).min()
    }

    /// The earliest deadline of a lease.
    pub fn first_deadline(&self) -> Option<UnixMs> {
        self.inflight.first().map(Key::time)
    }

    /// The messages whose leases end after `now`, by their ends.
    pub fn leases_after(&self, now: UnixMs) -> impl Iterator<Item = Sequence> + '_ {
        self.inflight.iter_after(Some(Key::end_of(now))).map(Key::sequence)
    }

    /// The first `count` messages of a state, in the order in which they leave it; dead messages are returned newest
    /// first. Done messages are in no view.
    pub fn in_state(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        match kind {
            StateKind::Delayed | StateKind::Ready if self.groups.is_some() => self.in_order(now, kind, count),
            StateKind::Delayed => self.waiting.iter_delayed(now).take(count).collect(),
            StateKind::Ready => self.waiting.iter_ready(now).take(count).collect(),
            StateKind::InFlight => self.inflight.iter_after(None).take(count).map(Key::sequence).collect(),
            StateKind::Done => Vec::new(),
            StateKind::Dead => match &self.uncommon {
                None => self.dead.iter_backwards().take(count).map(Key::sequence).collect(),
                Some(uncommon) => {
                    let newest = |keys: &OrderedKeys| keys.iter_backwards().take(count).collect::<Vec<_>>();
                    let mut both = [newest(&self.dead), newest(&uncommon.failed)].concat();
                    both.sort_unstable_by(|one, other| other.cmp(one));
                    both.into_iter().take(count).map(Key::sequence).collect()
                }
            },
        }
    }

    /// The oldest dead message.
    #[inline]
    pub fn oldest_dead(&self) -> Option<Key> {
        self.dead.first()
    }

    /// The earliest and the latest death of a message that is dead, or whose run has failed; `None` if none is.
    pub fn deaths(&self) -> Option<(UnixMs, UnixMs)> {
        let failed = self.uncommon.as_ref().map(|uncommon| &uncommon.failed);
        let both = std::iter::once(&self.dead).chain(failed);
        let ends = both.filter_map(|keys| Some((keys.first()?.time(), keys.iter_backwards().next()?.time())));
        ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// The `count` oldest dead messages. O(count).
    pub fn oldest_of_dead(&self, count: usize) -> Vec<Sequence> {
        self.dead.iter_after(None).take(count).map(Key::sequence).collect()
    }

    /// The number of dead messages up to `last`. O(log n).
    pub fn count_dead_up_to(&self, last: Key) -> usize {
        self.dead.rank(last)
    }

    /// The leases and the TTLs that have ended by the instant of the view, but that the view has not processed yet.
    pub fn overdue(&self) -> (Vec<Key>, Vec<Key>) {
        let end = Key::end_of(self.at);
        let overdue = |keys: &OrderedKeys| keys.iter_after(None).take_while(|key| *key <= end).collect();
        (overdue(&self.inflight), overdue(&self.expiring))
    }

    /// The number of bytes on the heap. O(n / 64).
    pub fn heap_bytes(&self, messages: &Messages) -> usize {
        let groups = self.groups().map(|groups| box_bytes::<GroupView>() + groups.heap_bytes(messages.grouped()));
        let sets = [&self.inflight, &self.expiring, &self.dead];
        self.waiting.heap_bytes()
            + groups.unwrap_or(0)
            + self.starts.heap_bytes()
            + sets.iter().map(|set| set.heap_bytes()).sum::<usize>()
            + self.uncommon.as_ref().map_or(0, |uncommon| {
                let holders =
                    uncommon.holders.as_ref().map_or(0, |holders| box_bytes::<Holders>() + holders.heap_bytes());
                box_bytes::<UncommonState>() + uncommon.failed.heap_bytes() + holders
            })
    }

    /// Checks that each message stands in the one order that its record and its placement name, that no order holds
    /// anything else, and that the counts agree. O(n log n), for tests.
    pub fn check(&self, messages: &Messages) -> Result<(), &'static str> {
        self.waiting.check()?;
        match &self.groups {
            Some(groups) => groups.check(messages)?,
            None if messages.iter_after(None).any(|at| messages.group(at).is_some()) => {
                return Err("the messages of groups stand nowhere");
            }
            None => {}
        }
        let (mut waiting, mut expiring, mut inflight, mut dead, mut failed) = (0, 0, 0, 0, 0);
        for at in messages.iter_after(None) {
            let record = messages.record(at);
            let stands = match messages.placement(at) {
                Placement::Waiting => {
                    waiting += 1;
                    let ttl = record.ttl.map(|ttl| Key::at(ttl.end, record.sequence));
                    expiring += usize::from(ttl.is_some());
                    !matches!(record.phase, Phase::Dead { .. })
                        && (messages.group(at).is_some()
                            || self.waiting.contains(record.priority, record.due, record.sequence))
                        && ttl.is_none_or(|end| self.expiring.contains(end))
                }
                Placement::InFlight => {
                    inflight += 1;
                    matches!(Stand::at(&record, UnixMs::EPOCH), Stand::InFlight(key) if self.inflight.contains(key))
                }
                Placement::Dead if record.recurring => {
                    failed += 1;
                    let stands = |key| self.uncommon.as_ref().is_some_and(|uncommon| uncommon.failed.contains(key));
                    matches!(Stand::at(&record, UnixMs::MAX), Stand::Failed(key) if stands(key))
                }
                Placement::Dead => {
                    dead += 1;
                    matches!(Stand::at(&record, UnixMs::MAX), Stand::Dead(key) if self.dead.contains(key))
                }
            };
            if !stands {
                return Err("a message does not stand where its record says");
            }
        }
        let counted = (self.len_waiting(), self.expiring.len(), self.inflight.len(), self.dead.len(), self.failed());
        if counted != (waiting, expiring, inflight, dead, failed) {
            return Err("an order holds a message that is not there");
        }
        if self.over() != self.payloads_left(messages) {
            return Err("the payloads of ended deliveries are miscounted");
        }
        self.check_deliveries(messages)
    }
}
