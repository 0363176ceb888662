//! The lease of a delivery, by the clock of this process, and why it is lost.

use super::pool::Source;
use crate::connect::{after, lock};
use crate::queue::{Id, Receipt};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A lease counts as lost before its end by a tenth of it, at most by this time, so that the handler has time to stop.
const LONGEST_MARGIN: Duration = Duration::from_secs(1);

/// Why a lease is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum Loss {
    /// The lease has ended, or it could not be extended, or the reason is not known.
    Ended,
    /// The message was cancelled.
    Cancelled,
    /// The message was replaced by another one.
    Replaced,
    /// The message was buried.
    Buried,
    /// The message was purged.
    Purged,
    /// The message was released, for another worker.
    Released,
    /// The handler runs for longer than [`Pool::time_limit`](crate::Pool::time_limit), and the message was given back as failed.
    TimeLimit,
    /// The worker stops, the grace period is over, and the message was given back without counting as an attempt.
    Stopping,
}

impl Loss {
    const ALL: [Loss; 8] = [
        Loss::Ended,
        Loss::Cancelled,
        Loss::Replaced,
        Loss::Buried,
        Loss::Purged,
        Loss::Released,
        Loss::TimeLimit,
        Loss::Stopping,
    ];

    /// The word for it in the notices of the server; those that no notice tells of are `lease`, `time limit` and `stopping`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Loss::Ended => "lease",
            Loss::Cancelled => "cancelled",
            Loss::Replaced => "replaced",
            Loss::Buried => "buried",
            Loss::Purged => "purged",
            Loss::Released => "released",
            Loss::TimeLimit => "time limit",
            Loss::Stopping => "stopping",
        }
    }

    pub(super) fn from_reason(reason: &str) -> Loss {
        Loss::ALL.into_iter().find(|loss| loss.as_str() == reason).unwrap_or(Loss::Ended)
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
    /// The instant from which the times below count.
    epoch: Instant,
    /// When handlers are told that it is lost, in ms.
    lost_at: AtomicU64,
    extend_at: AtomicU64,
    /// When the time limit of the handler is over, in ms; `u64::MAX` without one, and before the handler has begun.
    limit_at: AtomicU64,
    lost: CancellationToken,
    /// Whether the handler has seen that it is lost.
    handler_knows: AtomicBool,
    /// What the handler has stored of its work, until it is sent.
    checkpoint: Mutex<Option<Vec<u8>>>,
    /// A [`Loss`]: why it is lost, if it is.
    loss: AtomicU8,
    last: Mutex<Option<Extension>>,
}

