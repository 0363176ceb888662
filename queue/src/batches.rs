//! Batches: which messages belong to which batch, how many of each have ended and how, and what follows the last one.
//!
//! A batch is a counter by name and, once it is closed, a message that waits to be pushed. Its members have its number
//! (see [`super::store`]), so a message without a batch costs nothing. Everything here follows from the effects: the
//! end of a member is counted where the message ends, on every server alike. Batches that have lost their last member
//! are looked at once an effect is complete, in the order of their names, so that the order in which one effect ends
//! messages does not matter.

use super::groups::is_group_name;
use super::headers::HeaderBlock;
use super::id::{BatchId, Id, Sequence};
use super::memory::{box_bytes, given, sum_sampled, tree_bytes, vec_bytes};
use super::name_index::NameIndex;
use super::settings::{Retries, MAX_LENGTH};
use super::time::{DurationMs, UnixMs};
use idle::Idle;
use std::collections::{BTreeMap, BTreeSet};

mod idle;

/// The largest number of bytes in the name of a batch.
pub const BATCH_NAME_MAX: usize = 255;

/// How long a batch is remembered that has no member left and was never closed: a day.
const REMEMBERED: DurationMs = DurationMs::new(86_400_000);

/// The largest number of forgotten batches whose memory one effect frees.
const SWEPT: usize = 16;

/// Whether a batch can have this name.
pub fn is_batch_name(name: &[u8]) -> bool {
    (1..=BATCH_NAME_MAX).contains(&name.len())
}

/// The message that follows a batch, as a client described it. Its headers are joined by those that say how the batch
/// ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// The payload.
    pub payload: Box<[u8]>,
    /// The name that the client chose. If it is taken by then, the message gets a generated id.
    pub name: Option<Box<[u8]>>,
    /// How long after the end of the batch it is due; `None` means at once.
    pub delay: Option<DurationMs>,
    /// The priority.
    pub priority: i8,
    /// The number of redeliveries; overrides the setting that the queue has by then.
    pub retries: Option<Retries>,
    /// The duration of its leases; overrides the queue's setting.
    pub lease: Option<DurationMs>,
    /// The name of its group.
    pub group: Option<Box<[u8]>>,
    /// Its headers.
    pub headers: Option<HeaderBlock>,
}

impl FollowUp {
    /// Whether a client could have described this message.
    pub(super) fn is_valid(&self) -> bool {
        self.name.as_deref().is_none_or(Id::is_name)
            && self.group.as_deref().is_none_or(is_group_name)
            && self.lease.is_none_or(|lease| !lease.is_zero())
    }

    fn heap_bytes(&self) -> usize {
        let texts = [Some(&self.payload), self.name.as_ref(), self.group.as_ref()];
        box_bytes::<FollowUp>()
            + texts.into_iter().flatten().map(|text| given(text.len())).sum::<usize>()
            + self.headers.as_ref().map_or(0, HeaderBlock::heap_bytes)
    }
}

/// How a message ends its membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberEnd {
    /// It was acked, completed, taken without a lease or forwarded.
    Acked,
    /// It became dead.
    Dead,
    /// It was cancelled, purged or replaced.
    Cancelled,
}

/// A batch as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// How many messages have been members.
    pub total: u64,
    /// How many still are.
    pub left: u64,
    /// How many were acked.
    pub acked: u64,
    /// How many became dead.
    pub dead: u64,
    /// How many were cancelled.
    pub cancelled: u64,
    /// What follows; `None` if the batch was not closed.
    pub then: Option<&'a FollowUp>,
    /// When it began.
    pub created: UnixMs,
}

/// A batch as it is saved; its members name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchState<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// When it began.
    pub created: UnixMs,
    /// How many members were acked, became dead, and were cancelled.
    pub ends: [u64; 3],
    /// When its last member ended; zero if it has members or is closed.
    pub idle: UnixMs,
    /// What follows it; `None` if it was not closed.
    pub then: Option<Box<FollowUp>>,
}

