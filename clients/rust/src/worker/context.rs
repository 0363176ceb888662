//! The context of a handler, and its failures.

use super::stop::Stop;
use crate::connect::{after, lock};
use crate::queue::{Id, Meta, Nack, Receipt};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A lease counts as lost before its end by a tenth of it, at most by this time, so that the handler has time to stop.
const LONGEST_MARGIN: Duration = Duration::from_secs(1);

/// The delivery that a handler works on.
#[derive(Clone)]
pub struct Context {
    pub(super) queue: Arc<str>,
    pub(super) id: Id,
    pub(super) attempt: u32,
    pub(super) meta: Option<Meta>,
    pub(super) receipt: Receipt,
    pub(super) lease: Arc<Lease>,
    pub(super) stop: Arc<Stop>,
}

impl Context {
    /// The name of the queue.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// The id of the message: work that must not be done twice can be keyed by it.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// 1 on the first delivery of the message.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The headers of the message, what was stored of earlier work on it, and more, if the pool asks for it:
    /// [`Pool::meta`](crate::Pool::meta).
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Stores how far the work has come, in case it does not end: the next consumer of the message finds these bytes,
    /// up to 65536, in [`Meta::checkpoint`](crate::Meta::checkpoint). The last ones count. They are sent with the next
    /// extension of the lease, at the latest after a quarter of it, or with the failure of the handler.
    pub fn checkpoint(&self, bytes: impl AsRef<[u8]>) {
        self.lease.set_checkpoint(bytes.as_ref().to_vec());
    }

