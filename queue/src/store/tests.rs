//! The store compared with a sorted map.

use super::*;
use crate::errors::{Errors, PastError};
use crate::headers::HeaderBlock;
use crate::id::Receipt;
use crate::record::Reason;
use crate::record::Ttl;
use crate::settings::Retries;
use crate::time::DurationMs;
use crate::time::UnixMs;
use proptest::prelude::*;

/// A message, owned.
#[derive(Clone, Debug, PartialEq)]
struct Expected {
    record: Record,
    name: Option<Vec<u8>>,
    payload: Vec<u8>,
    errors: Option<Box<[u8]>>,
    placement: Placement,
    group: Option<GroupId>,
    batch: Option<BatchId>,
    headers: Option<HeaderBlock>,
}

impl Expected {
    fn bytes(&self) -> Bytes<'_> {
        let errors = self.errors.as_deref().map(Errors::stored);
        let headers = self.headers.as_ref().map(HeaderBlock::headers);
        Bytes { name: self.name.as_deref(), payload: &self.payload, errors, origin: None, headers }
    }
}

/// A message in which each optional part is present if its bit of `seed` is set.
fn message(sequence: u64, size: usize, seed: u8) -> Expected {
    let has = |bit: u8| seed >> bit & 1 == 1;
    let number = sequence * 31;
    Expected {
        record: Record {
            sequence: Sequence(sequence),
            due: if has(0) { UnixMs::MAX } else { UnixMs::new(number) },
            priority: sequence as i8,
            retries: match (has(1), has(6)) {
                (true, true) => Retries::new(i32::MAX).unwrap(),
                (true, false) => Retries::UNLIMITED,
                (false, _) => Retries::new(3).unwrap(),
            },
            lease: has(2).then_some(DurationMs::new(number + 1)),
            ttl: has(3).then_some(Ttl { duration: DurationMs::MAX, end: UnixMs::new(number + 2) }),
            attempts: if has(4) { 7 } else { 0 },
            phase: if has(4) { leased(number) } else { Phase::Waiting },
            recurring: false,
        },
        name: has(5).then(|| vec![b'n'; 1 + sequence as usize % 255]),
        payload: vec![sequence as u8; size],
        errors: has(6).then(|| Errors::with(None, &past_error(number), 1)),
        placement: Placement::Waiting,
        group: has(7).then_some(GroupId(sequence as u32)),
        batch: (size % 4 == 1).then_some(BatchId(sequence as u32)),
        headers: (seed > 0 && size % 3 == 1).then(|| HeaderBlock::new(vec![(&[seed], &number.to_le_bytes())]).unwrap()),
    }
}

fn past_error(number: u64) -> PastError<'static> {
    PastError { attempt: 3, at: UnixMs::new(number), text: b"timeout" }
}

fn leased(number: u64) -> Phase {
    Phase::Leased { deadline: UnixMs::new(number + 3), receipt: Receipt(number + 4) }
}

fn same(store: &Store, at: At, held: &Expected) -> bool {
    store.record(at) == held.record
        && store.bytes(at) == held.bytes()
        && store.placement(at) == held.placement
        && store.group(at) == held.group
        && store.batch(at) == held.batch
}

fn assert_same(store: &Store, model: &BTreeMap<u64, Expected>) {
    assert_eq!(store.len(), model.len());
    let payload_bytes: usize = model.values().map(|held| held.payload.len()).sum();
    assert_eq!(store.payload_bytes(), payload_bytes as u64);
    let places: Vec<At> = store.iter_after(None).collect();
    assert_eq!(places.len(), model.len());
    for (at, (sequence, held)) in places.into_iter().zip(model) {
        assert_eq!(store.locate(Sequence(*sequence)), Some(at));
        for other in
            [*sequence - 1, *sequence + 1, *sequence + 300].into_iter().filter(|other| !model.contains_key(other))
        {
            assert_eq!(store.locate(Sequence(other)), None);
        }
        assert!(same(store, at, held), "{held:?} is {:?}", store.record(at));
    }
    assert!(store.last().is_none_or(|last| model.last_key_value().is_none_or(|(key, _)| last.0 >= *key)));
}

/// A step of a test: its kind, the message it applies to, a payload size and a seed.
type Step = (u8, prop::sample::Index, usize, u8);

