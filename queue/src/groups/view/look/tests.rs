//! The memory of groups, of which there may be millions.

use crate::gate::Lease;
use crate::groups::slab::looked_at;
use crate::groups::slot::Slot;
use crate::id::{Floor, Id, Sequence, Target};
use crate::rate::Rate;
use crate::settings::{GroupOrder, Settings};
use crate::sorted_set::OrderedKeys;
use crate::time::{DurationMs, UnixMs};
use crate::{Nack, NewMessage, Pop, Queue};

const NOW: UnixMs = UnixMs::new(1_760_000_000_000);
const GROUPS: usize = 20_000;

struct Groups {
    queue: Queue,
    floor: Floor,
}

impl Groups {
    fn new(settings: Settings) -> Groups {
        Groups { queue: Queue::new(settings), floor: Floor::default() }
    }

    fn push(&mut self, group: usize, count: usize) {
        let group = format!("group-{group}");
        let message = NewMessage { group: Some(group.as_bytes()), ..NewMessage::default() };
        for _ in 0..count {
            self.queue.push(NOW, &mut self.floor, &message);
        }
    }

    /// Delivers all that can be delivered.
    fn pop_all(&mut self) -> Vec<Sequence> {
        let (mut grants, lease) = (Vec::new(), Lease::For(DurationMs::new(60_000)));
        self.queue.pop(NOW, &mut self.floor, &Pop { count: usize::MAX, lease }, &mut grants, |_| {});
        grants.iter().map(|grant| grant.sequence).collect()
    }

    /// Gives deliveries back for a retry.
    fn give_back(&mut self, all: &[Sequence]) {
        for sequence in all {
            let target = Target { id: Id::Generated(*sequence), receipt: None };
            let nack = Nack { delay: Some(DurationMs::ZERO), ..Nack::default() };
            self.queue.nack(NOW, &target, &nack).expect("a delivery");
        }
    }

    /// The bytes of the orders of all groups: as they are counted, and as the allocator gave them.
    fn slot_bytes(&self) -> (usize, usize) {
        let view = self.queue.view.groups().expect("groups");
        let counted = view.heap_bytes(self.queue.messages.grouped());
        let of = |slot: &Slot| {
            let sets = [slot.admitted.rest(), &slot.parked, &slot.retries, slot.leased.rest(), &slot.dead];
            sets.map(OrderedKeys::heap_bytes).iter().sum::<usize>()
        };
        let restraints = view.restraints.as_ref().map_or(0, |restraints| restraints.exact_heap_bytes());
        let exact = view.slots.heap_bytes()
            + view.slots.iter().map(|(_, slot)| of(slot)).sum::<usize>()
            + view.waiting().iter().map(|waiting| waiting.heap_bytes()).sum::<usize>()
            + view.turns.heap_bytes()
            + restraints;
        (counted, exact)
    }

    fn assert_accurate(&self, what: &str) {
        let (counted, exact) = self.slot_bytes();
        assert!(counted.abs_diff(exact) * 20 < exact, "{what}: {counted} and not {exact}");
        self.queue.check().expect("a consistent queue");
    }
}

/// Groups of one message, and in their midst a few of thousands, which no sample is sure to meet.
fn uneven(settings: Settings) -> Groups {
    let mut groups = Groups::new(settings);
    for group in 0..GROUPS {
        let count = match group {
            9_000..9_003 => 15_000,
            9_003..9_100 => 300,
            _ => 1 + group % 2,
        };
        groups.push(group, count);
    }
    groups
}

#[test]
fn the_memory_of_uneven_groups_is_accurate() {
    let rate = Rate { most: 1_000_000, period: DurationMs::new(60_000) };
    for (groupinflight, grouprate) in [(0, Rate::OFF), (1, Rate::OFF), (0, rate), (7, rate)] {
        let what = format!("GROUPINFLIGHT {groupinflight}, {grouprate:?}");
        let mut groups = uneven(Settings { groupinflight, grouprate, ..Settings::default() });
        groups.assert_accurate(&format!("waiting, {what}"));
        let delivered = groups.pop_all();
        groups.assert_accurate(&format!("in flight, {what}"));
        groups.give_back(&delivered);
        groups.assert_accurate(&format!("given back, {what}"));
    }
}

#[test]
fn the_memory_of_many_groups_is_told_from_a_few() {
    let rate = Rate { most: 3, period: DurationMs::new(60_000) };
    let settings = Settings { groupinflight: 2, grouprate: rate, grouporder: GroupOrder::Turn, ..Settings::default() };
    let mut groups = Groups::new(settings);
    for group in 0..GROUPS {
        groups.push(group, 3);
        groups.queue.suspend_group(NOW, format!("other-{group}").as_bytes(), None);
    }
    let delivered = groups.pop_all();
    groups.give_back(&delivered);
    let looked_at = looked_at::during(|| groups.queue.heap_bytes());
    assert!(looked_at <= 3 * 2_048, "{looked_at} of {GROUPS} groups, and as many gates");
    groups.queue.check().expect("a consistent queue");
}
