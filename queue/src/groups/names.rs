//! The groups of a queue: their names, how many messages refer to each, and when each had its last turn.
//!
//! A group exists as long as the queue holds a message of it, in whatever state. That follows from the records alone,
//! so all servers have the same groups and the same turns. A group that has lost its last message ends with the effect
//! that removed it: the order in which one effect removes and adds messages then does not matter.

use super::slab::Slab;
use super::{last_turn_at, place_in_round, GroupId, GroupLimits};
use crate::id::first_tick;
use crate::memory::{given, tree_bytes, vec_bytes};
use crate::name_index::{NameHash, NameIndex};
use crate::time::UnixMs;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The groups of a queue.
#[derive(Debug)]
pub(crate) struct GroupNames {
    pub limits: GroupLimits,
    entries: Slab<Entry>,
    /// The numbers below `next` that are free.
    free: BinaryHeap<Reverse<u32>>,
    next: u32,
    index: NameIndex<GroupId>,
    /// The bytes that all names take.
    name_bytes: usize,
    /// The number of messages that have a group.
    members: usize,
    /// The group that was joined last: the next message is often of the same one.
    joined: u32,
    /// The last turn that was given. If groups do not take turns, this and all other turns are zero.
    last: u64,
    /// The last turn of the messages without a group.
    ungrouped: u64,
    /// The claims of groups, and under `None` the claim of the messages without a group.
    claims: BTreeMap<Option<GroupId>, Claim>,
    /// The latest instant at which a claim was noted.
    claimed: UnixMs,
    /// Groups that have lost their last message since the last [`GroupNames::end_effect`].
    left: Vec<GroupId>,
}

/// The claim of a group to a place in the round. If the message with which a group would have been served is taken away
/// (cancelled, buried, rescheduled, replaced or purged), the group has still had work for all that time. Its messages
/// that were due by then therefore keep the place of that message. The next turn of the group ends its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Since when the group has had work.
    pub since: UnixMs,
    /// When such a message was last taken away.
    pub until: UnixMs,
}

#[derive(Debug, Default)]
struct Entry {
    name: Box<[u8]>,
    members: usize,
    turn: u64,
}

impl Entry {
    /// Whether the entry belongs to a group.
    fn is_used(&self) -> bool {
        !self.name.is_empty()
    }
}

/// The group that a new message joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership<'a> {
    pub name: &'a [u8],
    /// The settings of the queue.
    pub limits: GroupLimits,
    /// The time at which a new group enters the round, if groups take turns.
    pub now: UnixMs,
}

/// The turns of a queue as they are saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnState<'a> {
    /// The last turn that was given.
    pub last: u64,
    /// The last turn of the messages without a group, and their claim.
    pub ungrouped: (u64, Option<Claim>),
    /// The last turns and the claims of groups, by their names.
    pub groups: Vec<(&'a [u8], u64, Option<Claim>)>,
}

impl GroupNames {
    pub fn new(limits: GroupLimits) -> GroupNames {
        GroupNames {
            limits,
            entries: Slab::default(),
            free: BinaryHeap::new(),
            next: 0,
            index: NameIndex::default(),
            name_bytes: 0,
            members: 0,
            joined: 0,
            last: 0,
            ungrouped: 0,
            claims: BTreeMap::new(),
            claimed: UnixMs::EPOCH,
            left: Vec::new(),
        }
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.entries.used() == 0
    }

    /// Adds a message to a group, which is created if there is none of that name. O(log n).
    pub fn join(&mut self, of: &Membership<'_>) -> GroupId {
        let same = self.entries.get(self.joined).filter(|entry| *entry.name == *of.name).map(|_| GroupId(self.joined));
        let id = same.or_else(|| self.find(of.name)).unwrap_or_else(|| self.create(of));
        self.joined = id.0;
        if let Some(entry) = self.entries.get_mut(id.0) {
            entry.members += 1;
            self.members += 1;
        }
        id
    }

    fn create(&mut self, of: &Membership<'_>) -> GroupId {
        let number = match self.free.pop() {
            Some(Reverse(number)) => number,
            None => {
                self.next += 1;
                self.next - 1
            }
        };
        if self.limits.by_turn {
            self.last = self.last.max(first_tick(of.now));
        }
        let turn = self.last;
        if let Some(entry) = self.entries.occupy(number) {
            *entry = Entry { name: of.name.into(), members: 0, turn };
        }
        self.index.insert(of.name, GroupId(number));
        self.name_bytes += given(of.name.len());
        GroupId(number)
    }

    /// Removes a message from its group. O(1).
    pub fn leave(&mut self, id: GroupId) {
        let Some(entry) = self.entries.get_mut(id.0) else { return };
        entry.members = entry.members.saturating_sub(1);
        self.members = self.members.saturating_sub(1);
        if entry.members == 0 {
            self.left.push(id);
        }
    }

