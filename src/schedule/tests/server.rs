//! A server as the schedule sees it: clocks that a test sets, timers, and a descriptor that wakes the event loop.

use crate::module_api::ctx::TimerId;
use crate::schedule::Clockwork;
use dq_queue::time::UnixMs;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A simulated server, as far as the schedule uses one.
#[derive(Debug)]
pub struct Server {
    started: Instant,
    /// The monotonic clock: how long the server has run.
    pub ran: Cell<Duration>,
    /// When each timer fires, by the monotonic clock.
    pub timers: RefCell<BTreeMap<u64, Duration>>,
    made: Cell<u64>,
    /// How much later than asked a timer fires.
    late: Duration,
    pub descriptor: Descriptor,
    /// The time of day to which the descriptor is set.
    wakes_at: Cell<Option<u64>>,
    /// The monotonic time to which the descriptor is set instead.
    wakes_after: Cell<Option<Duration>>,
}

/// What wakes the event loop at a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// Nothing does.
    Missing,
    /// A descriptor that goes by the server's clock.
    Exact,
    /// A descriptor whose clock is that many milliseconds ahead of the server's, and does not step together with it.
    Ahead(i64),
}

impl Server {
    pub fn new(descriptor: Descriptor, late_ms: u64) -> Server {
        Server {
            started: Instant::now(),
            ran: Cell::default(),
            timers: RefCell::default(),
            made: Cell::default(),
            late: Duration::from_millis(late_ms),
            descriptor,
            wakes_at: Cell::default(),
            wakes_after: Cell::default(),
        }
    }

    /// Returns whether the descriptor fires at this time of day. It does so once.
    pub fn wakes(&self, now: u64) -> bool {
        let ahead = if let Descriptor::Ahead(ms) = self.descriptor { ms } else { 0 };
        let wakes = self.wakes_at.get().is_some_and(|at| at <= now.saturating_add_signed(ahead))
            || self.wakes_after.get().is_some_and(|after| after <= self.ran.get());
        if wakes {
            self.wakes_at.set(None);
            self.wakes_after.set(None);
        }
        wakes
    }
}

impl Clockwork for Server {
    fn instant(&self) -> Instant {
        self.started + self.ran.get()
    }

    fn create_timer(&self, ms: u64) -> TimerId {
        let id = self.made.get();
        self.made.set(id + 1);
        // A timer of 0 ms fires in the same iteration of the event loop.
        let late = if ms == 0 { Duration::ZERO } else { self.late };
        self.timers.borrow_mut().insert(id, self.ran.get() + Duration::from_millis(ms) + late);
        TimerId::simulated(id)
    }

    fn stop_timer(&self, timer: TimerId) {
        self.timers.borrow_mut().retain(|id, _| TimerId::simulated(*id) != timer);
    }

    fn wake_at(&self, at: UnixMs) {
        if self.descriptor != Descriptor::Missing {
            self.wakes_at.set(Some(at.as_ms()));
            self.wakes_after.set(None);
        }
    }

    fn wake_after(&self, wait: Duration) {
        if self.descriptor != Descriptor::Missing {
            self.wakes_at.set(None);
            self.wakes_after.set(Some(self.ran.get() + wait));
        }
    }
}
