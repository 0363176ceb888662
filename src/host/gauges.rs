//! The sums over all queues of this server, which `INFO dq` reports: what they hold now, and what they have done.
//!
//! Each database has a [`Tally`] of its queues, and a queue knows the tally in which it is counted. Whenever a key was
//! open, the main thread adds the change of its queue's share to the tally. When the queue is freed, its share is
//! removed. That may happen on a background thread, so removals are counted apart from additions.
//!
//! The server may free a whole database in the background. So when a database is emptied, its tally is not corrected
//! but dropped from the list, together with the queues that are still counted in it: they no longer count from that
//! moment on. A replica that loads its master's data while it keeps its own (an asynchronous load) counts the loaded
//! queues in separate tallies, and switches to these when the server switches.
//!
//! The totals of what queues have done, and the lateness of deliveries, start with the server and only grow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dq_queue::time::DurationMs;
use dq_queue::{Counts, Histogram, Queue, Totals};

/// How many messages were pushed, delivered and acked. Changed by the main thread only.
static FREQUENT: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The other totals, in the order of [`Totals::NAMES`]; the frequent ones have no meaning here. Changed by the main
/// thread only, and looked at only for queues that have counted one of them.
static OTHERS: [AtomicU64; Totals::NAMES.len()] = [const { AtomicU64::new(0) }; Totals::NAMES.len()];

/// The number of first deliveries by their lateness, in the buckets of a [`Histogram`]. Changed by the main thread
/// only.
static LATENESS: [AtomicU64; Histogram::BUCKETS] = [const { AtomicU64::new(0) }; Histogram::BUCKETS];

/// The current tallies. Locked only briefly, and by the main thread only.
static TALLIES: Mutex<Tallies> = Mutex::new(Tallies { here: BTreeMap::new(), loaded: None });

/// The pseudo-database of queues whose database is not yet known.
const NOWHERE: i32 = -1;
/// The pseudo-database of queues that a panic may have left half changed. They stay in it, wherever their keys are.
const UNSOUND: i32 = -2;

type ByDatabase = BTreeMap<i32, Arc<Tally>>;

struct Tallies {
    here: ByDatabase,
    /// The tallies of the data that a replica loads while it keeps its own.
    loaded: Option<ByDatabase>,
}

fn tallies() -> MutexGuard<'static, Tallies> {
    TALLIES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tally_of(tallies: &mut ByDatabase, db: i32) -> Arc<Tally> {
    Arc::clone(tallies.entry(db).or_insert_with(|| Arc::new(Tally::new(db))))
}

/// The number of queues in a database, and the sums of what they hold.
#[derive(Debug)]
pub struct Tally {
    /// The database, which changes with `SWAPDB`.
    db: AtomicI32,
    /// What was added. Changed by the main thread only.
    came: Sums,
    /// What was removed. Changed by any thread that frees a queue.
    went: Sums,
}

/// The number of queues, and what they hold in the order of [`numbers`]. Only the difference of two such sums has a
/// meaning, so each of them may wrap around.
#[derive(Debug)]
struct Sums {
    queues: AtomicU64,
    counts: [AtomicU64; NUMBERS],
}

impl Sums {
    const fn none() -> Sums {
        Sums { queues: AtomicU64::new(0), counts: [const { AtomicU64::new(0) }; NUMBERS] }
    }
}

impl Tally {
    const fn new(db: i32) -> Tally {
        Tally { db: AtomicI32::new(db), came: Sums::none(), went: Sums::none() }
    }

    /// Adds a queue. The totals of what it has done before are not counted here.
    fn enter(&self, queue: &Queue) {
        add(std::slice::from_ref(&self.came.queues), [1], [0]);
        add(&self.came.counts, numbers(queue), [0; NUMBERS]);
    }

    /// Removes a queue that was counted. May be called on any thread.
    fn leave(&self, queue: &Queue) {
        self.went.queues.fetch_add(1, Relaxed);
        for (sum, went) in self.went.counts.iter().zip(numbers(queue)) {
            sum.fetch_add(went, Relaxed);
        }
    }
}

/// The tally in which a queue is counted. The owner of the queue must call [`TallyEntry::leave`] before it drops the
/// queue.
#[derive(Debug)]
pub struct TallyEntry(Arc<Tally>);

impl TallyEntry {
    /// Counts a queue that is about to be stored in a database that is not yet known.
    pub fn nowhere(queue: &Queue) -> TallyEntry {
        TallyEntry::enter(tally_of(&mut tallies().here, NOWHERE), queue)
    }

