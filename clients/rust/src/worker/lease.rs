//! The lease of a delivery, by the clock of this process.

use super::loss::Loss;
use crate::names::{MessageId, Receipt};
use crate::sync::lock;
use crate::time::after;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A lease counts as lost before its end by this part of it, because two clocks may differ by so much after that time,
/// …
const DRIFT: u32 = 1000;
/// … and by this time, because the server tells its time and the end in whole milliseconds.
const PRECISION: Duration = Duration::from_millis(2);
/// Leases that are shorter than twice this time are extended no more often.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The lease of a delivery, by the clock of this process.
pub(super) struct Lease {
    /// Among all deliveries of the process.
    pub number: u64,
    pub id: MessageId,
    pub attempt: u32,
    pub receipt: Receipt,
    /// Cancelled when it is lost.
    pub lost: CancellationToken,
    state: Mutex<State>,
}

struct State {
    /// How long it is, as the server last reported.
    time: Duration,
    /// When it counts as lost.
    lost_at: Instant,
    extend_at: Instant,
    /// When the time limit of the handler is over; `None` without one, and before the handler has begun.
    limit_at: Option<Instant>,
    /// Why it is lost, if it is.
    loss: Loss,
    /// Whether its loss was counted and reported.
    is_reported: bool,
    /// Whether the handler has seen that it is lost.
    handler_knows: bool,
    /// What the handler has stored of its work, until it is sent.
    checkpoint: Option<Vec<u8>>,
}

impl Lease {
    /// A lease that runs for `time` from `begun` on.
    pub fn new((id, attempt, receipt): (MessageId, u32, Receipt), begun: Instant, time: Duration) -> Lease {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut state = State {
            time,
            lost_at: begun,
            extend_at: begun,
            limit_at: None,
            loss: Loss::Ended,
            is_reported: false,
            handler_knows: false,
            checkpoint: None,
        };
        state.restart(begun, time);
        Lease { number, id, attempt, receipt, lost: CancellationToken::new(), state: Mutex::new(state) }
    }

    /// It was extended, and runs for `time` from `begun` on.
    pub fn restart(&self, begun: Instant, time: Duration) {
        let mut state = lock(&self.state);
        let loss = state.loss;
        state.restart(begun, time);
        if self.lost.is_cancelled() {
            // It stays lost. But until its handler knows that, nobody else is to have the message.
            state.loss = loss;
        }
    }

    /// How long it is.
    pub fn time(&self) -> Duration {
        lock(&self.state).time
    }

    /// When it is to be extended; `None` if it is lost and the handler knows.
    pub fn extend_at(&self) -> Option<Instant> {
        let state = lock(&self.state);
        let is_over = self.lost.is_cancelled() && (state.loss != Loss::Ended || state.handler_knows);
        (!is_over).then_some(state.extend_at)
    }

    pub fn try_again_at(&self, time: Instant) {
        lock(&self.state).extend_at = time;
    }

    /// The handler begins, and may run for this time. Returns when that is over.
    pub fn limit(&self, limit: Duration) -> Instant {
        *lock(&self.state).limit_at.insert(after(limit))
    }

    /// Whether the handler has run for longer than it may.
    pub fn is_over_limit(&self, now: Instant) -> bool {
        lock(&self.state).limit_at.is_some_and(|at| at <= now)
    }

    pub fn set_checkpoint(&self, bytes: Vec<u8>) {
        let mut state = lock(&self.state);
        state.checkpoint = Some(bytes);
        state.extend_at = Instant::now();
    }

    pub fn has_checkpoint(&self) -> bool {
        lock(&self.state).checkpoint.is_some()
    }

    /// The checkpoint that is to be sent.
    pub fn take_checkpoint(&self) -> Option<Vec<u8>> {
        lock(&self.state).checkpoint.take()
    }

    /// A checkpoint did not arrive, and is to be sent again unless there is a newer one.
    pub fn keep_checkpoint(&self, bytes: Option<Vec<u8>>) {
        let mut state = lock(&self.state);
        state.checkpoint = state.checkpoint.take().or(bytes);
    }

    /// It may be lost for this reason: an extension is to find out.
    pub fn suspect(&self, loss: Loss, now: Instant) {
        let mut state = lock(&self.state);
        if !self.lost.is_cancelled() {
            (state.loss, state.extend_at) = (loss, now);
        }
    }

    /// It is lost, for this reason or the one that was suspected.
    pub fn lose(&self, loss: Option<Loss>) {
        let mut state = lock(&self.state);
        state.loss = loss.unwrap_or(state.loss);
        self.lost.cancel();
    }

