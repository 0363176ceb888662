//! The gates of groups: which groups are paused, and how many messages of each were delivered recently.
//!
//! A gate is what the queue itself has for its deliveries: a pause and the log of a rate limit. It belongs to the name
//! of a group, not to its messages, so a group that was emptied is still limited when it is filled again. It lasts
//! until its pause has ended and its last delivery is a period old. That end follows from the time alone; what is saved
//! must not depend on the moment at which a server frees memory, however, so a gate is forgotten for good by the first
//! delivery or pause of any group that is decided after its end. [`GroupGates::sweep`] frees the memory later, in
//! bounded steps.
//!
//! Which messages a gate holds back belongs to the view: see `view/restraint.rs`.

use super::slab::Slab;
use super::GroupId;
use crate::gate::Pause;
use crate::memory::{given, vec_bytes};
use crate::name_index::{NameHash, NameIndex};
use crate::rate::{Rate, RateLog};
use crate::sorted_set::{Key, OrderedKeys};
use crate::time::UnixMs;

#[cfg(test)]
mod tests;

/// The gates of a queue's groups. They are numbered independently of the groups.
#[derive(Debug)]
pub(crate) struct GroupGates {
    rate: Rate,
    entries: Slab<Entry>,
    /// The numbers below `next` that are free.
    free: Vec<u32>,
    next: u32,
    index: NameIndex<GroupId>,
    /// The bytes that the names and the logs of all gates take.
    bytes: usize,
    /// The gates by their ends.
    ends: OrderedKeys<UnixMs, GroupId>,
    /// Those with a pause, by the ends of the pauses.
    pauses: OrderedKeys<UnixMs, GroupId>,
    /// The gates that end by this instant are forgotten: they only wait to be freed.
    forgotten: UnixMs,
    /// The latest delivery in any log.
    latest: UnixMs,
}

#[derive(Debug, Default)]
struct Entry {
    name: Box<[u8]>,
    /// The pause that was last set; it may have ended.
    pause: Pause,
    log: RateLog,
}

impl Entry {
    /// When the pause ends; zero if there is none.
    fn resumes(&self) -> UnixMs {
        match self.pause {
            Pause::Off => UnixMs::EPOCH,
            Pause::Until(end) => end,
            Pause::Endless => UnixMs::MAX,
        }
    }

    /// The bytes of its name and its log.
    fn heap_bytes(&self) -> usize {
        given(self.name.len()) + self.log.heap_bytes()
    }

    /// When nothing of the gate is left.
    fn end(&self, rate: Rate) -> UnixMs {
        let paused = self.resumes();
        self.log.last().map_or(paused, |last| paused.max(last.after(rate.period)))
    }
}

/// The gate of a group as it is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupGate<'a> {
    /// The name of the group.
    pub name: &'a [u8],
    /// The pause that was last set; it may have ended.
    pub pause: Pause,
    /// The recent deliveries.
    pub log: RateLog,
}

/// What a gate allows at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// How many messages of the group may be delivered; `usize::MAX` if nothing limits them.
    pub count: usize,
    /// When time alone changes this next.
    pub changes: Option<UnixMs>,
    /// When time alone changed it last.
    pub changed: UnixMs,
}

