//! The instants at which the running deliveries began, from which the age of the oldest one follows.
//!
//! A receipt contains the millisecond in which its delivery began, and receipts only grow. So it is enough to count the
//! running deliveries of each millisecond. A new delivery is counted in the last entry, takes its place if that counts
//! nothing, or adds an entry behind it; the entry of a delivery that ends is found by binary search; the first entry
//! with a count above zero is the answer. The answer is exact and always available, whereas an order by receipt would
//! cost each delivery a second insertion and 16 bytes.

use super::id::{Receipt, COUNT_BITS};
use super::memory::{box_bytes, vec_bytes};
use super::time::UnixMs;

/// The part of an entry below its millisecond: as many bits as in a receipt, so the deliveries of one millisecond
/// cannot overflow them.
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The number of running deliveries by the millisecond in which they began. At most 8 bytes per delivery, and usually
/// far less. Allocated with the first delivery.
#[derive(Debug, Default)]
pub(super) struct DeliveryStarts(Option<Box<Entries>>);

/// One word of (millisecond, count) for each millisecond, sorted by millisecond. Some counts may be zero.
#[derive(Debug, Default)]
struct Entries(Vec<u64>);

/// The millisecond of an entry, or of a receipt.
const fn ms_of(word: u64) -> u64 {
    word >> COUNT_BITS
}

const fn count_of(entry: u64) -> u64 {
    entry & COUNT_MASK
}

impl DeliveryStarts {
    /// Counts the deliveries with these receipts. O(n log n).
    pub fn from_receipts(mut receipts: Vec<Receipt>) -> DeliveryStarts {
        receipts.sort_unstable();
        let mut starts = DeliveryStarts::default();
        receipts.into_iter().for_each(|receipt| starts.begin(receipt));
        starts
    }

    /// Counts a delivery. O(1) if it is the latest one.
    #[inline]
    pub fn begin(&mut self, Receipt(receipt): Receipt) {
        self.0.get_or_insert_default().begin(receipt);
    }

    /// Stops counting a delivery. O(log n).
    #[inline]
    pub fn end(&mut self, Receipt(receipt): Receipt) {
        self.0.as_mut().into_iter().for_each(|entries| entries.end(receipt));
    }

    /// Returns the millisecond in which the earliest counted delivery began that is not in `ended`; all of `ended` must
    /// be counted. `None` if there is no such delivery. O(m + k log k), where m is the number of entries up to the
    /// answer and k the length of `ended`.
    pub fn earliest_but(&self, ended: Vec<Receipt>) -> Option<UnixMs> {
        self.0.as_ref()?.earliest_but(ended)
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |entries| box_bytes::<Entries>() + vec_bytes::<u64>(entries.0.capacity()))
    }
}

impl Entries {
    #[inline]
    fn begin(&mut self, receipt: u64) {
        match self.0.last_mut() {
            Some(last) if ms_of(*last) == ms_of(receipt) => increment(last),
            Some(last) if ms_of(*last) > ms_of(receipt) => self.begin_earlier(receipt),
            Some(last) if count_of(*last) == 0 => *last = first_of(receipt),
            _ => self.push(receipt),
        }
    }

    /// Counts a delivery that is not the latest: one whose deadline is moved is uncounted and counted again with the
    /// same receipt, and a forged snapshot may contain any receipts.
    fn begin_earlier(&mut self, receipt: u64) {
        match self.find(receipt) {
            Ok(at) => self.0.get_mut(at).into_iter().for_each(increment),
            Err(at) => self.0.insert(at, first_of(receipt)),
        }
    }