    /// Ends the groups that have no message left. Called when an effect is complete. O(log n) for each group that ends.
    pub fn end_effect(&mut self) {
        for id in std::mem::take(&mut self.left) {
            let Some(entry) = self.entries.get(id.0).filter(|entry| entry.members == 0 && entry.is_used()) else {
                continue;
            };
            self.index.remove(&entry.name, id);
            self.name_bytes = self.name_bytes.saturating_sub(given(entry.name.len()));
            self.entries.vacate(id.0);
            self.claims.remove(&Some(id));
            self.free.push(Reverse(id.0));
        }
    }

    /// Counts the members again. O(n).
    pub fn recount(&mut self, members: impl Iterator<Item = GroupId>) {
        let mut counts = vec![0; self.next as usize];
        for id in members {
            counts.get_mut(id.0 as usize).into_iter().for_each(|count| *count += 1);
        }
        for (number, count) in (0..self.next).zip(counts) {
            match self.entries.get_mut(number).filter(|entry| entry.members > 0) {
                Some(entry) if count > 0 => entry.members = count,
                Some(entry) => {
                    entry.members = 1;
                    self.leave(GroupId(number));
                }
                None => {}
            }
        }
        self.members = self.entries.iter().map(|(_, entry)| entry.members).sum();
    }

    /// The group with this name. O(log n).
    pub fn find(&self, name: &[u8]) -> Option<GroupId> {
        self.index.find(name, |id| (self.name(id) == name).then_some(id))
    }

    pub fn name(&self, id: GroupId) -> &[u8] {
        self.entries.get(id.0).map_or(&[], |entry| &entry.name)
    }

