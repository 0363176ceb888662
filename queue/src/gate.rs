//! The gate: how many messages may be delivered now, when that changes by itself, and whether messages are accepted.
//!
//! Delivery, the read-only commands and the wake-up of blocked clients all ask the same question, and this is the only
//! place that answers it: whether the queue is paused, how much room `MAXINFLIGHT` leaves, and how many deliveries the
//! rate limit allows. A limit that time lifts, such as a pause with an end or a rate, is part of the queue's next
//! wake-up, so blocked clients are served as soon as it is lifted, and nothing polls before.

use super::memory::box_bytes;
use super::rate::{Rate, RateLog};
use super::settings::Settings;
use super::time::{DurationMs, UnixMs};

/// Whether delivery, or what producers add, is suspended, and until when. Pauses are ordered by how long they last.
///
/// The end of a pause follows from the time alone, as a due time does: nothing is written when it comes, and every
/// server computes it for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pause {
    /// Nothing is suspended.
    #[default]
    Off,
    /// It is suspended before this instant.
    Until(UnixMs),
    /// It is suspended until the queue is resumed.
    Endless,
}

/// What a pause suspends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// Deliveries.
    #[default]
    Out,
    /// New messages: the queue is closed.
    In,
    /// Both.
    Both,
}

impl Flow {
    /// Whether `other` is a part of this flow.
    pub(super) fn includes(self, other: Flow) -> bool {
        self == other || self == Flow::Both
    }
}

impl Pause {
    /// Returns a pause that starts at `now` and lasts for `length`, or that has no end if `length` is `None`.
    pub fn starting(now: UnixMs, length: Option<DurationMs>) -> Pause {
        length.map_or(Pause::Endless, |length| Pause::Until(now.after(length)))
    }

    /// Whether the pause holds at `now`.
    #[inline]
    pub fn holds_at(self, now: UnixMs) -> bool {
        match self {
            Pause::Off => false,
            Pause::Until(end) => now < end,
            Pause::Endless => true,
        }
    }

    /// The pause if it holds at `now`, or else [`Pause::Off`].
    pub(super) fn at(self, now: UnixMs) -> Pause {
        if self.holds_at(now) {
            self
        } else {
            Pause::Off
        }
    }

    /// The instant at which the pause ends by itself; `None` if there is none or it has no end.
    #[inline]
    pub fn end(self) -> Option<UnixMs> {
        match self {
            Pause::Off | Pause::Endless => None,
            Pause::Until(end) => Some(end),
        }
    }
}

/// The lease that a consumer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// The lease of the message, or that of the queue if the message has none of its own.
    Default,
    /// A lease of this duration.
    For(DurationMs),
    /// No lease: the message is removed when it is delivered.
    NoAck,
}

/// The state that, besides the settings and the running leases, decides how many messages may be delivered.
/// The gate of most queues is open, and takes one word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gate(Option<Box<GateState>>);

/// What may hold deliveries back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GateState {
    /// The pause of deliveries that was last set; it may have ended.
    pause: Pause,
    /// The same for new messages.
    closed: Pause,
    /// The recent deliveries, if there is a rate limit and there were any.
    log: Option<RateLog>,
}

impl From<GateState> for Gate {
    fn from(state: GateState) -> Gate {
        Gate((state != GateState::default()).then(|| Box::new(state)))
    }
}

impl Gate {
    /// The gate of a queue that was saved with these pauses of deliveries and of new messages, and with these recent
    /// deliveries.
    pub fn new(pause: Pause, closed: Pause, log: RateLog) -> Gate {
        Gate::from(GateState { pause, closed, log: (!log.is_empty()).then_some(log) })
    }

    /// The pause of deliveries that was last set, whether or not it has ended.
    #[inline]
    pub fn pause(&self) -> Pause {
        self.0.as_ref().map_or(Pause::Off, |state| state.pause)
    }

    /// The pause of new messages that was last set, whether or not it has ended.
    #[inline]
    pub fn closed(&self) -> Pause {
        self.0.as_ref().map_or(Pause::Off, |state| state.closed)
    }

    /// Sets the pause of a flow.
    pub fn set_pause(&mut self, pause: Pause, flow: Flow) {
        let mut state = self.take();
        if flow.includes(Flow::Out) {
            state.pause = pause;
        }
        if flow.includes(Flow::In) {
            state.closed = pause;
        }
        *self = Gate::from(state);
    }

    fn take(&mut self) -> GateState {
        self.0.take().map_or_else(GateState::default, |state| *state)
    }

    /// The recent deliveries that the rate limit counts.
    pub fn log(&self) -> Option<&RateLog> {
        self.0.as_ref()?.log.as_ref()
    }

