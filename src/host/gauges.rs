//! What all queues of this server hold and have done together: what `INFO dq` shows.
//!
//! Each database has a [`Tally`] of the queues in it, and a queue knows the one that it is counted in. The main thread
//! publishes a queue's share by difference whenever its key was open; it is taken back as the queue is freed. That
//! may happen on a background thread, so what goes is counted apart from what comes.
//!
//! The server frees a whole database at its leisure. So when one is emptied, its tally is not corrected but put aside,
//! with the queues that are still counted in it: they are gone from that moment on. A replica that loads its master's
//! data beside its own counts what it loads in tallies of their own, and changes over when the server does.
//!
//! What happened is counted from the start of the server, and only grows.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis_module::raw;

use crate::module_api::ctx::Ctx;
use crate::module_api::guard::guard;
use crate::queue::{Counts, Queue, Totals};
use crate::schedule::walk;

/// In the order of [`Totals::NAMES`]. Changed by the main thread alone.
static TOTALS: [AtomicU64; Totals::NAMES.len()] = [const { AtomicU64::new(0) }; Totals::NAMES.len()];

/// The tallies that count. Locked for a moment, by the main thread alone.
static TALLIES: Mutex<Tallies> = Mutex::new(Tallies { here: BTreeMap::new(), loaded: None });

/// The database of queues that are on their way to one.
const NOWHERE: i32 = -1;

type ByDatabase = BTreeMap<i32, Arc<Tally>>;

struct Tallies {
    here: ByDatabase,
    /// Those of the data that a replica loads beside its own.
    loaded: Option<ByDatabase>,
}

fn tallies() -> MutexGuard<'static, Tallies> {
    TALLIES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_database(tallies: &mut ByDatabase, db: i32) -> Arc<Tally> {
    Arc::clone(tallies.entry(db).or_insert_with(|| Arc::new(Tally::of(db))))
}

/// The queues of a database, and what they hold.
#[derive(Debug)]
pub struct Tally {
    /// Changes with `SWAPDB`.
    db: AtomicI32,
    /// What came. Changed by the main thread alone.
    came: Sums,
    /// What went. Changed by whichever thread frees a queue.
    went: Sums,
}

/// Queues, and what they hold in the order of [`numbers`]. Only the difference of two means something, so they may wrap.
#[derive(Debug)]
struct Sums {
    queues: AtomicU64,
    counts: [AtomicU64; 5],
}

impl Sums {
    const fn none() -> Sums {
        Sums { queues: AtomicU64::new(0), counts: [const { AtomicU64::new(0) }; 5] }
    }
}

impl Tally {
    const fn of(db: i32) -> Tally {
        Tally { db: AtomicI32::new(db), came: Sums::none(), went: Sums::none() }
    }

    /// Counts a queue. What it did elsewhere, or before, is not counted here.
    fn enter(&self, queue: &Queue) {
        add(std::slice::from_ref(&self.came.queues), [1], [0]);
        add(&self.came.counts, numbers(&queue.counts()), [0; 5]);
    }

    /// Counts a queue no more that was counted, on whatever thread.
    fn leave(&self, queue: &Queue) {
        self.went.queues.fetch_add(1, Relaxed);
        for (sum, went) in self.went.counts.iter().zip(numbers(&queue.counts())) {
            sum.fetch_add(went, Relaxed);
        }
    }
}

/// Where a queue is counted. Whoever drops the queue calls [`Home::leave`] first.
#[derive(Debug)]
pub struct Home(Arc<Tally>);

impl Home {
    /// Counts a queue that is about to come to a database of which nobody has told yet.
    pub fn nowhere(queue: &Queue) -> Home {
        Home::enter(of_database(&mut tallies().here, NOWHERE), queue)
    }

    /// Counts a queue that was loaded into a database, from a file or for `RESTORE`, or copied to one.
    pub fn loaded(queue: &Queue, db: i32) -> Home {
        let mut tallies = tallies();
        let Tallies { here, loaded } = &mut *tallies;
        Home::enter(of_database(loaded.as_mut().unwrap_or(here), db), queue)
    }

    fn enter(tally: Arc<Tally>, queue: &Queue) -> Home {
        tally.enter(queue);
        Home(tally)
    }

    /// Counts the queue in this database from now on, unless it is already.
    #[inline]
    pub fn move_to(&mut self, queue: &Queue, db: i32) {
        if self.0.db.load(Relaxed) != db {
            self.change(queue, db);
        }
    }

    /// The queue was unlinked from its key. It is freed at once, or has another key: of that one nobody tells.
    pub fn unlink(&mut self, queue: &Queue) {
        self.change(queue, NOWHERE);
    }

    #[cold]
    fn change(&mut self, queue: &Queue, db: i32) {
        self.leave(queue);
        *self = Home::enter(of_database(&mut tallies().here, db), queue);
    }

    /// Takes back what the queue added, on whatever thread.
    pub fn leave(&self, queue: &Queue) {
        self.0.leave(queue);
    }

