//! What a queue's owner can set, with the ranges in which it makes sense.

use super::time::DurationMs;
use serde::{Deserialize, Serialize};

/// The largest length that a setting can name: what a double, and so any client, holds exactly.
pub const MAX_LENGTH: u64 = (1 << 53) - 1;

/// How many redeliveries a message has after its first: -1 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Retries(i32);

impl Retries {
    /// No limit.
    pub const UNLIMITED: Retries = Retries(-1);

    /// At most `count` redeliveries; -1 is no limit. None below that.
    pub const fn new(count: i32) -> Option<Retries> {
        if count < -1 {
            None
        } else {
            Some(Retries(count))
        }
    }

    /// The number, -1 where there is no limit.
    pub const fn count(self) -> i32 {
        self.0
    }

    /// Whether a message that was delivered `attempts` times may not be delivered again.
    pub const fn spent(self, attempts: u32) -> bool {
        self.0 >= 0 && attempts > self.0 as u32
    }
}

impl<'de> Deserialize<'de> for Retries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = i32::deserialize(deserializer)?;
        Retries::new(count).ok_or_else(|| serde::de::Error::custom("retries below -1"))
    }
}

/// How long a nacked message waits: base × 2^(attempt-1), at most max.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The wait after the first attempt.
    pub base: DurationMs,
    /// The longest wait.
    pub max: DurationMs,
}

impl Backoff {
    /// The wait after delivery number `attempt` (from 1).
    pub fn after(self, attempt: u32) -> DurationMs {
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

/// The settings of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How long a delivery may take, at least 1 ms.
    pub lease: DurationMs,
    /// Redeliveries before a message is dead.
    pub retries: Retries,
    /// The wait after a nack that names none.
    pub backoff: Backoff,
    /// How long after its due time a message may be completed; zero is for ever.
    pub ttl: DurationMs,
    /// Most messages held, dead not counted; zero is no limit.
    pub maxlen: u64,
    /// Most live leases; zero is no limit.
    pub maxinflight: u64,
    /// Most dead messages kept; none is all.
    pub deadlen: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lease: DurationMs::new(30_000),
            retries: Retries(16),
            backoff: Backoff { base: DurationMs::new(1_000), max: DurationMs::new(3_600_000) },
            ttl: DurationMs::ZERO,
            maxlen: 0,
            maxinflight: 0,
            deadlen: None,
        }
    }
}

impl Settings {
    /// Whether every value lies in its range: what comes from a file or a stream is asked this.
    pub fn are_valid(&self) -> bool {
        !self.lease.is_zero()
            && self.backoff.base <= self.backoff.max
            && self.maxlen <= MAX_LENGTH
            && self.maxinflight <= MAX_LENGTH
            && self.deadlen.is_none_or(|most| most <= MAX_LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_from_base_to_max() {
        let backoff = Backoff { base: DurationMs::new(1_000), max: DurationMs::new(5_000) };
        let waits: Vec<u64> = (1..=4).map(|attempt| backoff.after(attempt).as_ms()).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 5_000]);
        assert_eq!(backoff.after(u32::MAX).as_ms(), 5_000);
        let none = Backoff { base: DurationMs::ZERO, max: DurationMs::ZERO };
        assert_eq!(none.after(u32::MAX), DurationMs::ZERO);
        let longest = Backoff { base: DurationMs::new(1), max: DurationMs::MAX };
        for attempt in [43, 64, 65, 100] {
            assert_eq!(longest.after(attempt), DurationMs::MAX, "{attempt}");
        }
    }

    #[test]
    fn retries_count_redeliveries() {
        assert!(!Retries(1).spent(1) && Retries(1).spent(2));
        assert!(Retries(0).spent(1) && !Retries(0).spent(0));
        assert!(!Retries::UNLIMITED.spent(u32::MAX));
    }
}
