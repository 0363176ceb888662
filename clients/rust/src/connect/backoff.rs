//! How long to wait before the next attempt.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Waits that double from 20 ms to 2 s, each shortened at random by up to a half, so that clients that lost the same
/// server do not return together.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub fn new() -> Backoff {
        Backoff { next: FIRST }
    }

    pub fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST);
        wait / 2 + (wait / 2).mul_f64(random_share())
    }

    pub fn reset(&mut self) {
        self.next = FIRST;
    }
}

/// Random bits. The standard library offers them only as the keys of its hash maps.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// A random number from 0 to 1.
fn random_share() -> f64 {
    f64::from(u32::try_from(random() >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Backoff, FIRST, LONGEST};

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        let mut backoff = Backoff::new();
        let waits: Vec<_> = (0..50).map(|_| backoff.next()).collect();
        assert!(waits.iter().all(|wait| *wait >= FIRST / 2 && *wait <= LONGEST));
        let late = &waits[10..];
        assert!(late.iter().all(|wait| *wait >= LONGEST / 2));
        assert!(late.windows(2).any(|pair| pair[0] != pair[1]));
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