    /// Adds an entry behind all others. Entries that count nothing are dropped before the list grows, so this is O(1)
    /// amortised.
    fn push(&mut self, receipt: u64) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|entry| count_of(*entry) > 0);
            let (len, capacity) = (self.0.len(), self.0.capacity());
            if len > capacity / 4 * 3 {
                self.0.reserve(len);
            } else if len < capacity / 4 {
                self.0.shrink_to(capacity / 2);
            }
        }
        self.0.push(first_of(receipt));
    }

    #[inline]
    fn end(&mut self, receipt: u64) {
        // The oldest delivery usually ends first.
        let entry = match self.0.first_mut() {
            Some(first) if ms_of(*first) == ms_of(receipt) => Some(first),
            _ => self.find(receipt).ok().and_then(|at| self.0.get_mut(at)),
        };
        if let Some(entry) = entry.filter(|entry| count_of(**entry) > 0) {
            *entry -= 1;
        }
    }

    fn earliest_but(&self, mut ended: Vec<Receipt>) -> Option<UnixMs> {
        ended.sort_unstable();
        let mut ended = ended.into_iter().peekable();
        let running = self.0.iter().find(|entry| {
            let mut count = count_of(**entry);
            while ended.next_if(|receipt| ms_of(receipt.0) <= ms_of(**entry)).is_some() {
                count = count.saturating_sub(1);
            }
            count > 0
        });
        running.map(|entry| UnixMs::new(ms_of(*entry)))
    }

    /// The index of the entry for a receipt's millisecond, or the index at which it would be inserted.
    fn find(&self, receipt: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&ms_of(receipt), |entry| ms_of(*entry))
    }
}

/// An entry that counts one delivery.
const fn first_of(receipt: u64) -> u64 {
    ms_of(receipt) << COUNT_BITS | 1
}

/// Adds one to an entry. Saturates at about a million deliveries, which only a forged snapshot can have in one
/// millisecond.
fn increment(entry: &mut u64) {
    if count_of(*entry) < COUNT_MASK {
        *entry += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(ms: u64, count: u64) -> Receipt {
        Receipt(ms << COUNT_BITS | count)
    }

    fn earliest(starts: &DeliveryStarts) -> Option<u64> {
        starts.earliest_but(Vec::new()).map(UnixMs::as_ms)
    }

    #[test]
    fn the_earliest_running_delivery_is_known_in_any_order_of_ends() {
        let mut starts = DeliveryStarts::default();
        let all = [receipt(5, 0), receipt(5, 1), receipt(7, 0), receipt(9, 0)];
        all.into_iter().for_each(|receipt| starts.begin(receipt));
        for (ended, left) in [(all[2], Some(5)), (all[0], Some(5)), (all[1], Some(9)), (all[3], None)] {
            starts.end(ended);
            assert_eq!(earliest(&starts), left);
        }
        starts.end(all[0]);
        starts.begin(receipt(8, 0));
        assert_eq!(earliest(&starts), Some(8), "a second end of the same delivery changes nothing");
    }

    #[test]
    fn a_delivery_whose_deadline_moved_keeps_its_beginning() {
        let mut starts = DeliveryStarts::from_receipts(vec![receipt(9, 0), receipt(3, 0), receipt(6, 2)]);
        assert_eq!(earliest(&starts), Some(3));
        starts.end(receipt(3, 0));
        starts.begin(receipt(3, 0));
        assert_eq!(earliest(&starts), Some(3));
        starts.begin(receipt(1, 0));
        assert_eq!(earliest(&starts), Some(1), "a forged receipt lies before all others");
    }

    #[test]
    fn expired_deliveries_are_left_out_before_they_are_noticed() {
        let starts = DeliveryStarts::from_receipts(vec![receipt(3, 0), receipt(3, 1), receipt(6, 0)]);
        let but = |ended: &[Receipt]| starts.earliest_but(ended.to_vec()).map(UnixMs::as_ms);
        assert_eq!(but(&[receipt(3, 0)]), Some(3));
        assert_eq!(but(&[receipt(3, 1), receipt(3, 0)]), Some(6));
        assert_eq!(but(&[receipt(3, 0), receipt(6, 0), receipt(3, 1)]), None);
    }

    #[test]
    fn ended_deliveries_take_no_memory() {
        let mut starts = DeliveryStarts::default();
        starts.begin(receipt(1, 0));
        for ms in 2..10_000 {
            starts.begin(receipt(ms, 0));
            starts.end(receipt(ms, 0));
        }
        assert_eq!(earliest(&starts), Some(1));
        assert!(starts.heap_bytes() <= 256, "{}", starts.heap_bytes());
    }
}