impl Room {
    /// What a rate allows a group without recent deliveries; `None` if there is no rate.
    pub fn from_rate(rate: Rate) -> Option<Room> {
        (!rate.is_off()).then(|| Room { count: number(rate.most), changes: None, changed: UnixMs::EPOCH })
    }
}

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl GroupGates {
    pub fn new(rate: Rate) -> GroupGates {
        GroupGates {
            rate,
            entries: Slab::default(),
            free: Vec::new(),
            next: 0,
            index: NameIndex::default(),
            bytes: 0,
            ends: OrderedKeys::default(),
            pauses: OrderedKeys::default(),
            forgotten: UnixMs::EPOCH,
            latest: UnixMs::EPOCH,
        }
    }

    /// Whether there is no gate, and no memory to be freed.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of gates in memory. O(1).
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        let has_name = |number: u32| self.entries.get(number).is_some_and(|entry| *entry.name == *name);
        self.index.find(name, |GroupId(number)| has_name(number).then_some(number))
    }

    /// The gate of the group with this name, unless it is forgotten. O(log n).
    fn get(&self, name: &[u8]) -> Option<&Entry> {
        self.entries.get(self.find(name)?).filter(|entry| self.remembers(entry))
    }

    fn remembers(&self, entry: &Entry) -> bool {
        entry.end(self.rate) > self.forgotten
    }

    /// The pause of a group that was last set, whether or not it has ended. O(log n).
    pub fn pause(&self, name: &[u8]) -> Pause {
        self.get(name).map_or(Pause::Off, |entry| entry.pause)
    }

    /// The instant at which the rate allows a delivery from the group again; `None` if it does at `now`. O(log n).
    pub fn next_delivery(&self, name: &[u8], now: UnixMs) -> Option<UnixMs> {
        self.get(name)?.log.opens_after(now, self.rate)
    }

    /// What the gate of a group allows at `now`; `None` if nothing limits the group. O(log n).
    pub fn room(&self, name: &[u8], now: UnixMs) -> Option<Room> {
        let Some(entry) = self.get(name) else { return Room::from_rate(self.rate) };
        if entry.pause.holds_at(now) {
            return Some(Room { count: 0, changes: entry.pause.end(), changed: UnixMs::EPOCH });
        }
        let Rate { period, .. } = self.rate;
        let most = Room::from_rate(self.rate).map_or(usize::MAX, |room| room.count);
        Some(Room {
            count: most.saturating_sub(number(entry.log.count(now, period))),
            changes: entry.log.leaves_after(now, period),
            changed: entry.log.left_by(now, period).max(entry.pause.end()).unwrap_or_default(),
        })
    }

    /// Counts a delivery from a group that begins at `now`. O(log n).
    pub fn record(&mut self, name: &[u8], now: UnixMs) {
        let period = self.rate.period;
        self.change(name, now, |entry| entry.log.record(now, 1, period));
        self.latest = self.latest.max(now);
    }

    /// Sets the pause of a group. O(log n).
    pub fn set_pause(&mut self, name: &[u8], pause: Pause, now: UnixMs) {
        self.change(name, now, |entry| entry.pause = pause);
    }

    /// The number of groups that are paused at `now`. O(log n).
    pub fn paused(&self, now: UnixMs) -> usize {
        self.pauses.len() - self.pauses.rank(Key::last_of(now.max(self.forgotten)))
    }

    /// Changes the gate of a group at `now`, and forgets those that end by then.
    fn change(&mut self, name: &[u8], now: UnixMs, change: impl FnOnce(&mut Entry)) {
        self.forgotten = self.forgotten.max(now);
        let number = match self.find(name) {
            Some(number) => {
                let forgotten = self.get(name).is_none();
                self.take_out(number);
                if let Some(entry) = self.entries.get_mut(number).filter(|_| forgotten) {
                    (entry.pause, entry.log) = (Pause::Off, RateLog::default());
                }
                number
            }
            None => self.create(name),
        };
        let Some(entry) = self.entries.get_mut(number) else { return };
        change(entry);
        let (end, resumes) = (entry.end(self.rate), entry.resumes());
        if end > now && end <= self.forgotten {
            // The clock was set back. This gate must not be forgotten with those that ended later.
            self.sweep(usize::MAX);
            self.forgotten = now;
        }
        self.put(number, end, resumes);
    }

    /// Puts a gate in its places.
    fn put(&mut self, number: u32, end: UnixMs, resumes: UnixMs) {
        self.bytes += self.entries.get(number).map_or(0, Entry::heap_bytes);
        self.ends.insert(Key::new(end, GroupId(number)));
        if resumes != UnixMs::EPOCH {
            self.pauses.insert(Key::new(resumes, GroupId(number)));
        }
    }

    fn create(&mut self, name: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        if let Some(entry) = self.entries.occupy(number) {
            entry.name = name.into();
        }
        self.index.insert(name, GroupId(number));
        number
    }

    /// Takes a gate out of its places.
    fn take_out(&mut self, number: u32) {
        if let Some(entry) = self.entries.get(number) {
            self.bytes = self.bytes.saturating_sub(entry.heap_bytes());
            self.ends.remove(Key::new(entry.end(self.rate), GroupId(number)));
            self.pauses.remove(Key::new(entry.resumes(), GroupId(number)));
        }
    }

    /// Whether the memory of all forgotten gates was freed. O(1).
    pub fn is_swept(&self) -> bool {
        self.ends.first().is_none_or(|first| first.major() > self.forgotten)
    }

    /// Frees the memory of at most `budget` forgotten gates. O(budget × log n).
    pub fn sweep(&mut self, budget: usize) {
        for _ in 0..budget {
            let Some(first) = self.ends.pop_first(Key::last_of(self.forgotten)) else { return };
            let GroupId(number) = first.minor();
            if let Some(entry) = self.entries.get(number) {
                self.bytes = self.bytes.saturating_sub(entry.heap_bytes());
                self.index.remove(&entry.name, first.minor());
                self.pauses.remove(Key::new(entry.resumes(), first.minor()));
            }
            self.entries.vacate(number);
            self.free.push(number);
        }
    }

    /// Applies another rate at `now`. Without one, no delivery is remembered. O(n log n).
    pub fn alter(&mut self, rate: Rate, now: UnixMs) {
        if rate == self.rate {
            return;
        }
        // What is forgotten stays forgotten under a longer period.
        self.sweep(usize::MAX);
        (self.rate, self.forgotten) = (rate, now);
        if rate.is_off() {
            self.latest = UnixMs::EPOCH;
        }
        let mut ends = Vec::new();
        self.bytes = 0;
        for number in 0..self.next {
            let Some(entry) = self.entries.get_mut(number).filter(|entry| !entry.name.is_empty()) else { continue };
            if rate.is_off() {
                entry.log = RateLog::default();
            }
            self.bytes += entry.heap_bytes();
            ends.push(Key::new(entry.end(rate), GroupId(number)));
        }
        self.ends = OrderedKeys::from_unsorted(ends);
    }

    /// Whether a delivery was counted later than `now`, because another clock was ahead. O(1).
    pub fn is_ahead_of(&self, now: UnixMs) -> bool {
        self.latest > now
    }

    /// Makes deliveries that are later than `now` count as if they had begun at `now`. O(n log n).
    pub fn pull_back_to(&mut self, now: UnixMs) {
        self.sweep(usize::MAX);
        self.forgotten = self.forgotten.min(now);
        self.latest = self.latest.min(now);
        for number in 0..self.next {
            if self.entries.get(number).is_some_and(|entry| entry.log.is_ahead_of(now)) {
                self.take_out(number);
                let Some(entry) = self.entries.get_mut(number) else { continue };
                entry.log.pull_back_to(now);
                let (end, resumes) = (entry.end(self.rate), entry.resumes());
                self.put(number, end, resumes);
            }
        }
    }

    /// The names of the groups whose gates are not forgotten, by their hashes, starting after `hash`.
    pub fn iter_behind(&self, hash: Option<NameHash>) -> impl Iterator<Item = (NameHash, &[u8])> + '_ {
        self.index.iter_behind(hash).filter_map(|(hash, GroupId(number))| {
            let entry = self.entries.get(number).filter(|entry| self.remembers(entry))?;
            Some((hash, &*entry.name))
        })
    }

    /// The gates as they are saved, by the names of their groups. O(n log n).
    pub fn all(&self) -> Vec<GroupGate<'_>> {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        let kept = entries.filter(|entry| !entry.name.is_empty() && self.remembers(entry));
        let mut gates: Vec<_> =
            kept.map(|entry| GroupGate { name: &entry.name, pause: entry.pause, log: entry.log.clone() }).collect();
        gates.sort_unstable_by_key(|gate| gate.name);
        gates
    }

    /// Whether this gate may be added while the queue is loaded. A forgotten one of the same name does not matter: each
    /// server frees its memory at another moment.
    pub fn may_restore(&self, gate: &GroupGate<'_>) -> bool {
        (gate.log.is_empty() || !self.rate.is_off())
            && (gate.pause != Pause::Off || !gate.log.is_empty())
            && self.get(gate.name).is_none()
    }

    /// Adds a saved gate.
    pub fn restore(&mut self, gate: &GroupGate<'_>) {
        let number = match self.find(gate.name) {
            Some(number) => {
                self.take_out(number);
                number
            }
            None => self.create(gate.name),
        };
        self.latest = self.latest.max(gate.log.last().unwrap_or_default());
        let Some(entry) = self.entries.get_mut(number) else { return };
        (entry.pause, entry.log) = (gate.pause, gate.log.clone());
        let (end, resumes) = (entry.end(self.rate), entry.resumes());
        if end <= self.forgotten {
            // It ends before others that are forgotten, but is not one of them.
            self.sweep(usize::MAX);
            self.forgotten = UnixMs::EPOCH;
        }
        self.put(number, end, resumes);
    }

    /// The number of bytes on the heap. O(n / 64).
    pub fn heap_bytes(&self) -> usize {
        self.entries.heap_bytes()
            + self.bytes
            + vec_bytes::<u32>(self.free.capacity())
            + self.index.heap_bytes()
            + self.ends.heap_bytes()
            + self.pauses.heap_bytes()
    }

    /// Checks that each gate is found by its name and stands at its end. O(n log n), for tests.
    pub fn check(&self) -> Result<(), &'static str> {
        let used = self.entries.iter().filter(|(_, entry)| !entry.name.is_empty());
        let (mut count, mut paused, mut bytes) = (0, 0, 0);
        for (number, entry) in used {
            count += 1;
            paused += usize::from(entry.pause != Pause::Off);
            bytes += entry.heap_bytes();
            if self.find(&entry.name) != Some(number) {
                return Err("the gate of a group is not found by its name");
            }
            if !self.ends.contains(Key::new(entry.end(self.rate), GroupId(number))) {
                return Err("the gate of a group does not stand at its end");
            }
            if self.pauses.contains(Key::new(entry.resumes(), GroupId(number))) != (entry.pause != Pause::Off) {
                return Err("the pause of a group does not stand at its end");
            }
            if entry.log.last() > Some(self.latest) || self.rate.is_off() && !entry.log.is_empty() {
                return Err("the gate of a group remembers a delivery that it should not");
            }
        }
        let counted = [self.ends.len(), self.index.len(), self.entries.used()] == [count; 3];
        if !counted || self.pauses.len() != paused || self.bytes != bytes {
            return Err("the gates of groups are miscounted");
        }
        Ok(())
    }
}