impl BatchState<'_> {
    /// Whether a queue could have saved this.
    fn is_valid(&self) -> bool {
        is_batch_name(self.name)
            && self.ends.iter().all(|count| *count <= MAX_LENGTH)
            && self.then.as_ref().is_none_or(|then| then.is_valid())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub name: Box<[u8]>,
    created: UnixMs,
    left: u64,
    acked: u64,
    dead: u64,
    cancelled: u64,
    /// Its members are between these two.
    pub first: Sequence,
    pub last: Sequence,
    /// When it lost its last member; it is among `idle` under this instant if it has none and is not closed.
    ended: UnixMs,
    pub then: Option<Box<FollowUp>>,
}

impl Entry {
    fn is_idle(&self) -> bool {
        self.left == 0 && self.then.is_none()
    }

    /// The batch as clients see it.
    pub fn shown(&self) -> Batch<'_> {
        let Entry { left, acked, dead, cancelled, created, .. } = *self;
        let total = left + acked + dead + cancelled;
        Batch { total, left, acked, dead, cancelled, then: self.then.as_deref(), created }
    }
}

/// The batches of a queue.
#[derive(Debug, Default)]
pub(super) struct Batches {
    names: NameIndex<BatchId>,
    entries: BTreeMap<BatchId, Entry>,
    /// Numbers that are free, and the first one that was never used.
    free: Vec<BatchId>,
    next: u32,
    /// Members that time alone may have made dead. A master ends their membership.
    overdue: BTreeSet<Sequence>,
    /// Batches without a member that were not closed.
    idle: Idle,
    /// Batches that have lost their last member, or were closed, since the last effect was complete.
    emptied: BTreeSet<BatchId>,
    /// Whether a batch has ended since [`Batches::take_ended`] was last called.
    ended: bool,
}

