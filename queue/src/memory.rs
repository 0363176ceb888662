//! How much memory the allocator of a server gives for what is asked for.

/// The bytes that the allocator gives for an allocation: the sizes that it offers are 16 bytes apart at first, and later
/// four to a doubling.
pub(super) const fn given(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 8),
    }
}

/// The keys of a full node of std's B-tree.
const NODE_KEYS: usize = 11;
/// What a node has besides its keys: the address of its parent, its place there, and its length.
const NODE_HEAD: usize = 16;
/// The keys for each leaf, with those that stand in the nodes above. A tree that is filled in rising order has leaves with
/// six keys, and one more key above for each; a tree that is filled in random order has about as many.
const KEYS_OF_A_LEAF: usize = 7;

/// The bytes of the nodes of a B-tree of `std` with this many entries, whose key and value take `entry` bytes. A B-tree of
/// the standard library does not tell.
pub(super) const fn of_tree(len: usize, entry: usize) -> usize {
    let leaf = NODE_KEYS * entry + NODE_HEAD;
    let inner = leaf + (NODE_KEYS + 1) * size_of::<usize>();
    let leaves = len.div_ceil(KEYS_OF_A_LEAF);
    leaves * given(leaf) + leaves / KEYS_OF_A_LEAF * given(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_the_allocator_offers() {
        let sizes = [0, 1, 16, 17, 113, 128, 129, 200, 256, 257, 720, 1_025, 20_000];
        let offered = [0, 16, 16, 32, 128, 128, 160, 224, 256, 320, 768, 1_280, 20_480];
        assert_eq!(sizes.map(given), offered);
    }
}
