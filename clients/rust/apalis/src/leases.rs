//! The leases of the tasks that a worker holds, extended by a thread, so that a task which blocks its runtime keeps its lease.

use apalis_core::task::Task;
use dq_client::{Blocking, Client, Error, Queue, Raw, Receipt};
use futures_channel::oneshot;
use std::collections::HashMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How many leases one command extends.
const BATCH: usize = 1000;
/// A shorter lease could not be kept.
const SHORTEST: Duration = Duration::from_millis(100);

type Receipts = HashMap<Receipt, Kept>;

/// The leases of one worker. Their thread ends when this is dropped.
pub(crate) struct Leases {
    queue: dq_client::both::Queue<Raw, Blocking>,
    time: Duration,
    kept: Mutex<Receipts>,
    /// Dropped with this, which ends the thread.
    _alive: mpsc::Sender<()>,
}

/// A lease that is extended.
struct Kept {
    /// When it ends by the clock of this process.
    end: Instant,
    /// Dropped if it is lost.
    lost: oneshot::Sender<()>,
}

impl Leases {
    /// Starts the thread that keeps the leases of a worker.
    pub fn keep(client: &Client, queue: &Queue<Raw>, time: Duration) -> Result<Arc<Leases>, Error> {
        let (alive, ended) = mpsc::channel();
        let (queue, time) = (client.face::<Blocking>().queue(queue.key()), time.max(SHORTEST));
        let leases = Arc::new(Leases { queue, time, kept: Mutex::default(), _alive: alive });
        let weak = Arc::downgrade(&leases);
        let run = move || {
            while ended.recv_timeout(time / 3) == Err(RecvTimeoutError::Timeout) {
                weak.upgrade().iter().for_each(|leases| leases.extend());
            }
        };
        thread::Builder::new().name("dq-leases".to_owned()).spawn(run)?;
        Ok(leases)
    }

    /// How long each lease is.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Extends the lease of a delivery from now on, until what this returns is dropped.
    pub fn hold(self: &Arc<Leases>, receipt: Receipt) -> Held {
        let (sender, lost) = oneshot::channel();
        lock(&self.kept).insert(receipt.clone(), Kept { end: Instant::now() + self.time, lost: sender });
        Arc::new(Hold { receipt, leases: Arc::downgrade(self), lost: Mutex::new(Some(lost)) })
    }

    fn extend(&self) {
        let receipts: Vec<Receipt> = lock(&self.kept).keys().cloned().collect();
        for batch in receipts.chunks(BATCH) {
            let begun = Instant::now();
            let ends = self.queue.extend_all(batch, Some(self.time));
            if let Err(error) = &ends {
                tracing::warn!(queue = self.queue.name(), %error, "leases cannot be extended");
            }
            let (ends, now, mut kept) = (ends.ok(), Instant::now(), lock(&self.kept));
            for (number, receipt) in batch.iter().enumerate() {
                let Some(lease) = kept.get_mut(receipt) else { continue };
                let is_extended = ends.as_ref().map(|ends| ends.get(number).is_some_and(Option::is_some));
                match is_extended {
                    Some(true) => lease.end = begun + self.time,
                    None if lease.end > now => {}
                    Some(false) | None => drop(kept.remove(receipt).map(|lease| lease.lost)),
                }
            }
        }
    }
}

/// A delivery whose lease is kept as long as a clone of this is there.
pub(crate) type Held = Arc<Hold>;

pub(crate) struct Hold {
    pub receipt: Receipt,
    leases: Weak<Leases>,
    lost: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Hold {
    /// Ends when the lease is lost. `None` if this was asked for before.
    pub fn lost(&self) -> Option<oneshot::Receiver<()>> {
        lock(&self.lost).take()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(leases) = self.leases.upgrade() {
            lock(&leases.kept).remove(&self.receipt);
        }
    }
}

/// The delivery that a task came with; `None` if it did not come from a queue of dq.
pub(crate) fn held<A>(task: &Task<A>) -> Option<Held> {
    task.data().get::<Held>().cloned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