    /// Counts a queue that was loaded into a database, from a file or by `RESTORE`, or copied to one.
    pub fn loaded(queue: &Queue, db: i32) -> TallyEntry {
        let mut tallies = tallies();
        let Tallies { here, loaded } = &mut *tallies;
        TallyEntry::enter(tally_of(loaded.as_mut().unwrap_or(here), db), queue)
    }

    fn enter(tally: Arc<Tally>, queue: &Queue) -> TallyEntry {
        tally.enter(queue);
        TallyEntry(tally)
    }

    /// Moves the queue to the tally of this database, unless it is already counted there.
    pub fn move_to(&mut self, queue: &Queue, db: i32) {
        if self.0.db.load(Relaxed) != db && !self.is_unsound() {
            self.change(queue, db);
        }
    }

    /// The queue was unlinked from its key. It is either freed at once or gets another key, whose database is not
    /// known.
    pub fn unlink(&mut self, queue: &Queue) {
        self.move_to(queue, NOWHERE);
    }

    /// A panic may have left the queue half changed.
    pub fn set_unsound(&mut self, queue: &Queue) {
        self.change(queue, UNSOUND);
    }

    /// Whether a panic may have left the queue half changed.
    pub fn is_unsound(&self) -> bool {
        self.0.db.load(Relaxed) == UNSOUND
    }

    #[cold]
    fn change(&mut self, queue: &Queue, db: i32) {
        self.leave(queue);
        *self = TallyEntry::enter(tally_of(&mut tallies().here, db), queue);
    }

    /// Removes the share of the queue. May be called on any thread.
    pub fn leave(&self, queue: &Queue) {
        self.0.leave(queue);
    }

    /// Adds what has changed in the queue since its share was taken.
    #[inline]
    pub fn publish(&self, queue: &Queue, since: &Share) {
        let sums = &self.0.came.counts;
        let (frequent, others) = queue.tally();
        add(sums, counts(queue), since.counts);
        add(&FREQUENT, frequent, since.frequent());
        if since.has_rare || others.is_some() || queue.gauges(queue.viewed()).is_some() {
            let now = Share::from_queue(queue);
            add(sums.get(COUNTS..).unwrap_or_default(), now.gauges, since.gauges);
            add(&OTHERS, now.totals.numbers(), since.totals.numbers());
        }
    }
}

/// Drops the tally of a database that was emptied; a negative number means all databases.
pub fn forget(db: i32) {
    let here = &mut tallies().here;
    if db < 0 {
        here.clear();
    } else {
        here.remove(&db);
    }
}

/// Whether a queue was unlinked from its key, has got another key and was not opened there yet.
pub fn is_any_unlinked() -> bool {
    queues_of(NOWHERE) > 0
}

/// The number of queues that are not served, because a panic may have left them half changed.
pub fn unsound_queues() -> u64 {
    queues_of(UNSOUND)
}

fn queues_of(db: i32) -> u64 {
    // A crash report may be written while the tallies are locked.
    let Ok(tallies) = TALLIES.try_lock() else { return 0 };
    let number = |sums: &Sums| sums.queues.load(Relaxed);
    tallies.here.get(&db).map_or(0, |tally| number(&tally.came).wrapping_sub(number(&tally.went)))
}

/// Swaps the tallies of two databases.
pub fn swap(first: i32, second: i32) {
    let here = &mut tallies().here;
    let (was_first, was_second) = (here.remove(&first), here.remove(&second));
    for (db, tally) in [(first, was_second), (second, was_first)] {
        if let Some(tally) = tally {
            tally.db.store(db, Relaxed);
            here.insert(db, tally);
        }
    }
}

/// Records that a replica has begun to load its master's data while it keeps its own.
pub fn begin_load_beside() {
    tallies().loaded = Some(BTreeMap::new());
}

/// Records that the loaded data has replaced the replica's own.
pub fn complete_load_beside() {
    let mut tallies = tallies();
    if let Some(loaded) = tallies.loaded.take() {
        tallies.here = loaded;
    }
}

/// Records that the loaded data was discarded.
pub fn abort_load_beside() {
    tallies().loaded = None;
}

/// The numbers of a queue that are summed, as `INFO dq` names them.
const NAMES: [&str; NUMBERS] =
    ["delayed", "ready", "inflight", "dead", "done", "payload_bytes", "schedules", "consumers", "paused_groups"];
const NUMBERS: usize = COUNTS + 3;
/// The first numbers, which every queue has. The others are looked at only for queues that have one of them.
const COUNTS: usize = 6;