    /// How many deliveries with this kind of lease may begin at `now` while `inflight` leases run. O(1), and O(log n)
    /// with a rate limit.
    #[inline]
    pub fn room(&self, settings: &Settings, inflight: usize, lease: Lease, now: UnixMs) -> usize {
        let room = self.room_but_for_rate(settings, inflight, lease, now);
        if settings.rate.is_off() {
            return room;
        }
        room.min(self.rate_room(settings.rate, now))
    }

    /// [`Gate::room`] without regard to the rate limit. O(1).
    #[inline]
    pub fn room_but_for_rate(&self, settings: &Settings, inflight: usize, lease: Lease, now: UnixMs) -> usize {
        if self.pause().holds_at(now) {
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

    /// How many deliveries the rate limit allows at `now`.
    #[cold]
    fn rate_room(&self, rate: Rate, now: UnixMs) -> usize {
        let begun = self.log().map_or(0, |log| log.count(now, rate.period));
        usize::try_from(rate.most.saturating_sub(begun)).unwrap_or(usize::MAX)
    }

    /// Counts deliveries that begin at `now`. O(1), and O(log n) with a rate limit.
    #[inline]
    pub fn record(&mut self, settings: &Settings, now: UnixMs, count: usize) {
        if !settings.rate.is_off() && count > 0 {
            self.0.get_or_insert_default().log.get_or_insert_default().record(now, count as u64, settings.rate.period);
        }
    }

    /// Applies new settings: without a rate limit, the recent deliveries are dropped.
    pub fn alter(&mut self, settings: &Settings) {
        if settings.rate.is_off() {
            *self = Gate::from(GateState { log: None, ..self.take() });
        }
    }

    /// The instant at which the rate limit allows a delivery again; `None` if it does at `now`. O(log n).
    pub fn next_delivery(&self, settings: &Settings, now: UnixMs) -> Option<UnixMs> {
        self.log()?.opens_after(now, settings.rate)
    }

    /// Whether the rate limit counts a delivery later than `now`, because another clock was ahead.
    #[inline]
    pub fn is_ahead_of(&self, now: UnixMs) -> bool {
        self.log().is_some_and(|log| log.is_ahead_of(now))
    }

    /// Makes deliveries that are later than `now` count as if they had begun at `now`.
    pub fn pull_back_to(&mut self, now: UnixMs) {
        if let Some(log) = self.0.as_mut().and_then(|state| state.log.as_mut()) {
            log.pull_back_to(now);
        }
    }

    /// The next instant after `at` at which the gate opens by itself; `None` if there is no such instant.
    #[inline]
    pub fn opens_after(&self, settings: &Settings, at: UnixMs) -> Option<UnixMs> {
        match self.pause() {
            Pause::Endless => None,
            Pause::Until(end) if end > at => Some(end),
            Pause::Until(_) | Pause::Off => self.next_delivery(settings, at),
        }
    }

    /// The number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |state| box_bytes::<GateState>() + state.log.as_ref().map_or(0, RateLog::heap_bytes))
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
        let gate = Gate::new(Pause::Until(at(50)), Pause::Off, RateLog::default());
        let room = |now| gate.room(&Settings::default(), 0, Lease::Default, at(now));
        let opens = |now| gate.opens_after(&Settings::default(), at(now));
        assert_eq!((room(49), room(50)), (0, usize::MAX));
        assert_eq!((opens(49), opens(50)), (Some(at(50)), None));
    }

    #[test]
    fn a_rate_leaves_what_has_not_begun_in_its_period() {
        let settings = Settings { rate: Rate { most: 3, period: DurationMs::new(10) }, ..Settings::default() };
        let mut gate = Gate::default();
        gate.record(&settings, at(100), 2);
        let room = |gate: &Gate, lease, now| gate.room(&settings, 0, lease, at(now));
        assert_eq!([Lease::Default, Lease::NoAck].map(|lease| room(&gate, lease, 105)), [1, 1]);
        gate.record(&settings, at(105), 1);
        assert_eq!([109, 110, 115].map(|now| room(&gate, Lease::Default, now)), [0, 2, 3]);
        assert_eq!(gate.opens_after(&settings, at(105)), Some(at(110)));
        gate.set_pause(Pause::Until(at(112)), Flow::Out);
        assert_eq!(gate.opens_after(&settings, at(105)), Some(at(112)));
        gate.alter(&Settings::default());
        assert_eq!(gate.log(), None);
    }

    #[test]
    fn running_leases_leave_the_rest_of_maxinflight() {
        let settings = Settings { maxinflight: 3, ..Settings::default() };
        let room = |inflight, lease| Gate::default().room(&settings, inflight, lease, at(0));
        assert_eq!([0, 2, 3, 9].map(|inflight| room(inflight, Lease::Default)), [3, 1, 0, 0]);
        assert_eq!([2, 3].map(|inflight| room(inflight, Lease::NoAck)), [usize::MAX, 0]);
    }
}
