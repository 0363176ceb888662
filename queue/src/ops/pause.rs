//! Pausing delivery and resuming it.

use super::super::gate::Pause;
use super::super::time::{DurationMs, UnixMs};
use super::super::Queue;

impl Queue {
    /// Suspends delivery for `length`, or until it is resumed if `length` is `None`. Never shortens a running pause.
    /// Returns the new pause, or `None` if that changed nothing. O(1).
    pub fn suspend(&mut self, now: UnixMs, length: Option<DurationMs>) -> Option<Pause> {
        let now = self.observe(now);
        let pause = Pause::starting(now, length);
        (pause.holds_at(now) && pause > self.pause_at(now)).then(|| {
            self.gate.set_pause(pause);
            pause
        })
    }

    /// Resumes delivery. Returns whether it was suspended. O(1).
    pub fn resume(&mut self, now: UnixMs) -> bool {
        let now = self.observe(now);
        let suspended = self.gate.pause().holds_at(now);
        if suspended {
            self.gate.set_pause(Pause::Off);
        }
        suspended
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::settings::Settings;
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
        assert!(!queue.resume(at(1_600)), "the pause had ended");
        assert_eq!(queue.suspend(at(1_700), None), Some(Pause::Endless));
        assert_eq!(queue.suspend(at(1_800), length(9_000)), None, "an operator's pause outlives a worker's");
        assert!(queue.resume(at(1_900)));
        assert_eq!(queue.suspend(at(2_000), length(1)), Some(Pause::Until(at(2_001))));
    }
}