#[inline(always)]
fn counts(queue: &Queue) -> [u64; COUNTS] {
    let Counts { delayed, ready, inflight, dead, done, payload_bytes } = queue.counts();
    [delayed, ready, inflight, dead, done, payload_bytes]
}

fn numbers(queue: &Queue) -> [u64; NUMBERS] {
    let [delayed, ready, inflight, dead, done, payload_bytes] = counts(queue);
    let [schedules, consumers, paused] = queue.gauges(queue.viewed()).unwrap_or_default();
    [delayed, ready, inflight, dead, done, payload_bytes, schedules, consumers, paused]
}

/// What one queue has added to the sums.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    counts: [u64; COUNTS],
    gauges: [u64; NUMBERS - COUNTS],
    totals: Totals,
    /// Whether the gauges and the totals that are not frequent may be other than zero.
    has_rare: bool,
}

impl Share {
    /// The share of a queue whose last change has been added.
    #[inline(always)]
    pub fn from_queue(queue: &Queue) -> Share {
        let ([pushed, delivered, acked], others) = queue.tally();
        let gauges = queue.gauges(queue.viewed());
        Share {
            counts: counts(queue),
            gauges: gauges.unwrap_or_default(),
            totals: Totals { pushed, delivered, acked, ..others.copied().unwrap_or_default() },
            has_rare: gauges.is_some() || others.is_some(),
        }
    }

    #[inline(always)]
    fn frequent(&self) -> [u64; 3] {
        [self.totals.pushed, self.totals.delivered, self.totals.acked]
    }
}

/// Adds a change to sums that only this thread changes. An atomic read-modify-write would cost a tenth of a push.
fn add<const N: usize>(sums: &[AtomicU64], now: [u64; N], before: [u64; N]) {
    for ((sum, now), before) in sums.iter().zip(now).zip(before) {
        sum.store(sum.load(Relaxed).wrapping_add(now.wrapping_sub(before)), Relaxed);
    }
}

/// Adds to the totals what a new queue did while it was created on this server.
pub fn count(queue: &Queue) {
    let (frequent, others) = queue.tally();
    add(&FREQUENT, frequent, [0; 3]);
    add(&OTHERS, others.copied().unwrap_or_default().numbers(), [0; Totals::NAMES.len()]);
}

/// The number of queues, and the sums of what they hold with their names, each as of its last advance.
pub fn held() -> (u64, [(&'static str, u64); NUMBERS]) {
    // A crash report may be written while the tallies are locked.
    let Ok(tallies) = TALLIES.try_lock() else { return (0, NAMES.map(|name| (name, 0))) };
    let sum = |of: fn(&Sums) -> &[AtomicU64], at: usize| {
        let sums = tallies.here.values().map(|tally| {
            let number = |sums| of(sums).get(at).map_or(0, |sum| sum.load(Relaxed));
            number(&tally.came).wrapping_sub(number(&tally.went))
        });
        shown(sums.fold(0, u64::wrapping_add))
    };
    let mut places = 0..NUMBERS;
    let held = NAMES.map(|name| (name, places.next().map_or(0, |at| sum(|sums| &sums.counts, at))));
    (sum(|sums| std::slice::from_ref(&sums.queues), 0), held)
}

/// The totals since the server started, with the names that `DQ.INFO` uses for the totals of one queue.
pub fn totals() -> impl Iterator<Item = (&'static str, u64)> {
    let [pushed, delivered, acked] = FREQUENT.each_ref().map(|sum| sum.load(Relaxed));
    let others = Totals::from_numbers(OTHERS.each_ref().map(|sum| sum.load(Relaxed)));
    Totals::NAMES.into_iter().zip(Totals { pushed, delivered, acked, ..others }.numbers())
}

/// Counts a first delivery.
pub fn count_lateness(lateness: DurationMs) {
    if let Some(count) = LATENESS.get(Histogram::bucket_of(lateness)) {
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// The lateness of the first deliveries of all messages since the server started: each upper bound in ms, and the
/// number of deliveries up to it.
pub fn lateness() -> impl Iterator<Item = (Option<u64>, u64)> {
    Histogram::cumulated(LATENESS.iter().map(|count| count.load(Relaxed)))
}

/// A crash report may be written in the middle of a change. A negative difference is then shown as 0.
fn shown(sum: u64) -> u64 {
    if i64::try_from(sum).is_ok() {
        sum
    } else {
        0
    }
}
