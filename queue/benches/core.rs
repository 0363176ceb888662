//! Measures the core: `cargo bench -p dq-queue --bench core [-- SIZE ...]`.
//!
//! Times are CPU times of this thread, which depend little on how busy the machine is. Allocations are counted with the
//! size to which the allocator rounds them. If calls are short, the longest call is that of a group of sixteen, because
//! reading the clock for each call would cost more than the call. The sizes are 10,000, 1,000,000 and 5,000,000
//! messages of 100 bytes, unless others are given.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use dq_queue::id::{Floor, Id, Receipt, Sequence, Target};
use dq_queue::settings::Settings;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::wire::Loader;
use dq_queue::{
    Due, Grant, Lease, NewMessage, Oldest, OnDuplicate, Pop, Queue, Refused, Reschedule, StateKind, States, ToPurge,
    Verdict, Which,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const PAYLOAD: [u8; 100] = [b'x'; 100];
/// The instant at which the benchmark begins; it has no special properties.
const NOW: u64 = 1_760_000_000_123;
const HOUR_MS: u64 = 3_600_000;
/// The number of messages in a burst, and in a queue that is freed, saved and loaded.
const MILLION: usize = 1_000_000;
/// The budget of one step of the server's timer.
const BUDGET: usize = 256;
/// The number of calls between two readings of the clock.
const GROUP: usize = 16;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

extern "C" {
    fn malloc_usable_size(block: *mut c_void) -> usize;
    fn clock_gettime(clock: c_int, time: *mut [c_long; 2]) -> c_int;
    fn mallopt(option: c_int, value: c_int) -> c_int;
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract, and the block comes from this allocator.
        unsafe {
            let block = System.alloc(layout);
            ALLOCATED.fetch_add(malloc_usable_size(block.cast()), Relaxed);
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe {
            ALLOCATED.fetch_sub(malloc_usable_size(block.cast()), Relaxed);
            System.dealloc(block, layout);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        unsafe {
            ALLOCATED.fetch_sub(malloc_usable_size(block.cast()), Relaxed);
            let block = System.realloc(block, layout, size);
            ALLOCATED.fetch_add(malloc_usable_size(block.cast()), Relaxed);
            block
        }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The CPU time of this thread, in nanoseconds.
fn cpu_ns() -> u64 {
    const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
    let mut time = [0; 2];
    // SAFETY: on a 64-bit system a timespec consists of two longs.
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

/// Keeps glibc from returning memory to the kernel during a call, which takes milliseconds. The allocators of servers
/// return memory in the background.
fn keep_memory() {
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_TOP_PAD: c_int = -2;
    // SAFETY: no other thread is running yet.
    unsafe {
        mallopt(M_TRIM_THRESHOLD, c_int::MAX);
        mallopt(M_TOP_PAD, 1 << 28);
    }
}

/// A small and fast generator of random numbers, which yields the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for nth in (1..items.len()).rev() {
            items.swap(nth, self.below(nth as u64 + 1) as usize);
        }
    }
}

/// The time that a number of calls took.
#[derive(Default)]
struct Cost {
    messages: usize,
    total_ns: u64,
    longest_ns: u64,
}

impl Cost {
    /// Measures `calls` calls of `call`, each of which concerns `messages` messages.
    fn add(&mut self, calls: usize, messages: usize, mut call: impl FnMut(usize)) {
        let group = if messages > 1 { 1 } else { GROUP };
        let mut before = cpu_ns();
        for first in (0..calls).step_by(group) {
            (first..calls.min(first + group)).for_each(&mut call);
            let after = cpu_ns();
            self.total_ns += after - before;
            self.longest_ns = self.longest_ns.max(after - before);
            before = after;
        }
        self.messages += calls * messages;
    }
}

struct Table;

impl Table {
    fn head(&self, title: &str) {
        println!("\n{title:<52} {:>10} {:>12} {:>10}", "ns/message", "longest µs", "total ms");
        println!("{}", "-".repeat(87));
    }

    fn row(&self, what: &str, cost: &Cost) {
        let per_message = cost.total_ns as f64 / cost.messages.max(1) as f64;
        let (longest, total) = (cost.longest_ns as f64 / 1e3, cost.total_ns as f64 / 1e6);
        println!("{what:<52} {per_message:>10.0} {longest:>12.1} {total:>10.1}");
    }

    fn bytes(&self, what: &str, bytes: f64) {
        println!("{what:<52} {bytes:>10.1} bytes");
    }
}

/// A queue under load, and the clock that it is given.
struct Bench {
    queue: Queue,
    floor: Floor,
    now: u64,
    held_before: usize,
    grants: Vec<Grant>,
}

impl Bench {
    fn new() -> Bench {
        let held_before = ALLOCATED.load(Relaxed);
        let settings = Settings { lease: DurationMs::new(HOUR_MS), ..Settings::default() };
        Bench { queue: Queue::new(settings), floor: Floor::default(), now: NOW, held_before, grants: Vec::new() }
    }

    fn push(&mut self, due: Due) {
        let message = NewMessage { payload: &PAYLOAD, due: Some(due), ..NewMessage::default() };
        self.queue.push(UnixMs::new(self.now), &mut self.floor, &message);
    }

    /// Pushes messages at a rate of a thousand per millisecond of the queue's clock.
    fn push_many(&mut self, count: usize, mut due: impl FnMut() -> Due) -> Cost {
        let mut cost = Cost::default();
        cost.add(count, 1, |nth| {
            self.now += u64::from(nth % 1_000 == 0);
            self.push(due());
        });
        cost
    }

    fn pop(&mut self, count: usize) -> usize {
        self.grants.clear();
        let pop = Pop { count, lease: Lease::Default };
        let mut bytes = 0;
        self.queue.pop(UnixMs::new(self.now), &mut self.floor, &pop, &mut self.grants, |message| {
            bytes += message.payload.len();
        });
        assert_eq!(bytes, self.grants.len() * PAYLOAD.len());
        self.grants.len()
    }

    /// Delivers messages at a rate of a thousand per millisecond of the queue's clock.
    fn pop_many(&mut self, calls: usize, batch: usize, popped: &mut Vec<(Sequence, Receipt)>) -> Cost {
        let mut cost = Cost::default();
        cost.add(calls, batch, |nth| {
            self.now += u64::from(nth * batch % 1_000 == 0);
            assert_eq!(self.pop(batch), batch);
            popped.extend(self.grants.iter().map(|grant| (grant.sequence, grant.receipt)));
        });
        cost
    }

    fn ack_many(&mut self, popped: &[(Sequence, Receipt)]) -> Cost {
        let mut cost = Cost::default();
        cost.add(popped.len(), 1, |nth| {
            let (sequence, receipt) = popped[nth];
            let target = Target { id: Id::Generated(sequence), receipt: Some(receipt) };
            assert!(self.queue.ack(UnixMs::new(self.now), &target).is_some());
        });
        cost
    }

    /// Advances the queue as the timer does until nothing is left to do. Returns the time of each call.
    fn advance(&mut self) -> Cost {
        let mut cost = Cost { messages: MILLION, ..Cost::default() };
        let mut done = false;
        while !done {
            cost.add(1, 0, |_| done = self.queue.advance(UnixMs::new(self.now), BUDGET).done);
        }
        cost
    }

    /// The bytes on the heap per message, without the payloads of the `live` messages and without `aside` bytes of
    /// other data.
    fn overhead(&self, live: usize, aside: usize) -> f64 {
        let held = ALLOCATED.load(Relaxed) - self.held_before - aside - self.grants.capacity() * size_of::<Grant>();
        held as f64 / live as f64 - PAYLOAD.len() as f64
    }
}

fn room_for(count: usize) -> (Vec<(Sequence, Receipt)>, usize) {
    let before = ALLOCATED.load(Relaxed);
    let popped = Vec::with_capacity(count);
    (popped, ALLOCATED.load(Relaxed) - before)
}

/// Measures the whole life of `size` messages, repeated until the figures are steady.
fn life(table: &Table, size: usize, due: impl Fn(&mut Random) -> Due, title: &str) {
    table.head(&format!("{title}, {size} messages"));
    let mut random = Random(42);
    let [mut push, mut single, mut batches, mut in_order, mut shuffled] = [(); 5].map(|()| Cost::default());
    let (mut waiting, mut lent, mut sparse) = (0.0, 0.0, 0.0);
    for _ in 0..(MILLION / size).clamp(1, 100) {
        let mut bench = Bench::new();
        bench.grants.reserve_exact(100);
        push.join(bench.push_many(size, || due(&mut random)));
        waiting = bench.overhead(size, 0);
        bench.now += HOUR_MS;
        bench.queue.advance(UnixMs::new(bench.now), BUDGET);
        let (mut popped, aside) = room_for(size);
        let half = size / 200 * 100;
        single.join(bench.pop_many(half, 1, &mut popped));
        batches.join(bench.pop_many(half / 100, 100, &mut popped));
        lent = bench.overhead(size, aside);
        // A tenth of the messages is acked in the order of delivery. Then random others are acked until a tenth is
        // left.
        let (first, rest) = popped.split_at_mut(size / 10);
        in_order.join(bench.ack_many(first));
        random.shuffle(rest);
        shuffled.join(bench.ack_many(&rest[size / 10..]));
        sparse = bench.overhead(size / 10, aside);
    }
    table.row("push", &push);
    table.row("pop 1", &single);
    table.row("pop 100", &batches);
    table.row("ack, in order of delivery", &in_order);
    table.row("ack, at random", &shuffled);
    table.bytes("beyond the payload, waiting", waiting);
    table.bytes("beyond the payload, in flight", lent);
    table.bytes("beyond the payload, in flight, 90 % acked at random", sparse);
}

impl Cost {
    fn join(&mut self, other: Cost) {
        self.messages += other.messages;
        self.total_ns += other.total_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

fn once(call: impl FnOnce()) -> Cost {
    let before = cpu_ns();
    call();
    let took = cpu_ns() - before;
    Cost { messages: MILLION, total_ns: took, longest_ns: took }
}

fn bursts(table: &Table) {
    table.head("1,000,000 messages at one instant");
    let mut bench = Bench::new();
    bench.push_many(MILLION, || Due::At(UnixMs::new(NOW + HOUR_MS)));
    bench.now = NOW + HOUR_MS;
    table.row("all fall due: advance", &bench.advance());
    let mut pop = Cost::default();
    pop.add(MILLION / 100, 100, |_| {
        bench.pop(100);
    });
    table.row("all are popped, by 100", &pop);
    bench.now += HOUR_MS;
    table.row("all leases end: advance", &bench.advance());

    let mut popped = Cost::default();
    popped.add(MILLION / 100, 100, |_| {
        bench.pop(100);
    });
    bench.now += HOUR_MS;
    let first = once(|| {
        bench.pop(1);
    });
    table.row("all leases end: a pop before any advance", &first);

    let mut bench = Bench::new();
    let message = NewMessage { payload: &PAYLOAD, ttl: Some(DurationMs::new(1_000)), ..NewMessage::default() };
    for _ in 0..MILLION {
        bench.queue.push(UnixMs::new(NOW), &mut bench.floor, &message);
    }
    bench.now += 1_000;
    table.row("all TTLs end: advance", &bench.advance());
    table.bytes("beyond the payload, dead", bench.overhead(MILLION, 0));
    assert_eq!(bench.queue.counts().dead, MILLION as u64);
}

/// Measures cancelling, rescheduling, redriving and purging, one message at a time and many at once.
fn second_thoughts(table: &Table) {
    table.head("1,000,000 messages with random delays, second thoughts");
    let mut random = Random(11);
    let mut bench = Bench::new();
    let messages = [NewMessage { payload: &PAYLOAD, ..NewMessage::default() }; 100];
    let mut batches = Cost::default();
    batches.add(MILLION / 100, 100, |nth| {
        bench.now += u64::from(nth % 10 == 0);
        let due = Due::After(DurationMs::new(random.below(HOUR_MS)));
        let (now, batch) = (UnixMs::new(bench.now), messages.map(|message| NewMessage { due: Some(due), ..message }));
        assert!(bench.queue.push_all(now, &mut bench.floor, &batch, |_| ()).is_ok());
    });
    table.row("push, in hundreds of one due time", &batches);
    let now = UnixMs::new(bench.now);
    let mut ids: Vec<Sequence> = bench.queue.images().map(|image| image.record.sequence).collect();
    random.shuffle(&mut ids);
    let (mut moved, mut cancelled) = (Cost::default(), Cost::default());
    moved.add(ids.len() / 5, 1, |nth| {
        let due = Due::After(DurationMs::new(random.below(HOUR_MS)));
        assert!(bench
            .queue
            .reschedule(now, &Id::Generated(ids[nth]), &Reschedule { due: Some(due), priority: None })
            .is_some());
    });
    table.row("reschedule, at random", &moved);
    cancelled.add(ids.len() / 5, 1, |nth| {
        assert!(bench.queue.cancel(now, &Id::Generated(ids[nth])).is_some());
    });
    table.row("cancel, at random", &cancelled);
    bench.push_many(MILLION / 5, || Due::Now);
    let now = UnixMs::new(bench.now);
    let mut purged = 0;
    let some = once(|| purged = bench.queue.purge(now, &ToPurge::all(States::only(StateKind::Ready))).count);
    table.row("purge of 200,000 of them, those that are ready", &Cost { messages: purged, ..some });
    let rest = once(|| purged = bench.queue.purge(now, &ToPurge::all(States::ALL)).count);
    table.row("purge of the others", &Cost { messages: purged, ..rest });
    let message = NewMessage { payload: &PAYLOAD, ttl: Some(DurationMs::new(1)), ..NewMessage::default() };
    for _ in 0..MILLION {
        bench.queue.push(now, &mut bench.floor, &message);
    }
    bench.now += 1_000;
    bench.advance();
    let now = UnixMs::new(bench.now);
    let redrive = once(|| {
        assert_eq!(bench.queue.redrive(now, &Which::Oldest(Oldest::first(MILLION)), Due::Now).count, MILLION);
    });
    table.row("redrive of all the dead", &redrive);
}

/// Messages with names that are pushed again, in memory that is not cached.
fn replacements(table: &Table) {
    table.head("1,000,000 named messages with random delays");
    let mut random = Random(5);
    let names: Vec<String> = (0..MILLION).map(|nth| format!("order-{nth:014}")).collect();
    let mut bench = Bench::new();
    let mut push = |calls: usize, batch: usize, name: &mut dyn FnMut() -> usize, bench: &mut Bench| {
        let mut cost = Cost::default();
        cost.add(calls, batch, |_| {
            bench.now += 1;
            let messages: Vec<NewMessage<'_>> = (0..batch)
                .map(|_| NewMessage {
                    payload: &PAYLOAD,
                    name: Some(names[name()].as_bytes()),
                    due: Some(Due::After(DurationMs::new(random.below(HOUR_MS)))),
                    on_duplicate: OnDuplicate::Replace,
                    ..NewMessage::default()
                })
                .collect();
            let now = UnixMs::new(bench.now);
            assert!(bench.queue.push_all(now, &mut bench.floor, &messages, |_| ()).is_ok());
        });
        cost
    };
    let (mut next, mut any) = (0..MILLION, Random(6));
    table.row("push, by 100", &push(MILLION / 100, 100, &mut || next.next().unwrap(), &mut bench));
    let mut any = || any.below(MILLION as u64) as usize;
    table.row("replace at random, by 100", &push(MILLION / 100, 100, &mut any, &mut bench));
    table.row("replace at random, one by one", &push(MILLION / 5, 1, &mut any, &mut bench));
    table.bytes("beyond the payload", bench.overhead(MILLION, 0));
}

fn whole_queue(table: &Table) {
    table.head("1,000,000 messages, the whole queue");
    let mut random = Random(7);
    let mut bench = Bench::new();
    bench.push_many(MILLION, || Due::After(DurationMs::new(random.below(HOUR_MS))));
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let save = once(|| {
        let saved: Result<(), Refused> = bench.queue.save(|piece| {
            pieces.push(piece.to_vec());
            Ok(())
        });
        assert!(saved.is_ok());
    });
    table.row("save", &save);
    let mut loaded = None;
    let load = once(|| {
        let mut loader = Loader::default();
        pieces.iter().for_each(|piece| loader.take(piece).unwrap());
        loaded = loader.finish(UnixMs::MAX).ok();
    });
    table.row("load", &load);
    let mut digested = 0;
    let digest = once(|| bench.queue.digest(|piece| digested += piece.len()).unwrap());
    table.row("digest", &digest);
    let loaded = loaded.unwrap();
    let before = ALLOCATED.load(Relaxed);
    table.row("free", &once(|| drop(loaded)));
    let freed = before - ALLOCATED.load(Relaxed);
    table.bytes("beyond the payload, as it was loaded", freed as f64 / MILLION as f64 - PAYLOAD.len() as f64);
    let saved: usize = pieces.iter().map(Vec::len).sum();
    table.bytes("beyond the payload, as it was saved", saved as f64 / MILLION as f64 - PAYLOAD.len() as f64);
}

/// A thousand consumers hold a million messages, each of which was delivered in a millisecond of its consumer's own.
fn consumers(table: &Table) {
    const NAMES: usize = 1_000;
    table.head("1,000,000 messages in flight, held by 1,000 consumers");
    let names: Vec<Vec<u8>> = (0..NAMES).map(|nth| format!("worker-{nth:04}").into_bytes()).collect();
    for batch in [1, 10, 100] {
        let mut held = [0.0; 2];
        for (named, held) in [false, true].into_iter().zip(&mut held) {
            let mut bench = Bench::new();
            bench.grants.reserve_exact(batch);
            bench.push_many(MILLION, || Due::Now);
            let mut pop = Cost::default();
            pop.add(MILLION / batch, batch, |nth| {
                bench.now += u64::from(nth % NAMES == 0);
                assert_eq!(bench.pop(batch), batch);
                if named {
                    let Bench { queue, grants, .. } = &mut bench;
                    queue.hold_as(grants.iter().map(|grant| grant.sequence), &names[nth % NAMES]);
                }
            });
            *held = bench.overhead(MILLION, 0);
            if !named {
                continue;
            }
            let now = UnixMs::new(bench.now);
            table.row(&format!("pop {batch} AS name"), &pop);
            let mut pages = Cost::default();
            pages.add(100, 10, |nth| {
                let cursor = (nth as u64) << 56;
                assert!(!bench.queue.scan_consumers(now, Some(cursor), 10).0.is_empty());
            });
            table.row("a page of 10 consumers", &pages);
            let released = once(|| {
                assert_eq!(bench.queue.release(now, &names[7], Some(10), Verdict::Failed).count, 10);
            });
            table.row("release of 10 messages", &Cost { messages: 10, ..released });
            let released = once(|| {
                assert_eq!(bench.queue.release(now, &names[8], None, Verdict::Failed).count, MILLION / NAMES);
            });
            table.row("release of 1,000 messages", &Cost { messages: MILLION / NAMES, ..released });
        }
        table.bytes(&format!("for the name, popped by {batch}"), held[1] - held[0]);
    }
}

/// What it costs that messages are members of a batch, and how long it takes to cancel one.
fn batches(table: &Table) {
    table.head("1,000,000 messages, without a batch and in one");
    for (title, batch) in [("without", None), ("member", Some(&b"batch"[..]))] {
        let mut bench = Bench::new();
        let (mut popped, aside) = room_for(MILLION);
        bench.grants.reserve_exact(100);
        push_in_hundreds(table, title, &mut bench, |_| batch);
        table.bytes("beyond the payload", bench.overhead(MILLION, aside));
        bench.pop_many(MILLION / 100, 100, &mut popped);
        let (first, rest) = popped.split_at_mut(MILLION / 2);
        table.row(&format!("{title}: ack, in order of delivery"), &bench.ack_many(first));
        Random(42).shuffle(rest);
        table.row(&format!("{title}: ack, at random"), &bench.ack_many(rest));
    }
    let mut bench = Bench::new();
    push_in_hundreds(table, "member", &mut bench, |_| Some(b"batch"));
    let now = UnixMs::new(bench.now);
    table.row("cancel of the batch", &once(|| assert_eq!(bench.queue.cancel_batch(now, b"batch"), Some(MILLION))));
    let names: Vec<_> = (0..MILLION / 100).map(|nth| nth.to_le_bytes()).collect();
    push_in_hundreds(table, "member of one of 10,000", &mut bench, |nth| Some(&names[nth]));
    let now = UnixMs::new(bench.now);
    let mut cancelled = Cost::default();
    cancelled.add(100, 100, |nth| assert_eq!(bench.queue.cancel_batch(now, &names[nth * 99]), Some(100)));
    table.row("cancel of one of 10,000 batches", &cancelled);
}

/// Pushes a million messages by 100, each of which joins the batch that `batch` names for its hundred.
fn push_in_hundreds<'a>(table: &Table, title: &str, bench: &mut Bench, batch: impl Fn(usize) -> Option<&'a [u8]>) {
    let mut cost = Cost::default();
    cost.add(MILLION / 100, 100, |nth| {
        bench.now += u64::from(nth % 10 == 0);
        let messages = [NewMessage { payload: &PAYLOAD, batch: batch(nth), ..NewMessage::default() }; 100];
        assert!(bench.queue.push_all(UnixMs::new(bench.now), &mut bench.floor, &messages, |_| ()).is_ok());
    });
    table.row(&format!("{title}: push, by 100"), &cost);
}

fn small(table: &Table) {
    table.head("One message of 100 bytes, the struct and its payload included");
    let mut bench = Bench::new();
    let held = |bench: &Bench| (ALLOCATED.load(Relaxed) - bench.held_before + size_of::<Queue>()) as f64;
    table.bytes("empty", held(&bench));
    bench.push(Due::Now);
    table.bytes("waiting", held(&bench));
    bench.pop(1);
    let grants = bench.grants.capacity() * size_of::<Grant>();
    table.bytes("in flight", held(&bench) - grants as f64);
}

fn main() {
    keep_memory();
    let asked: Vec<usize> = std::env::args().filter_map(|arg| arg.replace([',', '_'], "").parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![10_000, MILLION, 5 * MILLION] } else { asked };
    let table = Table;
    small(&table);
    for size in sizes {
        life(&table, size, |_| Due::Now, "Immediate");
        life(&table, size, |random| Due::After(DurationMs::new(random.below(HOUR_MS))), "Random delays up to 1 h");
    }
    bursts(&table);
    second_thoughts(&table);
    replacements(&table);
    consumers(&table);
    batches(&table);
    whole_queue(&table);
}
