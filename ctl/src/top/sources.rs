//! The queues in which dead letters died.

use crate::dead::as_it_died;
use crate::output::text::{grouped, named_in};
use crate::reply::Fields;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many queues are named; of the others it is said how many there are.
const NAMED: usize = 3;

/// The queues, and how many letters are from each, the most first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sources(Vec<(Vec<u8>, u64)>);

impl Sources {
    pub fn new(counts: BTreeMap<Vec<u8>, u64>) -> Sources {
        let mut all: Vec<_> = counts.into_iter().collect();
        all.sort_by_key(|(_, count)| Reverse(*count));
        Sources(all)
    }

    /// Those of some letters.
    pub fn of<'a>(letters: impl Iterator<Item = &'a Fields>) -> Sources {
        let mut counts = BTreeMap::new();
        for letter in letters.filter_map(|message| as_it_died(message.clone())) {
            *counts.entry(letter.bytes("from").to_vec()).or_insert(0) += 1;
        }
        Sources::new(counts)
    }

    /// `orders 500, invoices 60`, or `orders` alone. Each name takes at most `width` columns.
    pub fn words(&self, width: usize) -> String {
        if let [(one, _)] = self.0.as_slice() {
            return named_in(width, one);
        }
        let named = |(name, count): &(Vec<u8>, u64)| format!("{} {}", named_in(width, name), grouped(*count));
        let mut words: Vec<String> = self.0.iter().take(NAMED).map(named).collect();
        let more = self.0.len().saturating_sub(NAMED);
        words.extend((more > 0).then(|| format!("{} more", grouped(more))));
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::Sources;

    #[test]
    fn the_queues_of_most_letters_are_named_first() {
        let words = |counts: &[(&str, u64)]| {
            Sources::new(counts.iter().map(|(name, count)| (name.as_bytes().to_vec(), *count)).collect()).words(20)
        };
        assert_eq!(words(&[("orders", 5)]), "orders");
        assert_eq!(words(&[("a", 60), ("orders", 1_500)]), "orders 1,500, a 60");
        assert_eq!(words(&[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)]), "e 5, d 4, c 3, 2 more");
    }
}
