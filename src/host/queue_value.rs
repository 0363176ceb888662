//! The value of a key: a queue, the hint with which the timer finds it, and the tally in which it is counted.

use std::sync::{Arc, Mutex, PoisonError};

use lazy_static::lazy_static;

use super::floor::raise_floor;
use super::gauges::{self, Share, TallyEntry};
use super::{authority, punctuality};
use crate::module_api::alarms::BUG;
use crate::module_api::ctx::{now_ms, Ctx, Name};
use crate::module_api::guard::guard;
use crate::module_api::key::Value;
use crate::module_api::log::{log, Level};
use crate::schedule::agenda::{Armed, Taken};
use crate::schedule::with_schedule;
use dq_queue::forward::Source;
use dq_queue::settings::Settings;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::wire::Loader;
use dq_queue::Queue;

/// The value of a key: a queue, and what the host keeps with it.
pub struct QueueValue {
    /// The queue.
    pub queue: Queue,
    armed: Option<Armed>,
    /// The tally in which the queue is counted; `None` once it is being freed.
    counted: Option<TallyEntry>,
}

// This is a size class of the server's allocator; the next one is 384 bytes. (In tests the hint of a queue has one more
// field.)
#[cfg(not(test))]
const _: () = assert!(size_of::<QueueValue>() <= 320);

lazy_static! {
    /// The settings of the queue that was created or loaded last. Most queues have the same settings and share them.
    static ref COMMON_SETTINGS: Mutex<Arc<Settings>> = Mutex::default();
}

impl QueueValue {
    /// Wraps a queue that was created on this server.
    pub fn new(queue: Queue) -> Box<QueueValue> {
        QueueValue::counted_in(TallyEntry::nowhere(&queue), queue)
    }

    /// Wraps a queue that was loaded into a database or copied to one.
    pub fn loaded(queue: Queue, db: i32) -> Box<QueueValue> {
        QueueValue::counted_in(TallyEntry::loaded(&queue, db), queue)
    }

    /// Stands for a queue that was loaded into a database but could not be rebuilt after a bug. It has settings that no
    /// queue can have, so it can never be rebuilt itself, and is saved as what it is.
    pub fn unsound(db: i32) -> Box<QueueValue> {
        let impossible = Settings { lease: DurationMs::ZERO, ..Settings::DEFAULT };
        let mut held = QueueValue::loaded(Queue::new(impossible), db);
        held.set_unsound();
        held
    }

    fn counted_in(tally: TallyEntry, mut queue: Queue) -> Box<QueueValue> {
        queue.share_settings(&mut COMMON_SETTINGS.lock().unwrap_or_else(PoisonError::into_inner));
        raise_floor(queue.last_given());
        Box::new(QueueValue { queue, armed: None, counted: Some(tally) })
    }

    /// Wraps a queue that was created by an operation, and adds what it has done so far to the totals.
    pub fn made(queue: Queue) -> Box<QueueValue> {
        gauges::count(&queue);
        QueueValue::new(queue)
    }

    /// Removes the queue from the sums and drops its hint, because it is about to be freed.
    pub fn withdraw(&mut self) {
        if let Some(counted) = self.counted.take() {
            counted.leave(&self.queue);
        }
        self.armed = None;
    }

