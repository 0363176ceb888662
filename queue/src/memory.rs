//! How much memory the server's allocator uses for an allocation of a given size.

/// The bytes that the allocator uses for an allocation of `bytes` bytes: the sizes that it offers are 16 bytes apart up
/// to 128 bytes, and above that there are four for each doubling.
pub(super) const fn given(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 8),
    }
}

/// The bytes that the allocator uses for a boxed value.
pub(super) const fn box_bytes<T>() -> usize {
    given(size_of::<T>())
}

/// The bytes that the allocator uses for a vector with room for `capacity` values.
pub(super) const fn vec_bytes<T>(capacity: usize) -> usize {
    given(capacity * size_of::<T>())
}

/// The entries of a full node of std's B-tree. Keys and values are in arrays of their own.
const NODE_KEYS: usize = 11;
/// The bytes of a node besides its entries: the address of its parent, its index there, and its length.
const NODE_HEAD: usize = 12;
/// The number of keys for each leaf, including those in the nodes above. A tree that is filled in ascending order has
/// six keys in each leaf and one more above it; a tree that is filled in random order has about as many.
const KEYS_OF_A_LEAF: usize = 7;

/// An estimate of the bytes of the nodes of a `BTreeMap` with `len` entries, or of a set if the value is `()`. The
/// standard library does not report this.
pub(super) const fn tree_bytes<K, V>(len: usize) -> usize {
    let leaf = (NODE_KEYS * (size_of::<K>() + size_of::<V>()) + NODE_HEAD).next_multiple_of(size_of::<usize>());
    let inner = leaf + (NODE_KEYS + 1) * size_of::<usize>();
    let leaves = len.div_ceil(KEYS_OF_A_LEAF);
    leaves * given(leaf) + leaves / KEYS_OF_A_LEAF * given(inner)
}

/// How many values at either end of a large collection are looked at to estimate the bytes of all.
const SAMPLED: usize = 1024;

/// The odd number that is nearest to 2^64 divided by the golden ratio. Its multiples are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The sum of `bytes(number)` over all numbers below `count`. If there are many, it is an estimate from some that are
/// spread over all of them, so that it takes less than 0.5 ms. No value may be thousands of times larger than most.
pub(super) fn sum_spread(count: usize, bytes: impl Fn(usize) -> i64) -> i64 {
    let looked_at = 2 * SAMPLED;
    if count <= looked_at {
        return (0..count).map(bytes).sum();
    }
    // One number from each of as many spans of equal length, at places that follow no rhythm.
    let start = |nth: usize| nth * count / looked_at;
    let chosen = (0..looked_at).map(|nth| {
        let length = (start(nth + 1) - start(nth)) as u64;
        let offset = ((nth as u64).wrapping_mul(GOLDEN) >> 32) % length;
        start(nth) + offset as usize
    });
    let sampled = i128::from(chosen.map(bytes).sum::<i64>());
    (sampled * count as i128 / looked_at as i128) as i64
}

/// The sum of the bytes of all values. If there are many, it is an estimate from the first and the last of them, so
/// that it takes less than 0.1 ms.
pub(super) fn sum_sampled<T>(
    values: impl DoubleEndedIterator<Item = T> + ExactSizeIterator + Clone,
    bytes: impl Fn(T) -> usize,
) -> usize {
    let count = values.len();
    if count <= 2 * SAMPLED {
        return values.map(bytes).sum();
    }
    let (first, last) = (values.clone().take(SAMPLED), values.rev().take(SAMPLED));
    let sampled: usize = first.map(&bytes).sum::<usize>() + last.map(&bytes).sum::<usize>();
    (sampled as u128 * count as u128 / (2 * SAMPLED) as u128) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_many_values_are_estimated_from_a_few() {
        let looked_at = std::cell::Cell::new(0);
        let estimate = |count: usize| {
            looked_at.set(0);
            sum_sampled(0..count, |nth| {
                looked_at.set(looked_at.get() + 1);
                100 + nth % 2
            })
        };
        assert_eq!((estimate(2_000), looked_at.get()), (201_000, 2_000));
        assert_eq!((estimate(1_000_000), looked_at.get()), (100_500_000, 2 * SAMPLED));
    }

    #[test]
    fn values_that_are_looked_at_are_spread_over_all() {
        let looked_at = std::cell::RefCell::new(Vec::new());
        let estimate = |count: usize, bytes: fn(usize) -> i64| {
            looked_at.borrow_mut().clear();
            sum_spread(count, |number| {
                looked_at.borrow_mut().push(number);
                bytes(number)
            })
        };
        assert_eq!((estimate(2_048, |number| number as i64), looked_at.borrow().len()), (2_047 * 1_024, 2_048));
        for count in [2_049, 4_096, 100_000, 10_000_000] {
            assert_eq!(estimate(count, |_| 100), 100 * count as i64);
            let numbers = looked_at.take();
            assert!(numbers.len() == 2_048 && numbers.is_sorted_by(|one, next| one < next), "{count}");
            assert!(numbers.iter().all(|number| *number < count), "{count}");
        }
        // A rhythm in the numbers, and one part that is larger than the others, do not mislead it.
        let every_other = |number: usize| if number.is_multiple_of(2) { 0_i64 } else { 200 };
        let the_middle = |number: usize| if (400_000..600_000).contains(&number) { 500_i64 } else { 0 };
        for bytes in [every_other as fn(usize) -> i64, the_middle] {
            let sum = estimate(1_000_000, bytes);
            assert!((sum - 100_000_000).abs() < 5_000_000, "{sum}");
        }
    }

    #[test]
    fn sizes_are_those_that_the_allocator_offers() {
        let sizes = [0, 1, 16, 17, 113, 128, 129, 200, 256, 257, 720, 1_025, 20_000];
        let offered = [0, 16, 16, 32, 128, 128, 160, 224, 256, 320, 768, 1_280, 20_480];
        assert_eq!(sizes.map(given), offered);
    }
}
