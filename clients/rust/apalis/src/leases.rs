//! The leases of the tasks that a worker holds, extended by a thread, so that a task which blocks its runtime keeps its
//! lease.
//!
//! A lease ends when the server says so, however late its reply is, and whatever the clock of this machine shows. If
//! the server cannot be reached, tasks learn in time that their leases are over.

use crate::log::Event;
use apalis_core::task::Task;
use dq_client::{Error, Queue, Raw, Receipt};
use futures_channel::oneshot;
use futures_util::FutureExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;
use tokio::time::sleep_until;

/// How many leases one command extends.
const BATCH: usize = 1000;
/// A shorter lease could not be kept.
const SHORTEST: Duration = Duration::from_millis(100);
/// The lease that is asked for if the user may not ask for the time of the server: the default of the server.
const LEASE: Duration = Duration::from_secs(30);
/// By what part of a time two clocks may differ after it.
const DRIFT: u32 = 1000;
/// How long the thread sleeps at most.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);
/// The pause before an extension that failed is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// The leases of one worker. Their thread ends when this is dropped.
pub(crate) struct Leases {
    queue: Queue<Raw>,
    /// What pops and extensions ask for; `None` for the lease of the message, or else of the queue.
    asked: Option<Duration>,
    /// Whether the user may ask for the time of the server.
    may_ask_time: bool,
    kept: Mutex<HashMap<Receipt, Kept>>,
    /// Wakes the thread, because there is a lease that it does not know, or none any more.
    changed: Arc<Notify>,
}

/// A lease that is extended.
struct Kept {
    extend_at: Instant,
    /// When it ends by the clock of this process.
    end: Instant,
    /// Dropped if it is lost.
    _lost: oneshot::Sender<()>,
}

impl Kept {
    /// It ends at this time, as was known at `now`.
    fn restart(&mut self, now: Instant, end: Instant) {
        (self.extend_at, self.end) = (now + end.saturating_duration_since(now) / 3, end);
    }
}

impl Leases {
    /// Starts the thread that keeps the leases of a worker, which ask for `asked`.
    pub async fn keep(queue: &Queue<Raw>, asked: Option<Duration>) -> Result<Arc<Leases>, Error> {
        let may_ask_time = match queue.server_time().await {
            Ok(_) => true,
            Err(Error::NoPermission(_)) => false,
            Err(error) => return Err(error),
        };
        let asked = asked.map(|time| time.max(SHORTEST)).or((!may_ask_time).then_some(LEASE));
        let (queue, changed) = (queue.clone(), Arc::new(Notify::new()));
        let leases = Arc::new(Leases { queue, asked, may_ask_time, kept: Mutex::default(), changed });
        let weak = Arc::downgrade(&leases);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        thread::Builder::new().name("dq-leases".to_owned()).spawn(move || runtime.block_on(run(&weak)))?;
        Ok(leases)
    }

    /// The lease that a pop has to ask for.
    pub fn asked(&self) -> Option<Duration> {
        self.asked
    }

    /// When leases end, by the clock of this process, that were begun or extended by a command which was sent at
    /// `sent`.
    pub async fn ends(&self, sent: Instant, deadlines: &[Option<SystemTime>]) -> Result<Vec<Option<Instant>>, Error> {
        let asked = self.asked.unwrap_or(LEASE);
        if !self.may_ask_time {
            let end = |deadline: &Option<SystemTime>| deadline.map(|_| sent + asked - asked / DRIFT);
            return Ok(deadlines.iter().map(end).collect());
        }
        // Sent later than that time, so no lease ends earlier than this says.
        let begun = Instant::now();
        let now = self.queue.server_time().await?;
        let end = |deadline: &Option<SystemTime>| {
            let left = deadline.as_ref()?.duration_since(now).unwrap_or_default();
            Some(begun + left - left / DRIFT)
        };
        Ok(deadlines.iter().map(end).collect())
    }