fn carry_out(store: &mut Store, model: &mut BTreeMap<u64, Expected>, next: &mut u64, step: &Step) {
    let (kind, which, size, seed) = step;
    if *kind < 5 || model.is_empty() {
        // Sequences come in bursts, at a steady rate, and now and then after a pause.
        *next += match seed {
            0 => 1 << 47,
            1..8 => 1 << 20,
            8..128 => 1,
            _ => 1 + u64::from(seed % 3),
        };
        let held = message(*next, *size, *seed);
        store.append(&held.record, held.bytes(), held.group, held.batch);
        model.insert(*next, held);
        return;
    }
    let sequence = *which.get(&model.keys().copied().collect::<Vec<_>>());
    let at = store.find(Sequence(sequence)).unwrap();
    let held = model.get_mut(&sequence).unwrap();
    assert!(same(store, at, held));
    match kind {
        5 => {
            let died = UnixMs::new(u64::from(*seed));
            let phases = [Phase::Waiting, leased(9), Phase::Dead { died, reason: Reason::Expired }];
            held.record.phase = phases[usize::from(seed % 3)];
            held.record.attempts = u32::from(*seed / 3);
            // The record of a message that was never delivered is always waiting.
            if held.record.attempts == 0 {
                held.record.phase = Phase::Waiting;
            }
            held.record.due = died;
            held.record.ttl = held.record.ttl.map(|ttl| Ttl { end: died, ..ttl });
            store.update(at, &held.record);
        }
        6 => {
            if seed % 2 == 0 {
                let (error, kept) = (past_error(u64::from(*seed)), u64::from(seed % 5));
                held.errors = Some(Errors::with(held.bytes().errors, &error, kept));
                store.add_error(at, &error, kept);
            } else {
                held.errors = None;
                store.clear_errors(at);
            }
        }
        7 => {
            held.placement = [Placement::Waiting, Placement::InFlight, Placement::Dead][usize::from(seed % 3)];
            store.set_placement(at, held.placement);
            if seed % 2 == 0 {
                held.batch = None;
                store.end_batch(at);
            }
        }
        _ => {
            store.remove(at);
            model.remove(&sequence);
            assert_eq!(store.find(Sequence(sequence)), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 48 }))]

    #[test]
    fn the_store_holds_what_it_is_given(
        growing in steps(0..10),
        shrinking in steps(4..14),
        growing_again in steps(0..7),
    ) {
        let (mut store, mut model, mut next) = (Store::default(), BTreeMap::new(), 0);
        for (nth, step) in growing.iter().chain(&shrinking).chain(&growing_again).enumerate() {
            carry_out(&mut store, &mut model, &mut next, step);
            if nth % 61 == 0 {
                assert_same(&store, &model);
            }
        }
        assert_same(&store, &model);
        let middle = Sequence(next / 2);
        let above = store.iter_after(Some(middle)).map(|at| store.record(at).sequence.0);
        prop_assert!(above.eq(model.range(middle.0 + 1..).map(|(sequence, _)| *sequence)));
        for sequence in model.keys() {
            let at = store.find(Sequence(*sequence)).unwrap();
            store.remove(at);
        }
        prop_assert_eq!((store.len(), store.payload_bytes()), (0, 0));
        prop_assert!(store.heap_bytes() < 3 * 1024, "{} bytes", store.heap_bytes());
    }
}

fn steps(kinds: std::ops::Range<u8>) -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![30 => 0usize..300, 2 => 2_000usize..INLINE_MAX, 1 => INLINE_MAX..=INLINE_MAX + 2];
    let step = (kinds, any::<prop::sample::Index>(), size, any::<u8>());
    prop::collection::vec(step, 0..if cfg!(miri) { 60 } else { 1_500 })
}

fn filled(count: u64, size: usize) -> Store {
    let mut store = Store::default();
    for sequence in 1..=count {
        let held = message(sequence, size, 0);
        store.append(&held.record, held.bytes(), held.group, held.batch);
    }
    store
}

#[test]
fn memory_shrinks_with_the_messages_that_are_left() {
    for size in [0, 100, 1_000, 8_000] {
        let count = if cfg!(miri) { 300 } else { 20_000 / (1 + size as u64 / 500) };
        let mut store = filled(count, size);
        let all = store.heap_bytes();
        assert!(all < count as usize * (size + 18) * 11 / 10 + 2_048, "{all} bytes");
        for sequence in (1..=count).filter(|sequence| sequence * 7_919 % 10 != 0) {
            let at = store.find(Sequence(sequence)).unwrap();
            store.remove(at);
        }
        assert_eq!(store.len() as u64, count / 10);
        assert!(store.heap_bytes() < all / 5, "{} of {all} bytes for messages of {size}", store.heap_bytes());
    }
}

#[test]
fn ended_deliveries_leave_no_memory_behind() {
    let mut store = filled(500, 10);
    let waiting = store.heap_bytes();
    for round in 0..50 {
        for sequence in 1..=500 {
            let at = store.find(Sequence(sequence)).unwrap();
            let record = Record { attempts: 1, phase: leased(round), ..store.record(at) };
            store.update(at, &record);
            assert_eq!(store.record(at), record);
        }
        for sequence in (1..=500).rev() {
            let at = store.find(Sequence(sequence)).unwrap();
            assert_eq!(store.record(at).phase, leased(round));
            store.update(at, &Record { attempts: 0, phase: Phase::Waiting, ..store.record(at) });
        }
    }
    assert!(store.heap_bytes() < waiting + 500 * 2 * size_of::<Delivery>());
}

#[test]
fn a_message_behind_an_emptied_segment_is_found() {
    let mut store = filled(3, 10);
    for sequence in 1..=3 {
        let at = store.find(Sequence(sequence)).unwrap();
        store.remove(at);
    }
    assert_eq!(store.last(), None);
    let held = message(2, 10, 0);
    store.append(&held.record, held.bytes(), held.group, held.batch);
    assert!(store.find(Sequence(2)).is_some() && store.find(Sequence(1)).is_none());
}

#[test]
fn messages_pushed_weeks_apart_take_little_memory() {
    let mut store = Store::default();
    let sequences: Vec<u64> = (1..=200).map(|week| week << 49).collect();
    for sequence in &sequences {
        let held = message(*sequence, 100, 0);
        store.append(&held.record, held.bytes(), held.group, held.batch);
    }
    assert!(store.heap_bytes() < 200 * 300, "{} bytes", store.heap_bytes());
    for sequence in sequences {
        let at = store.find(Sequence(sequence)).unwrap();
        assert_eq!(store.sequence(at), Sequence(sequence));
        store.remove(at);
    }
    assert_eq!(store.len(), 0);
}
