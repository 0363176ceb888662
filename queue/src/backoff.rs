//! The backoff of a queue: how long a nacked message waits, and the jitter that spreads messages which failed together.

use super::id::Sequence;
use super::time::DurationMs;

/// The delay before a nacked message is due again: base × 2^(attempt-1), at most max, shortened by up to `jitter`
/// percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first attempt.
    pub base: DurationMs,
    /// The longest delay.
    pub max: DurationMs,
    /// The largest share by which a delay is shortened, so that messages that failed together do not become due
    /// together.
    pub jitter: Percent,
}

impl Backoff {
    /// The delay of the message `sequence` after delivery number `attempt` (from 1).
    pub fn after(self, sequence: Sequence, attempt: u32) -> DurationMs {
        let full = self.full(attempt);
        if self.jitter == Percent::ZERO {
            return full;
        }
        // The share, in units of 2^-32, follows from the message and the attempt alone: the same history has the same
        // times.
        let share = mixed(sequence.0 ^ u64::from(attempt).rotate_left(48)) >> 32;
        let cut = u128::from(full.as_ms()) * u128::from(self.jitter.get()) * u128::from(share) / (100 << 32);
        DurationMs::new(full.as_ms() - u64::try_from(cut).unwrap_or(0).min(full.as_ms()))
    }

    /// The delay without jitter.
    fn full(self, attempt: u32) -> DurationMs {
        let doublings = attempt.saturating_sub(1);
        let waited = if self.base.is_zero() {
            0
        } else if doublings > self.base.as_ms().leading_zeros() {
            u64::MAX
        } else {
            self.base.as_ms().saturating_mul(1 << doublings.min(63))
        };
        DurationMs::new(waited.min(self.max.as_ms()))
    }
}

/// Returns a number whose bits each depend on all bits of `seed` (the finalizer of SplitMix64; Steele et al., 2014).
fn mixed(seed: u64) -> u64 {
    let once = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ twice >> 31
}

/// A percentage from 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percent(u8);

impl Percent {
    /// Zero percent.
    pub const ZERO: Percent = Percent(0);
    /// The largest percentage.
    pub const MAX: u8 = 100;

    /// `share` percent. Returns `None` if it is above 100.
    pub const fn new(share: u8) -> Option<Percent> {
        if share > Self::MAX {
            None
        } else {
            Some(Percent(share))
        }
    }

    /// The number, from 0 to 100.
    pub const fn get(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_from_base_to_max() {
        let waits: Vec<u64> = (1..=4).map(|attempt| backoff(1_000, 5_000, 0).full(attempt).as_ms()).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 5_000]);
        assert_eq!(backoff(1_000, 5_000, 0).full(u32::MAX).as_ms(), 5_000);
        assert_eq!(backoff(0, 0, 0).full(u32::MAX), DurationMs::ZERO);
        for attempt in [43, 64, 65, 100] {
            assert_eq!(backoff(1, u64::MAX, 0).full(attempt), DurationMs::MAX, "{attempt}");
        }
    }

    fn backoff(base: u64, max: u64, jitter: u8) -> Backoff {
        Backoff { base: DurationMs::new(base), max: DurationMs::new(max), jitter: Percent::new(jitter).unwrap() }
    }

    #[test]
    fn jitter_shortens_delays_evenly_and_within_its_share() {
        let waits = |jitter| {
            let wait = move |n: u64| backoff(1_000, 1_000, jitter).after(Sequence(n << 20), 1).as_ms();
            (0..1_000).map(wait).collect::<Vec<u64>>()
        };
        assert!(waits(0).iter().all(|wait| *wait == 1_000));
        assert!(waits(25).iter().all(|wait| (750..=1_000).contains(wait)));
        let mean = waits(100).iter().sum::<u64>() / 1_000;
        assert!((450..=550).contains(&mean), "{mean}");
        assert_eq!(waits(100), waits(100), "the same history has the same times");
        assert_ne!(
            backoff(1_000, 1_000, 100).after(Sequence(7), 1),
            backoff(1_000, 1_000, 100).after(Sequence(7), 2),
            "each attempt has its own delay"
        );
        assert!(backoff(1, u64::MAX, 100).after(Sequence(7), 60) <= DurationMs::MAX);
    }
}