    /// Extends the lease of a delivery, which ends at `end`, until what this returns is dropped. `None` if it has
    /// ended.
    pub fn hold(self: &Arc<Leases>, receipt: Receipt, end: Instant) -> Option<LeasedDelivery> {
        let now = Instant::now();
        if end <= now {
            return None;
        }
        let (sender, lost) = oneshot::channel();
        let mut kept = Kept { extend_at: now, end, _lost: sender };
        kept.restart(now, end);
        lock(&self.kept).insert(receipt.clone(), kept);
        self.changed.notify_one();
        Some(Arc::new(Leased { receipt, leases: Arc::downgrade(self), lost: Mutex::new(Some(lost)) }))
    }

    /// Notifies the tasks whose leases have ended. Returns when the next one is to be extended, and when the next one
    /// ends.
    fn look(&self) -> (Instant, Instant) {
        let (now, mut kept) = (Instant::now(), lock(&self.kept));
        kept.retain(|_, lease| lease.end > now);
        let latest = now + LONGEST_SLEEP;
        let next = kept.values().map(|lease| lease.extend_at).fold(latest, Instant::min);
        (next, kept.values().map(|lease| lease.end).fold(latest, Instant::min))
    }

    /// Extends the leases for which it is time, and those for which it soon is.
    async fn extend(self: Arc<Leases>) {
        let now = Instant::now();
        let is_due = |lease: &Kept| lease.extend_at <= now + lease.end.saturating_duration_since(now) / 4;
        let mut due = Vec::new();
        for (receipt, lease) in lock(&self.kept).iter() {
            if is_due(lease) {
                due.push(receipt.clone());
            }
        }
        for batch in due.chunks(BATCH) {
            let sent = Instant::now();
            let ends = match self.queue.extend_all(batch, self.asked).await {
                Ok(deadlines) => self.ends(sent, &deadlines).await,
                Err(error) => Err(error),
            };
            let (now, mut kept) = (Instant::now(), lock(&self.kept));
            for (number, receipt) in batch.iter().enumerate() {
                let Some(lease) = kept.get_mut(receipt) else { continue };
                match ends.as_ref().map(|ends| ends.get(number).copied().flatten()) {
                    Ok(Some(end)) => lease.restart(now, end),
                    Ok(None) => drop(kept.remove(receipt)),
                    Err(_) => lease.extend_at = now + PAUSE,
                }
            }
            drop(kept);
            if let Err(error) = ends {
                // Elsewhere, because a subscriber of the program may block.
                let queue = self.queue.name().clone();
                tokio::task::spawn_blocking(move || Event::NotExtended { queue: &queue, error: &error }.log());
            }
        }
    }
}

/// Keeps leases until nobody needs them. Tasks learn of lost leases while an extension is on its way.
async fn run(leases: &Weak<Leases>) {
    let mut extending = futures_util::future::pending().boxed();
    let mut is_extending = false;
    loop {
        let Some(strong) = leases.upgrade() else { return };
        let ((extend_at, end), changed) = (strong.look(), Arc::clone(&strong.changed));
        if !is_extending && extend_at <= Instant::now() {
            (extending, is_extending) = (strong.extend().boxed(), true);
        } else {
            drop(strong);
        }
        let next = if is_extending { end } else { end.min(extend_at) };
        tokio::select! {
            () = &mut extending => (extending, is_extending) = (futures_util::future::pending().boxed(), false),
            () = changed.notified() => {}
            () = sleep_until(next.into()) => {}
        }
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// A delivery whose lease is extended until all clones of this are dropped.
pub(crate) type LeasedDelivery = Arc<Leased>;

pub(crate) struct Leased {
    pub receipt: Receipt,
    leases: Weak<Leases>,
    lost: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Leased {
    /// Ends when the lease is lost. `None` if this was asked for before.
    pub fn lost(&self) -> Option<oneshot::Receiver<()>> {
        lock(&self.lost).take()
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if let Some(leases) = self.leases.upgrade() {
            lock(&leases.kept).remove(&self.receipt);
        }
    }
}

/// The delivery that a task came with; `None` if it did not come from a queue of dq.
pub(crate) fn delivery<A>(task: &Task<A>) -> Option<LeasedDelivery> {
    task.data().get::<LeasedDelivery>().cloned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