    /// Adds what has changed in the queue since its share was taken.
    #[inline]
    pub fn publish(&self, queue: &Queue, since: &Share) {
        add(&self.0.came.counts, numbers(&queue.counts()), numbers(&since.counts));
        add(&TOTALS, queue.totals().numbers(), since.totals.numbers());
    }
}

/// All queues of a database are gone; of all databases if there is no such number.
fn forget(db: i32) {
    let here = &mut tallies().here;
    if db < 0 {
        here.clear();
    } else {
        here.remove(&db);
    }
}

/// Two databases were swapped.
fn swap(first: i32, second: i32) {
    let here = &mut tallies().here;
    let (was_first, was_second) = (here.remove(&first), here.remove(&second));
    for (db, tally) in [(first, was_second), (second, was_first)] {
        if let Some(tally) = tally {
            tally.db.store(db, Relaxed);
            here.insert(db, tally);
        }
    }
}

/// Databases were swapped, and all queues in them have other names now.
pub extern "C" fn on_swap(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, info: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("SWAPDB", (), || {
        // SAFETY: the server passes this structure with this event, and it is valid during the call.
        if let Some(info) = unsafe { info.cast::<raw::RedisModuleSwapDbInfo>().as_ref() } {
            swap(info.dbnum_first, info.dbnum_second);
        }
        walk::start(ctx);
    });
}

/// A database, or all, is about to be emptied.
pub extern "C" fn on_flush(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, info: *mut c_void) {
    guard("a flush", (), || {
        // SAFETY: the server passes this structure with this event, and it is valid during the call.
        let info = unsafe { info.cast::<raw::RedisModuleFlushInfo>().as_ref() };
        if let Some(info) = info.filter(|_| stage == raw::REDISMODULE_SUBEVENT_FLUSHDB_START) {
            forget(info.dbnum);
        }
    });
}

/// A replica loads its master's data beside its own.
pub extern "C" fn on_load_beside(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, _: *mut c_void) {
    guard("a load", (), || {
        let mut tallies = tallies();
        match stage {
            raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED => tallies.loaded = Some(BTreeMap::new()),
            raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED => {
                if let Some(loaded) = tallies.loaded.take() {
                    tallies.here = loaded;
                }
            }
            _ => tallies.loaded = None,
        }
    });
}

/// Clients that wait for a message.
pub static BLOCKED_CLIENTS: AtomicI64 = AtomicI64::new(0);

fn numbers(counts: &Counts) -> [u64; 5] {
    [counts.delayed, counts.ready, counts.inflight, counts.dead, counts.payload_bytes]
}

/// What one queue adds to the sums, as published.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    counts: Counts,
    totals: Totals,
}

impl Share {
    /// The share of a queue whose last change was published.
    #[inline]
    pub fn of(queue: &Queue) -> Share {
        Share { counts: queue.counts(), totals: queue.totals() }
    }
}

/// Adds what has changed to sums that this thread alone changes: a locked addition would cost a tenth of a push.
#[inline]
fn add<const N: usize>(sums: &[AtomicU64], now: [u64; N], before: [u64; N]) {
    for ((sum, now), before) in sums.iter().zip(now).zip(before) {
        sum.store(sum.load(Relaxed).wrapping_add(now.wrapping_sub(before)), Relaxed);
    }
}

/// Counts what a queue did that came to be by it, here.
pub fn count(queue: &Queue) {
    add(&TOTALS, queue.totals().numbers(), [0; Totals::NAMES.len()]);
}

/// Clients that wait for a message.
pub fn blocked_clients() -> u64 {
    u64::try_from(BLOCKED_CLIENTS.load(Relaxed)).unwrap_or(0)
}

/// How many queues there are, and what they hold, as of the last advance of each.
pub fn held() -> (u64, Counts) {
    // A crash report may ask while the tallies are locked.
    let Ok(tallies) = TALLIES.try_lock() else { return Default::default() };
    let sum = |of: fn(&Sums) -> &[AtomicU64], at: usize| {
        let sums = tallies.here.values().map(|tally| {
            let number = |sums| of(sums).get(at).map_or(0, |sum| sum.load(Relaxed));
            number(&tally.came).wrapping_sub(number(&tally.went))
        });
        shown(sums.fold(0, u64::wrapping_add))
    };
    let [delayed, ready, inflight, dead, payload_bytes] = std::array::from_fn(|at| sum(|sums| &sums.counts, at));
    let queues = sum(|sums| std::slice::from_ref(&sums.queues), 0);
    (queues, Counts { delayed, ready, inflight, dead, payload_bytes })
}

/// What happened since the server started, with the names that `DQ.INFO` gives the totals of one queue.
pub fn totals() -> impl Iterator<Item = (&'static str, u64)> {
    Totals::NAMES.into_iter().zip(TOTALS.iter().map(|sum| sum.load(Relaxed)))
}

/// A crash report may ask in the midst of a change, and is shown no less than nothing.
fn shown(sum: u64) -> u64 {
    if i64::try_from(sum).is_ok() {
        sum
    } else {
        0
    }
}
