//! The sorted set compared with the standard library's.

use super::*;
use crate::id::Sequence;
use crate::time::UnixMs;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn key(time: u64, sequence: u64) -> Key {
    Key::at(UnixMs::new(time), Sequence(sequence))
}

fn assert_same(keys: &OrderedKeys, model: &BTreeSet<Key>, probe: Key) {
    assert_eq!(keys.len(), model.len());
    assert_eq!(keys.first(), model.first().copied());
    assert_eq!(keys.rank(probe), model.range(..=probe).count());
    assert_eq!(keys.rank_up_to(probe, 10), model.range(..=probe).count().min(10));
    assert!(keys.iter_after(Some(probe)).eq(model.iter().copied().filter(|held| *held > probe)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn it_is_a_sorted_set(
        steps in prop::collection::vec((0u8..10, 0u64..2_000), 1..if cfg!(miri) { 300 } else { 6_000 }),
        grow_first in any::<bool>(),
    ) {
        let mut keys = OrderedKeys::default();
        let mut model = BTreeSet::new();
        let middle = steps.len() / 2;
        for (nth, (what, time)) in steps.iter().copied().enumerate() {
            let growing = (nth < middle) == grow_first;
            match what {
                0 => {
                    let limit = key(time, 0);
                    let expected = model.first().copied().filter(|first| *first <= limit);
                    prop_assert_eq!(keys.pop_first(limit), expected);
                    expected.map(|first| model.remove(&first));
                }
                9 => {
                    let Some(old) = model.range(key(time, 0)..).next().copied() else { continue };
                    // Some of the replacements stay where the old key was, and others do not.
                    let time = if nth % 4 == 0 { time + 7 } else { old.time().as_ms() };
                    let new = key(time, nth as u64);
                    keys.replace(old, new);
                    model.remove(&old);
                    model.insert(new);
                }
                what if (what < 8) == growing => {
                    let key = key(time, nth as u64);
                    keys.insert(key);
                    model.insert(key);
                }
                _ => {
                    let victim = model.range(key(time, 0)..).next().copied().unwrap_or(key(time, 0));
                    prop_assert_eq!(keys.remove(victim), model.remove(&victim));
                }
            }
            if nth % 97 == 0 {
                assert_same(&keys, &model, key(time, 0));
            }
        }
        assert_same(&keys, &model, key(1_000, 0));
        prop_assert!(keys.iter_after(None).eq(model.iter().copied()));
        prop_assert!(keys.iter_backwards().eq(model.iter().rev().copied()));
        let sorted: Vec<Key> = model.iter().copied().collect();
        assert_same(&OrderedKeys::from_sorted(&sorted), &model, key(1_000, 0));
    }
}

#[test]
fn removed_keys_give_their_memory_back() {
    let mut keys = OrderedKeys::default();
    let count = if cfg!(miri) { 2_000 } else { 100_000 };
    for nth in 0..count {
        keys.insert(key(nth * 7_919 % count, nth));
    }
    assert!(keys.heap_bytes() < 20 * count as usize, "{} bytes", keys.heap_bytes());
    for nth in 0..count {
        assert!(keys.remove(key(nth * 7_919 % count, nth)));
    }
    assert!(keys.is_empty() && keys.heap_bytes() <= 64 * size_of::<Key>());
    assert!(!keys.remove(key(0, 0)) && keys.pop_first(key(9, 9)).is_none());
}

#[test]
fn a_key_before_all_bounds_is_found() {
    let mut keys = OrderedKeys::default();
    (0..1_000).for_each(|nth| keys.insert(key(10_000 + nth, nth)));
    // The first leaves are removed, and new ones take their place, below every bound that was recorded.
    (0..300).for_each(|_| assert!(keys.pop_first(key(20_000, 0)).is_some()));
    (0..1_000).rev().for_each(|nth| keys.insert(key(nth, nth)));
    assert_eq!(keys.rank(key(500, 500)), 501);
    assert!((0..1_000).all(|nth| keys.remove(key(nth, nth))));
    assert_eq!((keys.len(), keys.first()), (700, Some(key(10_300, 300))));
}
