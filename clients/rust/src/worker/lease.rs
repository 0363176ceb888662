//! The lease of a delivery, by the clock of this process, and why it is lost.

use super::pool::Source;
use crate::connect::{after, lock};
use crate::queue::{Id, Receipt};
use crate::reply::words;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A lease counts as lost before its end by a tenth of it, at most by this time, so that the handler has time to stop.
const LONGEST_MARGIN: Duration = Duration::from_secs(1);

words! {
    /// Why a lease is lost. The words are those in the notices of the server, and `lease`, `time limit` and `stopping`, of
    /// which no notice tells.
    #[non_exhaustive]
    Loss {
        /// The lease has ended, or it could not be extended, or the reason is not known.
        Ended = "lease",
        /// The message was cancelled.
        Cancelled = "cancelled",
        /// The message was replaced by another one.
        Replaced = "replaced",
        /// The message was buried.
        Buried = "buried",
        /// The message was purged.
        Purged = "purged",
        /// The message was released, for another worker.
        Released = "released",
        /// The handler runs for longer than [`Pool::time_limit`](crate::Pool::time_limit), and the message was given back as
        /// failed.
        TimeLimit = "time limit",
        /// The worker stops, the grace period is over, and the message was given back without counting as an attempt.
        Stopping = "stopping",
    }
}

/// The lease of a delivery, by the clock of this process.
pub(super) struct Lease {
    /// Among all deliveries of the process.
    pub number: u64,
    pub source: Arc<Source>,
    pub id: Id,
    pub attempt: u32,
    pub receipt: Receipt,
    /// Cancelled when it is lost.
    pub lost: CancellationToken,
    state: Mutex<State>,
}

struct State {
    /// When handlers are told that it is lost.
    lost_at: Instant,
    extend_at: Instant,
    /// When the time limit of the handler is over; `None` without one, and before the handler has begun.
    limit_at: Option<Instant>,
    /// Why it is lost, if it is.
    loss: Loss,
    /// Whether the handler has seen that it is lost.
    handler_knows: bool,
    /// What the handler has stored of its work, until it is sent.
    checkpoint: Option<Vec<u8>>,
    last: Option<Extension>,
}

/// What the last extension has told.
struct Extension {
    /// The end of the lease by the clock of the server, in Unix ms, and by ours.
    deadline: i64,
    end: Instant,
    /// When the reply was there.
    heard: Instant,
}

/// By how many ms two clocks may differ while a second passes, at most.
const CLOCK_ERROR: i64 = 2;

impl Lease {
    pub fn new(
        source: &Arc<Source>,
        (id, attempt, receipt): (Id, u32, Receipt),
        begun: Instant,
        time: Duration,
    ) -> Lease {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (number, source) = (NEXT.fetch_add(1, Ordering::Relaxed), Arc::clone(source));
        let mut state = State {
            lost_at: begun,
            extend_at: begun,
            limit_at: None,
            loss: Loss::Ended,
            handler_knows: false,
            checkpoint: None,
            last: None,
        };
        state.restart(begun, time);
        Lease { number, source, id, attempt, receipt, lost: CancellationToken::new(), state: Mutex::new(state) }
    }

    /// The lease runs from `begun` on.
    pub fn restart(&self, begun: Instant, time: Duration) {
        let mut state = lock(&self.state);
        if !self.lost.is_cancelled() {
            state.restart(begun, time);
        }
    }

    /// It was extended by a command that was sent at `sent` and answered at `heard`, and ends at `deadline` on the server's
    /// clock: before `time` is over if the queue limits how long a delivery lasts. That shows if the deadline has grown by
    /// less than the time since the last reply. The first extension is taken as one that was not cut.
    pub fn extended(&self, (sent, heard): (Instant, Instant), time: Duration, deadline: i64) {
        let mut state = lock(&self.state);
        if self.lost.is_cancelled() {
            return;
        }
        state.restart(sent, time);
        let full = sent + time;
        let cut = state.last.as_ref().and_then(|last| {
            let passed = sent.saturating_duration_since(last.heard).as_millis();
            let (grown, passed) = (deadline.saturating_sub(last.deadline), i64::try_from(passed).unwrap_or(i64::MAX));
            let by = Duration::from_millis(grown.unsigned_abs());
            let end = if grown < 0 { last.end.checked_sub(by) } else { last.end.checked_add(by) };
            end.filter(|_| grown < passed - CLOCK_ERROR - passed / 1000)
        });
        let end = cut.unwrap_or(full).min(full);
        state.last = Some(Extension { deadline, end, heard });
        state.lost_at -= full - end;
    }