    /// Names this delivery.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Whether the lease is lost, because the message was cancelled or replaced, or the lease could not be extended: another
    /// worker may have the message, or get it soon. Long work should check this and stop; what it returns has no effect.
    ///
    /// Turns true a little before the end of a lease that could not be extended, and within milliseconds if the message was
    /// taken away and the user may subscribe to the queue's notices (`+subscribe`, and the channel `__dq@0__:` with the name
    /// of the queue); else when the lease is extended next.
    #[must_use]
    pub fn lease_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Why the lease is lost; `None` as long as it is not.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        let loss = self.lease.loss();
        if loss.is_some() {
            self.lease.handler_knows.store(true, Ordering::Relaxed);
        }
        loss
    }

    /// Whether the worker is stopping. Work that takes longer than the grace period should stop and fail.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.stop.is_set()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Context");
        fields.field("queue", &self.queue).field("id", &self.id).field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

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
    /// The number of its queue within the pool.
    pub source: usize,
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
    lost: AtomicBool,
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
    pub fn new(source: usize, (id, attempt, receipt): (Id, u32, Receipt), begun: Instant, time: Duration) -> Lease {
        let lease = Lease {
            source,
            id,
            attempt,
            receipt,
            epoch: begun,
            lost_at: AtomicU64::new(0),
            extend_at: AtomicU64::new(0),
            limit_at: AtomicU64::new(u64::MAX),
            lost: AtomicBool::new(false),
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

    /// When the time limit of the handler is over, if it has begun and has one.
    pub fn limit_at(&self) -> Option<Instant> {
        let ms = self.limit_at.load(Ordering::Relaxed);
        (ms != u64::MAX).then(|| self.epoch + Duration::from_millis(ms))
    }

    fn set_checkpoint(&self, bytes: Vec<u8>) {
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
        self.lost.store(true, Ordering::Release);
    }

    pub fn loss(&self) -> Option<Loss> {
        let loss = || Loss::ALL.get(usize::from(self.loss.load(Ordering::Relaxed))).copied().unwrap_or(Loss::Ended);
        self.is_lost().then(loss)
    }

    /// Whether what the handler returned has no effect. A lease that has ended by time may still be acked, as long as nobody
    /// has taken the message and the handler does not know.
    pub fn is_discarded(&self) -> bool {
        self.loss().is_some_and(|loss| loss != Loss::Ended || self.handler_knows.load(Ordering::Relaxed))
    }

    /// A lost lease stays lost: the handler may have stopped already.
    pub fn is_lost(&self) -> bool {
        if self.lost.load(Ordering::Acquire) {
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

/// Why a handler did not complete a message, and what happens to the message.
///
/// Any error converts into a failure that is retried, so `?` works in a handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Retry(Option<Duration>),
    Reject,
    GiveBack,
}

impl Failure {
    /// The message is delivered again after the queue's backoff, or becomes dead if its retries are spent. The text is
    /// kept with the message.
    pub fn retry(text: impl fmt::Display) -> Failure {
        Failure { text: text.to_string(), kind: Kind::Retry(None) }
    }

    /// The message is delivered again after this time.
    pub fn retry_after(delay: Duration, text: impl fmt::Display) -> Failure {
        Failure { text: text.to_string(), kind: Kind::Retry(Some(delay)) }
    }

    /// The message must not be tried again: it becomes dead.
    pub fn reject(text: impl fmt::Display) -> Failure {
        Failure { text: text.to_string(), kind: Kind::Reject }
    }

    /// The work was not begun, for example because the worker is stopping: the delivery does not count as an attempt.
    #[must_use]
    pub fn give_back() -> Failure {
        Failure { text: String::new(), kind: Kind::GiveBack }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_give_back(&self) -> bool {
        self.kind == Kind::GiveBack
    }

    pub(super) fn nack(&self) -> Nack {
        let nack = match self.kind {
            Kind::Retry(None) => Nack::retry(),
            Kind::Retry(Some(delay)) => Nack::retry().after(delay),
            Kind::Reject => Nack::reject(),
            Kind::GiveBack => return Nack::give_back(),
        };
        nack.error(self.text.as_str())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::retry(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Lease, Loss, Ordering};
    use crate::queue::{Id, Receipt};
    use std::time::{Duration, Instant};

    fn delivery(receipt: Receipt) -> (Id, u32, Receipt) {
        (Id::from("m"), 1, receipt)
    }

    #[test]
    fn an_extension_that_the_server_cut_is_shorter() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let lease = Lease::new(0, delivery(Receipt::from_bytes(b"m#1".to_vec())), begun, 10 * second);
        let lost_at = |lease: &Lease| lease.lost_at.load(Ordering::Relaxed);
        // The server's clock is at 1,000,000 now, and no delivery lasts longer than 17 seconds.
        let at = |seconds: u32| (begun + seconds * second, begun + seconds * second);
        lease.extended(at(5), 10 * second, 1_015_000);
        assert_eq!(lost_at(&lease), 14_000);
        lease.extended(at(10), 10 * second, 1_017_000);
        assert_eq!(lost_at(&lease), 16_000);
        assert_eq!(lease.extend_at(), begun + 15 * second);
        // A command that took its time tells of a later end than was counted on, and the next one is not cut.
        let slow = Lease::new(0, delivery(Receipt::from_bytes(b"m#2".to_vec())), begun, 10 * second);
        slow.extended(at(5), 10 * second, 1_015_000);
        slow.extended((begun + 10 * second, begun + 11 * second), 10 * second, 1_020_700);
        assert_eq!(lost_at(&slow), 19_000);
        slow.extended(at(15), 10 * second, 1_025_000);
        assert_eq!(lost_at(&slow), 24_000);
    }

    #[test]
    fn a_suspected_loss_is_the_reason_unless_the_lease_can_be_extended() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let lease = Lease::new(0, delivery(Receipt::from_bytes(b"m#1".to_vec())), now, hour);
        lease.suspect(Loss::Purged, now);
        assert_eq!((lease.loss(), lease.extend_at()), (None, now));
        lease.restart(now, hour);
        lease.suspect(Loss::Purged, now);
        lease.lose(None);
        assert_eq!(lease.loss(), Some(Loss::Purged));
        let other = Lease::new(0, delivery(Receipt::from_bytes(b"m#2".to_vec())), now, hour);
        other.suspect(Loss::Purged, now);
        other.restart(now, hour);
        other.lose(None);
        assert_eq!(other.loss(), Some(Loss::Ended));
        assert_eq!(Loss::from_reason("buried"), Loss::Buried);
        assert_eq!(Loss::from_reason("something new"), Loss::Ended);
    }

    #[test]
    fn a_lost_lease_stays_lost() {
        let lease = Lease::new(0, delivery(Receipt::from("m#1")), Instant::now(), Duration::from_secs(600));
        assert!(!lease.is_lost());
        lease.restart(Instant::now(), Duration::ZERO);
        assert!(lease.is_lost());
        lease.restart(Instant::now(), Duration::from_secs(600));
        assert!(lease.is_lost());
    }

    #[test]
    fn any_error_is_a_failure_that_is_retried() {
        let failure: Failure = "x".parse::<u8>().unwrap_err().into();
        assert_eq!(failure, Failure::retry("invalid digit found in string"));
    }
}
