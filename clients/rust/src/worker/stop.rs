//! The request to stop.

use crate::connect::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Wish {
    #[default]
    GoOn,
    Stop,
    /// Without waiting for running handlers.
    StopNow,
}

/// Set by the first request to stop.
#[derive(Default)]
pub(super) struct Stop {
    wish: Mutex<Wish>,
    changed: Condvar,
}

impl Stop {
    /// Asks to stop; the second time, without waiting for handlers.
    pub fn ask(&self) {
        let mut wish = lock(&self.wish);
        *wish = if *wish == Wish::GoOn { Wish::Stop } else { Wish::StopNow };
        self.changed.notify_all();
    }

    pub fn is_set(&self) -> bool {
        *lock(&self.wish) != Wish::GoOn
    }

    /// Whether the worker was asked a second time.
    pub fn is_forced(&self) -> bool {
        *lock(&self.wish) == Wish::StopNow
    }

    /// Waits until the worker is asked to stop.
    pub fn wait(&self) {
        let mut wish = lock(&self.wish);
        while *wish == Wish::GoOn {
            wish = self.changed.wait(wish).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for this time, or until the worker is asked to stop. Returns whether it was.
    pub fn wait_for(&self, time: Duration) -> bool {
        self.wait_until(Wish::Stop, time)
    }

    /// Waits for this time, or until the worker is asked to stop without waiting.
    pub fn pause(&self, time: Duration) -> bool {
        self.wait_until(Wish::StopNow, time)
    }

    fn wait_until(&self, wanted: Wish, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut wish = lock(&self.wish);
        while *wish < wanted {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            wish = self.changed.wait_timeout(wish, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
