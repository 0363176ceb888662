//! A histogram of durations: how many there were in each bucket, and their sum.
//!
//! Counting is part of every delivery and every ack, so it is cheap: there is one bucket for each power of two, and
//! only those up to the largest value that was counted are allocated.

use super::memory::vec_bytes;
use super::time::DurationMs;

/// The number of durations by their size, and their sum. At most 192 bytes on the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The count of each bucket, up to the last one that is not empty.
    counts: Vec<u64>,
    sum_ms: u64,
}

impl Histogram {
    /// The exponent of the last bound: 2^22 ms are 70 minutes.
    const LAST_EXPONENT: usize = 22;
    /// The number of buckets. The upper bounds are 1, 2, 4 … 2^22 ms, and the last bucket has none.
    pub const BUCKETS: usize = Self::LAST_EXPONENT + 2;

    /// The bucket of a duration, which is the first whose upper bound is not below it.
    #[inline]
    pub const fn bucket_of(duration: DurationMs) -> usize {
        let exponent = u64::BITS - duration.as_ms().saturating_sub(1).leading_zeros();
        if exponent as usize > Self::LAST_EXPONENT {
            Self::BUCKETS - 1
        } else {
            exponent as usize
        }
    }

    /// Counts a duration. O(1).
    #[inline]
    pub fn record(&mut self, duration: DurationMs) {
        self.sum_ms = self.sum_ms.saturating_add(duration.as_ms());
        let bucket = Self::bucket_of(duration);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.open(bucket),
        }
    }

    /// Counts the first duration in a bucket after all that are in use.
    #[cold]
    fn open(&mut self, bucket: usize) {
        self.counts.reserve_exact(bucket + 1 - self.counts.len());
        self.counts.resize(bucket, 0);
        self.counts.push(1);
    }

    /// The sum of all durations in ms. It saturates.
    pub fn sum_ms(&self) -> u64 {
        self.sum_ms
    }

    /// The upper bound of each bucket in ms, and the number of durations up to it; see [`Histogram::cumulated`].
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        Self::cumulated(self.counts.iter().copied().chain(std::iter::repeat(0)))
    }

    /// The upper bound of each bucket in ms, and the number of durations up to it, from the count of each bucket. The
    /// last bucket has no bound, so its number is that of all durations.
    pub fn cumulated(counts: impl Iterator<Item = u64>) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = (0..Self::BUCKETS).map(|bucket| (bucket <= Self::LAST_EXPONENT).then(|| 1 << bucket));
        bounds.zip(counts).scan(0u64, |up_to, (bound, count)| {
            *up_to = up_to.saturating_add(count);
            Some((bound, *up_to))
        })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        vec_bytes::<u64>(self.counts.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> DurationMs {
        DurationMs::new(ms)
    }

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        for exponent in 0..=22 {
            let bound = 1u64 << exponent;
            assert_eq!(Histogram::bucket_of(ms(bound)), exponent);
            assert_eq!(Histogram::bucket_of(ms(bound + 1)), exponent + 1);
        }
        assert_eq!(Histogram::bucket_of(ms(0)), 0);
        assert_eq!(Histogram::bucket_of(DurationMs::MAX), Histogram::BUCKETS - 1);
    }

    #[test]
    fn counts_are_cumulative_up_to_infinity() {
        let mut histogram = Histogram::default();
        [0, 1, 2, 3, 4, 5, 1 << 22, (1 << 22) + 1].into_iter().for_each(|value| histogram.record(ms(value)));
        let shown: Vec<_> = histogram.cumulative().collect();
        assert_eq!(shown.len(), 24);
        assert_eq!(shown[..5], [(Some(1), 2), (Some(2), 3), (Some(4), 5), (Some(8), 6), (Some(16), 6)]);
        assert_eq!(shown[21..], [(Some(1 << 21), 6), (Some(1 << 22), 7), (None, 8)]);
        assert_eq!(histogram.sum_ms(), 15 + (2 << 22) + 1);
    }

    #[test]
    fn an_empty_histogram_shows_every_bound_with_zero() {
        let histogram = Histogram::default();
        assert!(histogram.cumulative().all(|(_, count)| count == 0));
        assert_eq!((histogram.cumulative().count(), histogram.heap_bytes()), (24, 0));
    }

    #[test]
    fn a_sum_saturates() {
        let mut histogram = Histogram { sum_ms: u64::MAX - 1, ..Histogram::default() };
        histogram.record(ms(5));
        assert_eq!(histogram.sum_ms(), u64::MAX);
    }
}
