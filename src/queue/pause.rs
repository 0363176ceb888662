//! Pauses of a queue's delivery, with and without an end.
//!
//! The end of a pause follows from the time alone, as a due time does: nothing is written when it comes, and every
//! server finds it for itself.

use super::time::{DurationMs, UnixMs};
use super::Queue;
use serde::{Deserialize, Serialize};

/// Whether delivery is suspended, and until when. Ordered by how long it lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Pause {
    /// Messages are delivered.
    #[default]
    #[serde(rename = "n")]
    Off,
    /// Nothing is delivered before this instant.
    #[serde(rename = "u")]
    Until(UnixMs),
    /// Nothing is delivered until the queue is resumed.
    #[serde(rename = "e")]
    Endless,
}

impl Pause {
    /// A pause from `now` on, for `length`; without one it has no end.
    pub fn starting(now: UnixMs, length: Option<DurationMs>) -> Pause {
        length.map_or(Pause::Endless, |length| Pause::Until(now.after(length)))
    }

    /// Whether it suspends delivery at `now`.
    #[inline]
    pub fn holds_at(self, now: UnixMs) -> bool {
        match self {
            Pause::Off => false,
            Pause::Until(end) => now < end,
            Pause::Endless => true,
        }
    }

    /// When delivery resumes by itself; `None` if it is not suspended or never resumes by itself.
    pub fn end(self) -> Option<UnixMs> {
        match self {
            Pause::Off | Pause::Endless => None,
            Pause::Until(end) => Some(end),
        }
    }
}

impl Queue {
    /// The pause that holds at `now`: [`Pause::Off`] if the last one has ended.
    pub fn pause_at(&self, now: UnixMs) -> Pause {
        if self.pause.holds_at(self.seen(now)) {
            self.pause
        } else {
            Pause::Off
        }
    }

    /// Suspends delivery for `length`, or without an end. Never shortens a pause that holds. Returns the new pause,
    /// or `None` if that changed nothing. O(1).
    pub fn suspend(&mut self, now: UnixMs, length: Option<DurationMs>) -> Option<Pause> {
        let now = self.tick(now);
        let pause = Pause::starting(now, length);
        (pause.holds_at(now) && pause > self.pause_at(now)).then(|| {
            self.pause = pause;
            pause
        })
    }

    /// Resumes delivery. Returns whether it was suspended. O(1).
    pub fn resume(&mut self, now: UnixMs) -> bool {
        let now = self.tick(now);
        let suspended = self.pause.holds_at(now);
        if suspended {
            self.pause = Pause::Off;
        }
        suspended
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    #[test]
    fn a_pause_ends_by_itself_and_is_never_shortened() {
        let mut queue = Queue::new(Settings::default());
        let length = |ms| Some(DurationMs::new(ms));
        assert_eq!(queue.suspend(at(1_000), length(500)), Some(Pause::Until(at(1_500))));
        assert_eq!(queue.suspend(at(1_100), length(100)), None);
        assert_eq!(queue.pause_at(at(1_499)), Pause::Until(at(1_500)));
        assert_eq!(queue.pause_at(at(1_500)), Pause::Off);
        assert!(!queue.resume(at(1_600)), "it had ended");
        assert_eq!(queue.suspend(at(1_700), None), Some(Pause::Endless));
        assert_eq!(queue.suspend(at(1_800), length(9_000)), None, "an operator's pause outlives a worker's");
        assert!(queue.resume(at(1_900)));
        assert_eq!(queue.suspend(at(2_000), length(1)), Some(Pause::Until(at(2_001))));
    }
}
