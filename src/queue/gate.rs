//! The gate: how many messages may be delivered now, and when that changes by itself.
//!
//! Delivery, the read-only commands and the wake-up of blocked clients all ask the same question, and this is the only
//! place that answers it: whether the queue is paused, and how much room `MAXINFLIGHT` leaves. A limit that time lifts,
//! such as a pause with an end, is part of the queue's next wake-up, so blocked clients are served as soon as it is
//! lifted.

use super::ops::deliver::Lease;
use super::settings::Settings;
use super::time::{DurationMs, UnixMs};

/// Whether delivery is suspended, and until when. Pauses are ordered by how long they last.
///
/// The end of a pause follows from the time alone, as a due time does: nothing is written when it comes, and every
/// server computes it for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pause {
    /// Messages are delivered.
    #[default]
    Off,
    /// Nothing is delivered before this instant.
    Until(UnixMs),
    /// Nothing is delivered until the queue is resumed.
    Endless,
}

impl Pause {
    /// Returns a pause that starts at `now` and lasts for `length`, or that has no end if `length` is `None`.
    pub fn starting(now: UnixMs, length: Option<DurationMs>) -> Pause {
        length.map_or(Pause::Endless, |length| Pause::Until(now.after(length)))
    }

    /// Whether the pause suspends delivery at `now`.
    #[inline]
    pub fn holds_at(self, now: UnixMs) -> bool {
        match self {
            Pause::Off => false,
            Pause::Until(end) => now < end,
            Pause::Endless => true,
        }
    }

    /// The instant at which delivery resumes by itself; `None` if it is not suspended or the pause has no end.
    #[inline]
    pub fn end(self) -> Option<UnixMs> {
        match self {
            Pause::Off | Pause::Endless => None,
            Pause::Until(end) => Some(end),
        }
    }
}

/// The state that, beside the settings and the running leases, decides how many messages may be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gate {
    /// The pause that was last set; it may have ended.
    pause: Pause,
}

impl Gate {
    /// The gate of a queue that was saved with this pause.
    pub fn with_pause(pause: Pause) -> Gate {
        Gate { pause }
    }

    /// The pause that was last set, whether or not it has ended.
    pub fn pause(&self) -> Pause {
        self.pause
    }

    /// Sets the pause.
    pub fn set_pause(&mut self, pause: Pause) {
        self.pause = pause;
    }

    /// How many deliveries with this kind of lease may begin at `now` while `inflight` leases run. O(1).
    #[inline]
    pub fn room(&self, settings: &Settings, inflight: usize, lease: Lease, now: UnixMs) -> usize {
        if self.pause.holds_at(now) {
            return 0;
        }
        match settings.maxinflight {
            0 => usize::MAX,
            most => match (usize::try_from(most).unwrap_or(usize::MAX)).saturating_sub(inflight) {
                // A delivery without a lease takes no room, but it too waits until there is some.
                1.. if lease == Lease::NoAck => usize::MAX,
                room => room,
            },
        }
    }

    /// The next instant after `at` at which the gate opens by itself; `None` if there is no such instant.
    #[inline]
    pub fn opens_after(&self, at: UnixMs) -> Option<UnixMs> {
        self.pause.end().filter(|end| *end > at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    #[test]
    fn a_paused_queue_has_no_room_until_the_pause_ends() {
        let gate = Gate::with_pause(Pause::Until(at(50)));
        let room = |now| gate.room(&Settings::default(), 0, Lease::Default, at(now));
        assert_eq!((room(49), room(50)), (0, usize::MAX));
        assert_eq!((gate.opens_after(at(49)), gate.opens_after(at(50))), (Some(at(50)), None));
    }

    #[test]
    fn running_leases_leave_the_rest_of_maxinflight() {
        let settings = Settings { maxinflight: 3, ..Settings::default() };
        let room = |inflight, lease| Gate::default().room(&settings, inflight, lease, at(0));
        assert_eq!([0, 2, 3, 9].map(|inflight| room(inflight, Lease::Default)), [3, 1, 0, 0]);
        assert_eq!([2, 3].map(|inflight| room(inflight, Lease::NoAck)), [usize::MAX, 0]);
    }
}