/// What the last extension has told.
struct Extension {
    /// The end of the lease by the clock of the server, in Unix ms.
    deadline: i64,
    /// The same by our clock, and when the reply was there, in ms since the epoch.
    end: i64,
    heard: i64,
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
        let lease = Lease {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            source: Arc::clone(source),
            id,
            attempt,
            receipt,
            epoch: begun,
            lost_at: AtomicU64::new(0),
            extend_at: AtomicU64::new(0),
            limit_at: AtomicU64::new(u64::MAX),
            lost: CancellationToken::new(),
            handler_knows: AtomicBool::new(false),
            checkpoint: Mutex::default(),
            loss: AtomicU8::new(Loss::Ended as u8),
            last: Mutex::default(),
        };
        lease.restart(begun, time);
        lease
    }

    /// The lease runs from `begun` on.
    pub fn restart(&self, begun: Instant, time: Duration) {
        let margin = (time / 10).min(LONGEST_MARGIN);
        self.lost_at.store(self.ms(begun + time - margin), Ordering::Relaxed);
        self.extend_at.store(self.ms(begun + time / 2), Ordering::Relaxed);
        self.loss.store(Loss::Ended as u8, Ordering::Relaxed);
        if self.has_checkpoint() {
            // It was stored while the extension was on its way.
            self.try_again_at(Instant::now());
        }
    }

    /// It was extended by a command that was sent at `sent` and answered at `heard`, and ends at `deadline` on the server's
    /// clock: before `time` is over if the queue limits how long a delivery lasts. That shows if the deadline has grown by
    /// less than the time since the last reply. The first extension is taken as one that was not cut.
    pub fn extended(&self, (sent, heard): (Instant, Instant), time: Duration, deadline: i64) {
        self.restart(sent, time);
        let ms = |at: Instant| i64::try_from(self.ms(at)).unwrap_or(i64::MAX);
        let full = ms(sent + time);
        let mut last = lock(&self.last);
        let cut = last.as_ref().and_then(|last| {
            let (grown, passed) = (deadline.saturating_sub(last.deadline), ms(sent) - last.heard);
            (grown < passed - CLOCK_ERROR - passed / 1000).then(|| last.end.saturating_add(grown))
        });
        let end = cut.unwrap_or(full).min(full);
        *last = Some(Extension { deadline, end, heard: ms(heard) });
        let lost_at = self.lost_at.load(Ordering::Relaxed);
        self.lost_at.store(lost_at.saturating_sub((full - end).unsigned_abs()), Ordering::Relaxed);
    }

    pub fn extend_at(&self) -> Instant {
        self.epoch + Duration::from_millis(self.extend_at.load(Ordering::Relaxed))
    }

    pub fn try_again_at(&self, time: Instant) {
        self.extend_at.store(self.ms(time), Ordering::Relaxed);
    }

    /// The handler begins, and may run for this time.
    pub fn limit(&self, limit: Duration) {
        self.limit_at.store(self.ms(after(limit)), Ordering::Relaxed);
    }

    /// Whether the handler has run for longer than it may.
    pub fn is_over_limit(&self, now: Instant) -> bool {
        self.ms(now) >= self.limit_at.load(Ordering::Relaxed)
    }

    pub fn set_checkpoint(&self, bytes: Vec<u8>) {
        *lock(&self.checkpoint) = Some(bytes);
        self.try_again_at(Instant::now());
    }

    pub fn has_checkpoint(&self) -> bool {
        lock(&self.checkpoint).is_some()
    }

    /// The checkpoint that is to be sent.
    pub fn take_checkpoint(&self) -> Option<Vec<u8>> {
        lock(&self.checkpoint).take()
    }

    /// A checkpoint did not arrive, and is to be sent again unless there is a newer one.
    pub fn keep_checkpoint(&self, bytes: Option<Vec<u8>>) {
        let mut checkpoint = lock(&self.checkpoint);
        if checkpoint.is_none() {
            *checkpoint = bytes;
        }
    }

    /// It may be lost for this reason: an extension is to find out.
    pub fn suspect(&self, loss: Loss, now: Instant) {
        self.loss.store(loss as u8, Ordering::Relaxed);
        self.try_again_at(now);
    }

    /// It is lost, for this reason or the one that was suspected.
    pub fn lose(&self, loss: Option<Loss>) {
        if let Some(loss) = loss {
            self.loss.store(loss as u8, Ordering::Relaxed);
        }
        self.lost.cancel();
    }

    pub fn loss(&self) -> Option<Loss> {
        let loss = || Loss::ALL.get(usize::from(self.loss.load(Ordering::Relaxed))).copied().unwrap_or(Loss::Ended);
        self.is_lost().then(loss)
    }

    /// The same, of which the handler knows from now on.
    pub fn loss_for_handler(&self) -> Option<Loss> {
        let loss = self.loss();
        if loss.is_some() {
            self.handler_knows.store(true, Ordering::Relaxed);
        }
        loss
    }

    /// Waits until it is lost.
    pub async fn until_lost(&self) {
        self.lost.cancelled().await;
    }

    /// When it, or the time of its handler, is over; never if it is lost already.
    pub fn over_at(&self) -> Option<Instant> {
        let lost_at = if self.lost.is_cancelled() { u64::MAX } else { self.lost_at.load(Ordering::Relaxed) };
        let ms = lost_at.min(self.limit_at.load(Ordering::Relaxed));
        (ms != u64::MAX).then(|| self.epoch + Duration::from_millis(ms))
    }

    /// Whether what the handler returned has no effect. A lease that has ended by time may still be acked, as long as nobody
    /// has taken the message and the handler does not know.
    pub fn is_discarded(&self) -> bool {
        self.loss().is_some_and(|loss| loss != Loss::Ended || self.handler_knows.load(Ordering::Relaxed))
    }

    /// A lost lease stays lost: the handler may have stopped already.
    pub fn is_lost(&self) -> bool {
        if self.lost.is_cancelled() {
            return true;
        }
        let is_over = self.ms(Instant::now()) >= self.lost_at.load(Ordering::Relaxed);
        if is_over {
            self.lose(None);
        }
        is_over
    }

    fn ms(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lease, Loss, Ordering, Source};
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
        let lost_at = |lease: &Lease| lease.lost_at.load(Ordering::Relaxed);
        // The server's clock is at 1,000,000 now, and no delivery lasts longer than 17 seconds.
        let at = |seconds: u32| (begun + seconds * second, begun + seconds * second);
        lease.extended(at(5), 10 * second, 1_015_000);
        assert_eq!(lost_at(&lease), 14_000);
        lease.extended(at(10), 10 * second, 1_017_000);
        assert_eq!(lost_at(&lease), 16_000);
        assert_eq!(lease.extend_at(), begun + 15 * second);
        // A command that took its time tells of a later end than was counted on, and the next one is not cut.
        let slow = Lease::new(&queue(), delivery(Receipt::from("m#2")), begun, 10 * second);
        slow.extended(at(5), 10 * second, 1_015_000);
        slow.extended((begun + 10 * second, begun + 11 * second), 10 * second, 1_020_700);
        assert_eq!(lost_at(&slow), 19_000);
        slow.extended(at(15), 10 * second, 1_025_000);
        assert_eq!(lost_at(&slow), 24_000);
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
        assert_eq!(Loss::from_reason("buried"), Loss::Buried);
        assert_eq!(Loss::from_reason("something new"), Loss::Ended);
    }

    #[test]
    fn a_lost_lease_stays_lost() {
        let lease = Lease::new(&queue(), delivery(Receipt::from("m#1")), Instant::now(), Duration::from_secs(600));
        assert!(!lease.is_lost());
        lease.restart(Instant::now(), Duration::ZERO);
        assert!(lease.is_lost());
        lease.restart(Instant::now(), Duration::from_secs(600));
        assert!(lease.is_lost());
    }
}