    /// Whether its loss is still to be reported, which the caller does.
    pub fn is_to_be_reported(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).is_reported, true)
    }

    pub fn loss(&self) -> Option<Loss> {
        self.is_lost().then(|| lock(&self.state).loss)
    }

    /// The same, of which the handler knows from now on.
    pub fn loss_for_handler(&self) -> Option<Loss> {
        let loss = self.loss();
        if loss.is_some() {
            lock(&self.state).handler_knows = true;
        }
        loss
    }

    /// When it is over; never if it is lost already.
    pub fn lost_at(&self) -> Option<Instant> {
        Some(lock(&self.state).lost_at).filter(|_| !self.lost.is_cancelled())
    }

    /// When it, or the time of its handler, is over.
    pub fn over_at(&self) -> Option<Instant> {
        let limit_at = lock(&self.state).limit_at;
        self.lost_at().into_iter().chain(limit_at).min()
    }

    /// Whether what the handler returned has no effect. A lease that has ended by time may still be acked, as long as
    /// nobody has taken the message and the handler does not know.
    pub fn is_discarded(&self) -> bool {
        self.loss().is_some_and(|loss| loss != Loss::Ended || lock(&self.state).handler_knows)
    }

    /// A lost lease stays lost: the handler may have stopped already.
    pub fn is_lost(&self) -> bool {
        if !self.lost.is_cancelled() && Instant::now() >= lock(&self.state).lost_at {
            self.lose(None);
        }
        self.lost.is_cancelled()
    }
}

impl State {
    fn restart(&mut self, begun: Instant, time: Duration) {
        (self.time, self.lost_at) = (time, begun + time.saturating_sub(PRECISION + time / DRIFT));
        // What was stored while an extension was on its way is sent at once.
        let is_waiting = self.checkpoint.is_some();
        self.extend_at = if is_waiting { Instant::now() } else { begun + (time / 2).max(SHORTEST_PAUSE) };
        self.loss = Loss::Ended;
    }
}

#[cfg(test)]
mod tests {
    use super::{lock, Lease, Loss};
    use crate::names::{MessageId, Receipt};
    use std::time::{Duration, Instant};

    fn lease(begun: Instant, time: Duration) -> Lease {
        Lease::new((MessageId::from("m"), 1, Receipt::from("m#1")), begun, time)
    }

    #[test]
    fn a_lease_is_extended_at_half_its_time_however_long_it_is() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let lease = lease(begun, 10 * second);
        let until = |lease: &Lease| (lease.extend_at().unwrap() - begun, lock(&lease.state).lost_at - begun);
        let ms = Duration::from_millis;
        assert_eq!(until(&lease), (ms(5000), ms(9988)));
        // No delivery lasts longer than 12 seconds.
        lease.restart(begun + 5 * second, 7 * second);
        assert_eq!(until(&lease), (ms(8500), ms(11_991)));
        // The lease of the queue was changed.
        lease.restart(begun + 6 * second, second);
        assert_eq!(until(&lease), (ms(6500), ms(6997)));
    }

    #[test]
    fn a_suspected_loss_is_the_reason_unless_the_lease_can_be_extended() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let suspected = lease(now, hour);
        suspected.suspect(Loss::Purged, now);
        assert_eq!((suspected.loss(), suspected.extend_at()), (None, Some(now)));
        suspected.restart(now, hour);
        suspected.suspect(Loss::Purged, now);
        suspected.lose(None);
        assert_eq!(suspected.loss(), Some(Loss::Purged));
        assert!(suspected.is_to_be_reported() && !suspected.is_to_be_reported());
        let other = lease(now, hour);
        other.suspect(Loss::Purged, now);
        other.restart(now, hour);
        other.lose(None);
        assert_eq!(other.loss(), Some(Loss::Ended));
    }

    #[test]
    fn a_lost_lease_stays_lost() {
        let lease = lease(Instant::now(), Duration::from_secs(600));
        assert!(!lease.is_lost());
        lease.restart(Instant::now(), Duration::ZERO);
        assert!(lease.is_lost());
        // The reply to an extension was on its way.
        lease.restart(Instant::now(), Duration::from_secs(600));
        assert!(lease.is_lost());
        lease.lose(Some(Loss::TimeLimit));
        lease.restart(Instant::now(), Duration::from_secs(600));
        assert_eq!(lease.loss(), Some(Loss::TimeLimit));
    }
}