    /// The groups ordered by the hash of their names, starting after `hash`.
    pub fn iter_behind(&self, hash: Option<NameHash>) -> impl Iterator<Item = (NameHash, GroupId)> + '_ {
        self.index.iter_behind(hash)
    }

    /// The last turn of a group, or of the messages without one.
    pub fn turn(&self, id: Option<GroupId>) -> u64 {
        id.map_or(self.ungrouped, |id| self.entries.get(id.0).map_or(0, |entry| entry.turn))
    }

    /// When a group, or the messages without one, gets its turn, given the due time of its first message.
    pub fn place(&self, id: Option<GroupId>, due: UnixMs) -> u64 {
        let claim = if self.claims.is_empty() { None } else { self.claims.get(&id) };
        let since = claim.filter(|claim| due <= claim.until).map_or(due, |claim| due.min(claim.since));
        place_in_round(since, self.turn(id))
    }

    /// Notes that a message which was due at `due` is taken away at `now` without a turn of its group. O(log n).
    pub fn claim(&mut self, id: Option<GroupId>, due: UnixMs, now: UnixMs) {
        if !self.limits.by_turn {
            return;
        }
        let claim = self.claims.entry(id).or_insert(Claim { since: due, until: now });
        // The group may have had no work between `claim.until` and `due`.
        let since = if due <= claim.until { claim.since.min(due) } else { due };
        *claim = Claim { since, until: claim.until.max(now) };
        self.claimed = self.claimed.max(now);
    }

    /// Sets the last turn of a group, or of the messages without one.
    pub fn set_turn(&mut self, id: Option<GroupId>, turn: u64) {
        if !self.claims.is_empty() {
            self.claims.remove(&id);
        }
        match id {
            None => self.ungrouped = turn,
            Some(id) => {
                if let Some(entry) = self.entries.get_mut(id.0).filter(|entry| entry.is_used()) {
                    entry.turn = turn;
                }
            }
        }
    }

    /// The last turn that was given.
    pub fn last_turn(&self) -> u64 {
        self.last
    }

    /// The turn of the deliveries of one effect, which comes after everything that fell due by then.
    pub fn next_turn(&mut self, now: UnixMs) -> u64 {
        self.last = self.last.max(first_tick(now)).saturating_add(1);
        self.last
    }

    /// Applies other settings. Without turns, no turn is remembered.
    pub fn set_limits(&mut self, limits: GroupLimits) {
        if !limits.by_turn {
            (self.last, self.ungrouped) = (0, 0);
            self.claims.clear();
            for number in 0..self.next {
                self.entries.get_mut(number).into_iter().for_each(|entry| entry.turn = 0);
            }
        }
        self.limits = limits;
    }

    /// Whether a turn was given, or a claim noted, later than `now`, because another clock was ahead.
    pub fn is_ahead_of(&self, now: UnixMs) -> bool {
        self.last > last_turn_at(now) || self.claimed > now && !self.claims.is_empty()
    }

    /// Makes turns that are later than `now` count as if they had been given at `now`, in the same order. Claims that
    /// are later end: a message must not have its turn before it is due.
    pub fn pull_back_to(&mut self, now: UnixMs) {
        self.claims.retain(|_, claim| claim.until <= now);
        self.claimed = self.claimed.min(now);
        let limit = last_turn_at(now);
        if self.last <= limit {
            return;
        }
        let groups = self.entries.iter().filter(|(_, entry)| entry.is_used());
        let all = groups.map(|(number, entry)| (entry.turn, &entry.name[..], Some(GroupId(number))));
        let mut all: Vec<_> = all.chain([(self.ungrouped, &b""[..], None)]).collect();
        all.sort_unstable();
        let behind = all.partition_point(|(turn, ..)| *turn <= limit);
        let base = all.get(behind.wrapping_sub(1)).map_or(0, |(turn, ..)| *turn).max(first_tick(now));
        let moved: Vec<_> = all.iter().skip(behind).map(|(.., id)| *id).collect();
        self.last = base;
        for id in moved {
            self.last = self.last.saturating_add(1).min(limit);
            self.set_turn(id, self.last);
        }
    }

    /// The turns as they are saved; `None` if there are none.
    pub fn turns(&self) -> Option<TurnState<'_>> {
        let mut groups = self.entries.iter().filter(|(_, entry)| entry.members > 0);
        if !self.limits.by_turn || groups.next().is_none() {
            return None;
        }
        let claim = |id| self.claims.get(&id).copied();
        let groups = self.entries.iter().filter(|(_, entry)| entry.members > 0);
        let groups = groups.map(|(id, entry)| (&entry.name[..], entry.turn, claim(Some(GroupId(id)))));
        let mut groups: Vec<_> = groups.filter(|(_, turn, claim)| *turn > 0 || claim.is_some()).collect();
        groups.sort_unstable_by_key(|(name, ..)| *name);
        Some(TurnState { last: self.last, ungrouped: (self.ungrouped, claim(None)), groups })
    }

    /// Restores the turns of a saved queue.
    pub fn restore(&mut self, turns: &TurnState<'_>) {
        self.last = self.last.max(turns.last);
        self.restore_one(None, turns.ungrouped.0, turns.ungrouped.1);
        for (name, turn, claim) in &turns.groups {
            if let Some(id) = self.find(name) {
                self.restore_one(Some(id), *turn, *claim);
            }
        }
    }

    fn restore_one(&mut self, id: Option<GroupId>, turn: u64, claim: Option<Claim>) {
        self.set_turn(id, turn);
        if let Some(claim) = claim {
            self.claims.insert(id, claim);
            self.claimed = self.claimed.max(claim.until);
        }
    }

    /// Whether a queue with these groups could have saved these turns.
    pub fn may_restore(&self, turns: &TurnState<'_>) -> bool {
        let may_be = |turn: u64, claim: Option<Claim>| {
            turn <= turns.last && claim.is_none_or(|claim| claim.since <= claim.until)
        };
        self.limits.by_turn
            && may_be(turns.ungrouped.0, turns.ungrouped.1)
            && turns.groups.iter().all(|(name, turn, claim)| {
                may_be(*turn, *claim) && (*turn > 0 || claim.is_some()) && self.find(name).is_some()
            })
    }

    /// The number of messages that have a group. O(1).
    pub fn members(&self) -> usize {
        self.members
    }

    /// The number of bytes on the heap. O(n / 64).
    pub fn heap_bytes(&self) -> usize {
        self.entries.heap_bytes()
            + self.name_bytes
            + self.index.heap_bytes()
            + vec_bytes::<u32>(self.free.capacity())
            + vec_bytes::<GroupId>(self.left.capacity())
            + tree_bytes::<Option<GroupId>, Claim>(self.claims.len())
    }

    /// Checks that each group has as many members as `members` says, and that it is found by its name. O(n log n).
    pub fn check(&self, members: impl Iterator<Item = GroupId>) -> Result<(), &'static str> {
        let mut counts = vec![0usize; self.next as usize];
        for id in members {
            counts.get_mut(id.0 as usize).into_iter().for_each(|count| *count += 1);
        }
        let mut used = 0;
        for (number, entry) in self.entries.iter() {
            if entry.members != counts.get(number as usize).copied().unwrap_or(0) {
                return Err("the members of a group are miscounted");
            }
            if entry.is_used() {
                used += 1;
                if self.find(&entry.name) != Some(GroupId(number)) {
                    return Err("a group is not found by its name");
                }
                if !self.limits.by_turn && (entry.turn > 0 || !self.claims.is_empty()) {
                    return Err("a group remembers a turn although groups take none");
                }
            }
        }
        let names = self.entries.iter().map(|(_, entry)| given(entry.name.len()));
        if names.sum::<usize>() != self.name_bytes || counts.iter().sum::<usize>() != self.members {
            return Err("the names or the members of all groups are miscounted");
        }
        let with_members = self.entries.iter().filter(|(_, entry)| entry.members > 0).count();
        let counted = counts.iter().filter(|count| **count > 0).count();
        if used != self.entries.used() || used != self.index.len() || counted != with_members {
            return Err("the groups are miscounted");
        }
        Ok(())
    }
}