    pub fn extend_at(&self) -> Instant {
        lock(&self.state).extend_at
    }

    pub fn try_again_at(&self, time: Instant) {
        lock(&self.state).extend_at = time;
    }

    /// The handler begins, and may run for this time.
    pub fn limit(&self, limit: Duration) {
        lock(&self.state).limit_at = Some(after(limit));
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

    /// When it, or the time of its handler, is over; never if it is lost already.
    pub fn over_at(&self) -> Option<Instant> {
        let state = lock(&self.state);
        let lost_at = Some(state.lost_at).filter(|_| !self.lost.is_cancelled());
        lost_at.into_iter().chain(state.limit_at).min()
    }

    /// Whether what the handler returned has no effect. A lease that has ended by time may still be acked, as long as nobody
    /// has taken the message and the handler does not know.
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
        self.lost_at = begun + time - (time / 10).min(LONGEST_MARGIN);
        // What was stored while an extension was on its way is sent at once.
        self.extend_at = if self.checkpoint.is_some() { Instant::now() } else { begun + time / 2 };
        self.loss = Loss::Ended;
    }
}

#[cfg(test)]
mod tests {
    use super::{lock, Lease, Loss, Source};
    use crate::queue::{Id, Receipt};
    use crate::worker::Metrics;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    fn queue() -> Arc<Source> {
        Arc::new(Source::new(b"q", None, &Metrics::default()))
    }

    fn delivery(receipt: Receipt) -> (Id, u32, Receipt) {
        (Id::from("m"), 1, receipt)
    }

    #[test]
    fn an_extension_that_the_server_cut_is_shorter() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let lease = Lease::new(&queue(), delivery(Receipt::from("m#1")), begun, 10 * second);
        let lost_at = |lease: &Lease| lock(&lease.state).lost_at;
        // The server's clock is at 1,000,000 now, and no delivery lasts longer than 17 seconds.
        let at = |seconds: u32| (begun + seconds * second, begun + seconds * second);
        lease.extended(at(5), 10 * second, 1_015_000);
        assert_eq!(lost_at(&lease), begun + 14 * second);
        lease.extended(at(10), 10 * second, 1_017_000);
        assert_eq!(lost_at(&lease), begun + 16 * second);
        assert_eq!(lease.extend_at(), begun + 15 * second);
        // A command that took its time tells of a later end than was counted on, and the next one is not cut.
        let slow = Lease::new(&queue(), delivery(Receipt::from("m#2")), begun, 10 * second);
        slow.extended(at(5), 10 * second, 1_015_000);
        slow.extended((begun + 10 * second, begun + 11 * second), 10 * second, 1_020_700);
        assert_eq!(lost_at(&slow), begun + 19 * second);
        slow.extended(at(15), 10 * second, 1_025_000);
        assert_eq!(lost_at(&slow), begun + 24 * second);
    }

    #[test]
    fn a_suspected_loss_is_the_reason_unless_the_lease_can_be_extended() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let lease = Lease::new(&queue(), delivery(Receipt::from("m#1")), now, hour);
        lease.suspect(Loss::Purged, now);
        assert_eq!((lease.loss(), lease.extend_at()), (None, now));
        lease.restart(now, hour);
        lease.suspect(Loss::Purged, now);
        lease.lose(None);
        assert_eq!(lease.loss(), Some(Loss::Purged));
        let other = Lease::new(&queue(), delivery(Receipt::from("m#2")), now, hour);
        other.suspect(Loss::Purged, now);
        other.restart(now, hour);
        other.lose(None);
        assert_eq!(other.loss(), Some(Loss::Ended));
    }

    #[test]
    fn a_lost_lease_stays_lost() {
        let lease = Lease::new(&queue(), delivery(Receipt::from("m#1")), Instant::now(), Duration::from_secs(600));
        assert!(!lease.is_lost());
        lease.restart(Instant::now(), Duration::ZERO);
        assert!(lease.is_lost());
        lease.restart(Instant::now(), Duration::from_secs(600));
        assert!(lease.is_lost());
        // The reply to an extension was on its way.
        lease.lose(Some(Loss::TimeLimit));
        lease.extended((Instant::now(), Instant::now()), Duration::from_secs(600), 1_600_000);
        assert_eq!(lease.loss(), Some(Loss::TimeLimit));
    }
}