    /// Records that the queue may be half changed. It is counted apart, and refused when its key is opened.
    fn set_unsound(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.set_unsound(&self.queue);
        }
    }

    /// The queue was unlinked from its key. It is either freed at once or gets another key.
    pub fn unlink(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.unlink(&self.queue);
        }
    }

    /// Rebuilds a queue that may be half changed from its messages. Returns `None` if they contradict each other.
    pub fn rebuilt(&self) -> Option<Queue> {
        guard("a rebuild", None, || {
            let mut loader = Loader::default();
            self.queue.save(|piece| loader.take(piece)).ok()?;
            loader.finish(UnixMs::new(now_ms())).ok().filter(|queue| queue.check().is_ok())
        })
    }

    /// Returns whether the hint that was taken out belonged to this queue.
    pub fn had(&self, taken: &Taken) -> bool {
        self.armed.as_ref().is_some_and(|armed| taken.was(armed))
    }

    /// Ensures that the timer looks at this queue, which is at `name`, when it has something to do.
    #[inline]
    pub fn arm(&mut self, ctx: Ctx, db: i32, name: Name<'_>) {
        if self.queue.forwards() {
            punctuality::require_to_forward(ctx);
        }
        let Some(at) = self.next_look(name) else { return };
        if self.armed.as_ref().is_some_and(|armed| armed.suffices(at, db, name.bytes())) {
            return;
        }
        with_schedule(|schedule| {
            if schedule.agenda.arm(&mut self.armed, at, db, name.bytes()) {
                schedule.rearm(&ctx, UnixMs::new(ctx.now_ms()));
            }
        });
    }

    /// The next time at which the timer has something to do for this queue: a message changes its state, or, on the
    /// server that decides about the queue, it drops a dead or done message, ends a failed run or forwards a message.
    #[inline]
    fn next_look(&self, name: Name<'_>) -> Option<UnixMs> {
        let queue = &self.queue;
        let wake = queue.next_wake();
        if queue.decides_nothing() {
            return wake.map(|wake| self.by_clock(wake, name));
        }
        let mut decided = earlier(queue.next_drop(), queue.first_failed_run());
        let mut retry = None;
        for source in Source::ALL {
            let first = if queue.failing(source).is_some() { &mut retry } else { &mut decided };
            *first = earlier(*first, queue.next_forward(source));
        }
        let is_ours = (decided.is_some() || retry.is_some()) && authority::decides_about(name);
        if !is_ours {
            return wake.map(|wake| self.by_clock(wake, name));
        }
        earlier(earlier(wake, decided).map(|at| self.by_clock(at, name)), retry)
    }

    /// Converts a time of the queue to the server's clock: what the queue's own time has reached is due at once, even
    /// if the clock has been set back since.
    #[inline]
    fn by_clock(&self, at: UnixMs, name: Name<'_>) -> UnixMs {
        if at > self.queue.own_time(UnixMs::EPOCH) {
            return at;
        }
        let now = UnixMs::new(now_ms());
        // A server that does not decide leaves the queue's own time as it is.
        if now < at && authority::decides_about(name) {
            now
        } else {
            at
        }
    }
}

/// The earlier of two times, if there is any.
#[inline]
fn earlier(one: Option<UnixMs>, other: Option<UnixMs>) -> Option<UnixMs> {
    one.into_iter().chain(other).min()
}

/// Debug builds check the invariants of a queue after each command if it has at most this many messages. Larger queues
/// would take too long.
const CHECKED_MAX: u64 = 64;

impl Value for QueueValue {
    type Opened = Share;

    // Every command takes a share twice. Without inlining it would be copied each time.
    #[inline(always)]
    fn opened(&self) -> Share {
        Share::from_queue(&self.queue)
    }

    #[inline]
    fn closed(&mut self, opened: &Share, db: i32) {
        if cfg!(debug_assertions) && !std::thread::panicking() && self.queue.counts().total() <= CHECKED_MAX {
            if let Err(why) = self.queue.check() {
                log(Level::Warning, &format!("{why}, {BUG}"));
            }
        }
        if let Some(counted) = &mut self.counted {
            counted.publish(&self.queue, opened);
            counted.move_to(&self.queue, db);
        }
    }

    #[inline]
    fn is_sound(&self) -> bool {
        self.counted.as_ref().is_none_or(|counted| !counted.is_unsound())
    }

    #[cold]
    fn abandoned(&mut self, name: Name<'_>) {
        self.set_unsound();
        let name = String::from_utf8_lossy(name.bytes());
        log(
            Level::Warning,
            &format!("queue {name} may be half changed by {BUG}: it is not served until it is reloaded"),
        );
    }
}

impl Drop for QueueValue {
    fn drop(&mut self) {
        self.withdraw();
    }
}