impl Batches {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.ended
    }

    /// The number of batches in memory.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether a batch has ended since the last call.
    pub fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    fn find(&self, name: &[u8]) -> Option<BatchId> {
        let is_it = |id: BatchId| self.entries.get(&id).is_some_and(|entry| *entry.name == *name);
        self.names.find(name, |id| is_it(id).then_some(id))
    }

    /// Whether a batch is idle, and its time is over at `now` or was when an earlier effect was decided. O(log n).
    fn is_over(&self, id: BatchId, entry: &Entry, now: UnixMs) -> bool {
        entry.is_idle() && (entry.ended <= forgotten_at(now) || self.idle.has_forgotten(entry.ended, id))
    }

    /// The batch with this name at `now`. O(log n).
    pub fn get(&self, name: &[u8], now: UnixMs) -> Option<&Entry> {
        let id = self.find(name)?;
        self.entries.get(&id).filter(|entry| !self.is_over(id, entry, now))
    }

    /// How many batches there are at `now`. O(log n), and O(number of those that are forgotten).
    pub fn count(&self, now: UnixMs) -> usize {
        self.entries.len() - self.idle.count_up_to(forgotten_at(now))
    }

    fn create(&mut self, name: &[u8], created: UnixMs) -> BatchId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            BatchId(self.next - 1)
        });
        self.names.insert(name, id);
        self.entries.insert(id, Entry { name: name.into(), created, ..Entry::default() });
        id
    }

    /// Removes a batch, and returns it. It must have no member left, or the caller removes these.
    fn remove(&mut self, id: BatchId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.names.remove(&entry.name, id);
        self.idle.remove(entry.ended, id);
        self.free.push(id);
        Some(entry)
    }

    /// The batch with this name, which is created if there is none. One that is forgotten begins anew.
    fn enter(&mut self, name: &[u8], now: UnixMs) -> BatchId {
        match self.find(name) {
            None => self.create(name, now),
            Some(id) => {
                let is_over = self.entries.get(&id).is_some_and(|entry| self.is_over(id, entry, now));
                // A batch that has just lost its last member is not idle yet.
                if is_over && !self.emptied.contains(&id) {
                    self.remove(id);
                    return self.create(name, now);
                }
                id
            }
        }
    }

    /// Adds a message to a batch, and returns the number of the batch. O(log n).
    pub fn join(&mut self, name: &[u8], sequence: Sequence, now: UnixMs) -> BatchId {
        let id = self.enter(name, now);
        self.add(id, sequence);
        id
    }

    fn add(&mut self, id: BatchId, sequence: Sequence) {
        if let Some(entry) = self.entries.get_mut(&id) {
            if entry.left == 0 {
                self.idle.remove(entry.ended, id);
                entry.first = sequence;
            }
            entry.first = entry.first.min(sequence);
            entry.last = entry.last.max(sequence);
            entry.left += 1;
        }
    }

    /// Says what follows a batch, which is created if there is none. Returns how many members are left. O(log n).
    pub fn close(&mut self, name: &[u8], then: Box<FollowUp>, now: UnixMs) -> u64 {
        let id = self.enter(name, now);
        let Some(entry) = self.entries.get_mut(&id) else { return 0 };
        entry.then = Some(then);
        self.idle.remove(entry.ended, id);
        if entry.left == 0 {
            self.emptied.insert(id);
        }
        entry.left
    }

    /// The name of a batch. O(log n).
    pub fn name_of(&self, id: BatchId) -> Option<&[u8]> {
        self.entries.get(&id).map(|entry| &*entry.name)
    }

    /// Counts the end of a member. O(log n).
    pub fn end(&mut self, id: BatchId, sequence: Sequence, how: MemberEnd) {
        self.overdue.remove(&sequence);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.left = entry.left.saturating_sub(1);
        let count = match how {
            MemberEnd::Acked => &mut entry.acked,
            MemberEnd::Dead => &mut entry.dead,
            MemberEnd::Cancelled => &mut entry.cancelled,
        };
        *count = count.saturating_add(1);
        if entry.left == 0 {
            self.emptied.insert(id);
        }
    }

    /// Notes that time alone may have made a member dead.
    pub fn note_overdue(&mut self, sequence: Sequence) {
        self.overdue.insert(sequence);
    }

    /// Whether time alone may have made a member dead. O(log n).
    pub fn is_overdue(&self, sequence: Sequence) -> bool {
        self.overdue.contains(&sequence)
    }

    /// Whether there are members that time alone may have made dead. O(1).
    #[inline]
    pub fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    /// Takes one of the members that time alone may have made dead; it stays a member.
    pub fn pop_overdue(&mut self) -> Option<Sequence> {
        self.overdue.pop_first()
    }

    /// Removes a batch, and returns it with its number. The caller ends the membership of its members, before the
    /// number is given to another batch.
    pub fn dissolve(&mut self, name: &[u8]) -> Option<(BatchId, Entry)> {
        let id = self.find(name)?;
        self.emptied.remove(&id);
        Some((id, self.remove(id)?))
    }

    /// Forgets which of these messages time alone may have made dead: they are no members any more.
    pub fn forget(&mut self, members: &[Sequence]) {
        for sequence in members {
            self.overdue.remove(sequence);
        }
    }

    /// Looks at the batches that have lost their last member, because an effect is complete: takes out those that are
    /// closed, and forgets what was idle for too long. O(log n) for each.
    pub fn settle(&mut self, now: UnixMs) -> Vec<Entry> {
        let mut emptied: Vec<BatchId> = std::mem::take(&mut self.emptied).into_iter().collect();
        let name = |id: &BatchId| self.entries.get(id).map(|entry| &*entry.name);
        emptied.sort_by(|one, other| name(one).cmp(&name(other)));
        let mut over = Vec::new();
        for id in emptied {
            let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.left == 0) else { continue };
            if entry.then.is_some() {
                over.extend(self.remove(id));
            } else {
                self.idle.remove(entry.ended, id);
                entry.ended = now;
                self.idle.insert(now, id);
            }
        }
        self.ended |= !over.is_empty();
        self.idle.forget_up_to(forgotten_at(now));
        for _ in 0..SWEPT {
            let Some(id) = self.idle.pop_forgotten() else { break };
            self.remove(id);
        }
        over
    }

    /// The batches as they are saved, in the order of their names.
    pub fn states(&self) -> Vec<BatchState<'_>> {
        let kept = self.entries.iter().filter(|(id, entry)| !self.idle.has_forgotten(entry.ended, **id));
        let mut states: Vec<_> = kept
            .map(|(_, entry)| BatchState {
                name: &entry.name,
                created: entry.created,
                ends: [entry.acked, entry.dead, entry.cancelled],
                idle: if entry.is_idle() { entry.ended } else { UnixMs::EPOCH },
                then: entry.then.clone(),
            })
            .collect();
        states.sort_unstable_by_key(|state| state.name);
        states
    }

    /// Whether these batches may be added while a queue is loaded.
    pub fn may_restore(&self, states: &[BatchState<'_>]) -> bool {
        let mut names = BTreeSet::new();
        states.iter().all(|state| state.is_valid() && names.insert(state.name) && self.find(state.name).is_none())
    }

    /// Adds batches of a saved queue, whose members follow.
    pub fn restore(&mut self, states: &[BatchState<'_>]) {
        for state in states {
            let id = self.create(state.name, state.created);
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            [entry.acked, entry.dead, entry.cancelled] = state.ends;
            entry.ended = state.idle;
            entry.then.clone_from(&state.then);
            if entry.is_idle() {
                self.idle.insert(entry.ended, id);
            }
        }
    }

    /// Adds a member of a saved queue.
    pub fn restore_member(&mut self, name: &[u8], sequence: Sequence, now: UnixMs) -> BatchId {
        let id = self.find(name).unwrap_or_else(|| self.create(name, now));
        self.add(id, sequence);
        // Where it is zero in a saved queue, it is so here.
        self.entries.get_mut(&id).into_iter().for_each(|entry| entry.ended = UnixMs::EPOCH);
        id
    }

    pub fn heap_bytes(&self) -> usize {
        let entry = |entry: &Entry| given(entry.name.len()) + entry.then.as_ref().map_or(0, |then| then.heap_bytes());
        self.names.heap_bytes()
            + tree_bytes::<BatchId, Entry>(self.entries.len())
            + sum_sampled(self.entries.values(), entry)
            + tree_bytes::<Sequence, ()>(self.overdue.len())
            + self.idle.heap_bytes()
            + vec_bytes::<BatchId>(self.free.capacity())
            + tree_bytes::<BatchId, ()>(self.emptied.len())
    }

    /// Checks the counts, and that each batch is found by its name. `members` are all of them, each with its batch and
    /// whether it stands among the dead. O(n log n), for tests.
    pub fn check(&self, members: impl Iterator<Item = (Sequence, BatchId, bool)>) -> Result<(), &'static str> {
        let (mut counts, mut overdue): (BTreeMap<BatchId, u64>, usize) = Default::default();
        for (sequence, id, is_dead) in members {
            *counts.entry(id).or_default() += 1;
            overdue += usize::from(self.is_overdue(sequence));
            if is_dead && !self.is_overdue(sequence) {
                return Err("a dead message is in a batch, and nobody will end its membership");
            }
        }
        if overdue != self.overdue.len() {
            return Err("a message is overdue but in no batch");
        }
        for (id, entry) in &self.entries {
            if entry.left != counts.remove(id).unwrap_or(0) {
                return Err("the members of a batch are miscounted");
            }
            if self.find(&entry.name) != Some(*id) {
                return Err("a batch is not found by its name");
            }
            let is_idle = self.idle.contains(entry.ended, *id);
            if is_idle != entry.is_idle() && !self.emptied.contains(id) {
                return Err("a batch without members is not known to be idle");
            }
        }
        if !counts.is_empty() || self.names.len() != self.entries.len() || self.idle.len() > self.entries.len() {
            return Err("the batches are miscounted");
        }
        Ok(())
    }
}

/// The instant up to which idle batches are forgotten at `now`.
fn forgotten_at(now: UnixMs) -> UnixMs {
    UnixMs::new(now.as_ms().saturating_sub(REMEMBERED.as_ms()))
}
