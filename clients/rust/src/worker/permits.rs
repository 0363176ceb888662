//! Permits to handle messages, one for each handler that may begin, shared among the queues of a pool.
//!
//! A pop delivers at most as many messages as it holds permits, so each task that pops acquires permits first, and
//! returns those that the pop did not use. Queues with messages get permits in proportion to their weights (start-time
//! fair queueing: the more a queue was given relative to its weight, the later its next turn begins).
//!
//! A queue is *hot* if its last pop returned all that it asked for, so there is probably more. While another queue is
//! hot, an idle queue does not block while it holds a permit: it only probes now and then, and blocked pops are ended
//! if a hot queue finds no free permit.

use crate::sync::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often an idle queue is looked at while another one is hot.
const PROBE: Duration = Duration::from_millis(50);
/// How soon blocked pops are ended again if no permits became free.
const RECLAIM: Duration = Duration::from_millis(20);
/// How long a free permit waits at most for a queue that is popping and has an earlier turn than those that ask for it.
/// A pop that does not block is answered much sooner, and a server that hangs must not keep permits from other queues.
const PRECEDENCE: Duration = Duration::from_millis(20);
/// A task that waits for permits checks again after this time, even if it is not woken.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Permits for one pop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grant {
    pub count: usize,
    /// Whether the pop may block.
    pub block: bool,
}

/// What came of asking for permits.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    Granted(Grant),
    /// How long to wait for the turn at most, and the queues whose blocked pops should end before.
    Wait(Duration, Vec<usize>),
    /// The pool is stopping.
    Closed,
}

pub(super) struct Permits {
    state: Mutex<State>,
    /// One for each queue.
    turns: Vec<Notify>,
}

struct State {
    total: usize,
    /// May be more than there are, after the pool has become smaller.
    used: usize,
    closed: bool,
    /// The start of the turn that began last.
    clock: f64,
    tickets: u64,
    queues: Vec<Turn>,
}

struct Turn {
    weight: f64,
    start: f64,
    finish: f64,
    /// Set while the queue waits for permits: equal starts are served in this order.
    ticket: Option<u64>,
    hot: bool,
    blocked: bool,
    /// Set while a hot queue pops: until then, free permits wait for its next turn if that is earlier than those of
    /// others.
    precedes_until: Option<Instant>,
    probe_at: Instant,
}

impl Turn {
    /// The turn ends the later, the more messages were delivered in it.
    #[allow(clippy::cast_precision_loss, reason = "fairness needs no precision")]
    fn use_up(&mut self, messages: usize) {
        self.finish = self.start + messages as f64 / self.weight;
    }
}

impl State {
    fn free(&self) -> usize {
        self.total.saturating_sub(self.used)
    }

    fn is_contended(&self, queue: usize) -> bool {
        self.queues.iter().enumerate().any(|(other, turn)| other != queue && turn.hot)
    }

    fn may_take(&self, queue: usize, turn: &Turn, now: Instant) -> bool {
        turn.ticket.is_some() && (turn.hot || now >= turn.probe_at || !self.is_contended(queue))
    }

    /// The queue whose turn it is.
    fn best(&self, now: Instant) -> Option<usize> {
        let waiting = || self.queues.iter().enumerate().filter(|(queue, turn)| self.may_take(*queue, turn, now));
        // Queues that were idle when they were asked last are asked in turn: what they were given before does not
        // count, because a pop without messages would never make up for it.
        let weighs = waiting().any(|(_, turn)| turn.hot);
        let start = |turn: &Turn| if weighs { turn.start } else { 0.0 };
        let first = waiting().min_by(|(_, a), (_, b)| start(a).total_cmp(&start(b)).then(a.ticket.cmp(&b.ticket)));
        first.filter(|(_, turn)| self.preceded_until(start(turn), now).is_none()).map(|(queue, _)| queue)
    }

    /// Until when a turn waits for that of a hot queue which is popping. Queues whose handlers end at the same time
    /// would otherwise get equal shares: the one that got the first permit would not be back when the next one is free.
    fn preceded_until(&self, start: f64, now: Instant) -> Option<Instant> {
        let earlier = self.queues.iter().filter(|turn| turn.finish.max(self.clock) < start);
        earlier.filter_map(|turn| turn.precedes_until).filter(|until| now < *until).max()
    }
}

impl Permits {
    pub fn new(total: usize, weights: &[u32]) -> Permits {
        let now = Instant::now();
        let turn = |weight: &u32| Turn {
            weight: f64::from((*weight).max(1)),
            start: 0.0,
            finish: 0.0,
            ticket: None,
            hot: false,
            blocked: false,
            precedes_until: None,
            probe_at: now,
        };
        let queues = weights.iter().map(turn).collect();
        let state = State { total, used: 0, closed: false, clock: 0.0, tickets: 0, queues };
        Permits { state: Mutex::new(state), turns: weights.iter().map(|_| Notify::new()).collect() }
    }

    /// Whether there is a permit for each queue, so that all can block at once.
    pub fn suffice(&self) -> bool {
        self.turns.len() <= lock(&self.state).total
    }

    /// Changes the number of permits. Those in use beyond it vanish when they are released.
    pub fn resize(&self, total: usize) {
        let mut state = lock(&self.state);
        state.total = total.max(1);
        self.wake_next(&state);
    }

    /// Takes a place among those that wait for permits.
    pub fn enter(&self, queue: usize) {
        let mut state = lock(&self.state);
        state.tickets += 1;
        let (ticket, clock) = (state.tickets, state.clock);
        if let Some(mine) = state.queues.get_mut(queue) {
            mine.ticket = Some(ticket);
            mine.start = mine.finish.max(clock);
        }
    }

    /// Tries to get permits for a queue that has entered.
    pub fn attempt(&self, queue: usize) -> Attempt {
        let mut state = lock(&self.state);
        let now = Instant::now();
        if state.closed {
            return Attempt::Closed;
        }
        if state.free() > 0 && state.best(now) == Some(queue) {
            let grant = self.grant(&mut state, queue);
            self.wake_next(&state);
            return grant.map_or(Attempt::Closed, Attempt::Granted);
        }
        let Some(mine) = state.queues.get(queue) else { return Attempt::Closed };
        let blocked = state.queues.iter().enumerate().filter(|(_, turn)| turn.blocked && mine.hot && state.free() == 0);
        let to_end: Vec<usize> = blocked.map(|(queue, _)| queue).collect();
        let preceded = state.preceded_until(mine.start, now).filter(|_| state.free() > 0);
        let wait = if let Some(until) = preceded {
            until - now
        } else if !to_end.is_empty() {
            RECLAIM
        } else if now < mine.probe_at {
            mine.probe_at - now
        } else {
            LONGEST_WAIT
        };
        Attempt::Wait(wait, to_end)
    }

    /// Waits until it may be the turn of the queue.
    pub async fn turn(&self, queue: usize, longest: Duration) {
        if let Some(turn) = self.turns.get(queue) {
            let _ = tokio::time::timeout(longest, turn.notified()).await;
        }
    }

    fn grant(&self, state: &mut State, queue: usize) -> Option<Grant> {
        let contended = state.is_contended(queue);
        let hot_weight: f64 = state.queues.iter().filter(|turn| turn.hot).map(|turn| turn.weight).sum();
        let (free, all, total) = (state.free(), state.queues.len(), state.total);
        let turn = state.queues.get_mut(queue)?;
        let count = if all == 1 {
            free
        } else if turn.hot {
            share(free, turn.weight / hot_weight)
        } else if contended {
            1
        } else {
            (total / all).clamp(1, free)
        };
        turn.ticket = None;
        // A hot queue asks without blocking, so that it is known at once when it is empty.
        let block = all == 1 || !(turn.hot || contended);
        turn.blocked = block;
        turn.precedes_until = turn.hot.then(|| Instant::now() + PRECEDENCE);
        turn.use_up(count);
        state.clock = turn.start;
        state.used += count;
        Some(Grant { count, block })
    }

    /// After a pop that delivered `delivered` messages: frees the other permits.
    pub fn popped(&self, queue: usize, grant: Grant, delivered: usize) {
        let mut state = lock(&self.state);
        state.used = state.used.saturating_sub(grant.count.saturating_sub(delivered));
        let all = state.queues.len();
        if let Some(turn) = state.queues.get_mut(queue) {
            turn.use_up(delivered);
            turn.precedes_until = None;
            turn.blocked = false;
            let was_hot = turn.hot;
            turn.hot = all > 1 && delivered > 0 && delivered == grant.count;
            if delivered == 0 {
                turn.probe_at = Instant::now() + PROBE;
            }
            if was_hot && !turn.hot {
                self.turns.iter().for_each(Notify::notify_one);
            }
        }
        self.wake_next(&state);
    }

    /// Takes permits for messages that were delivered after the pop had given up its own. Returns how many there were,
    /// at most `wanted`.
    pub fn reclaim(&self, wanted: usize) -> usize {
        let mut state = lock(&self.state);
        let taken = state.free().min(wanted);
        state.used += taken;
        taken
    }

    /// Frees the permits of handlers that have finished.
    pub fn release(&self, permits: usize) {
        if permits > 0 {
            let mut state = lock(&self.state);
            state.used = state.used.saturating_sub(permits);
            self.wake_next(&state);
        }
    }

    /// Ends all waiting.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.turns.iter().for_each(Notify::notify_one);
    }

    fn wake_next(&self, state: &State) {
        let next = if state.free() > 0 { state.best(Instant::now()) } else { None };
        if let Some(turn) = next.and_then(|queue| self.turns.get(queue)) {
            turn.notify_one();
        }
    }
}

/// A share of the free permits, at least one.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small number"
)]
fn share(free: usize, part: f64) -> usize {
    ((free as f64 * part).ceil() as usize).clamp(1, free)
}

#[cfg(test)]
mod tests {
    use super::{Attempt, Grant, Permits};

    fn acquire(permits: &Permits, queue: usize) -> Grant {
        permits.enter(queue);
        match permits.attempt(queue) {
            Attempt::Granted(grant) => grant,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_queue_gets_all_free_permits() {
        let permits = Permits::new(8, &[1]);
        assert_eq!(acquire(&permits, 0), Grant { count: 8, block: true });
        permits.popped(0, Grant { count: 8, block: true }, 5);
        assert_eq!(acquire(&permits, 0), Grant { count: 3, block: true });
        permits.popped(0, Grant { count: 3, block: true }, 0);
        permits.release(5);
        assert_eq!(acquire(&permits, 0), Grant { count: 8, block: true });
        permits.close();
        assert_eq!(permits.attempt(0), Attempt::Closed);
    }

    #[test]
    fn idle_queues_block_with_a_part_of_the_permits_each() {
        let permits = Permits::new(8, &[1, 1, 1]);
        for queue in 0..3 {
            assert_eq!(acquire(&permits, queue), Grant { count: 2, block: true });
        }
    }

    #[test]
    fn idle_queues_take_turns_whatever_they_were_given_before() {
        let permits = Permits::new(1, &[1, 1, 1]);
        for _ in 0..24 {
            let grant = acquire(&permits, 0);
            permits.popped(0, grant, 1);
            permits.release(1);
        }
        let grant = acquire(&permits, 0);
        permits.popped(0, grant, 0);
        let holder = acquire(&permits, 2);
        (0..2).for_each(|queue| permits.enter(queue));
        permits.popped(2, holder, 0);
        for queue in 0..2 {
            assert!(matches!(permits.attempt(1 - queue), Attempt::Wait(..)) || queue == 1);
            let Attempt::Granted(grant) = permits.attempt(queue) else { panic!("it is the turn of {queue}") };
            permits.popped(queue, grant, 0);
        }
    }

    #[test]
    fn a_smaller_pool_waits_for_permits_in_use() {
        let permits = Permits::new(4, &[1]);
        let all = acquire(&permits, 0);
        permits.popped(0, all, 3);
        permits.resize(2);
        // Three work and one was free: when two of the three have finished, one of two is free.
        permits.release(1);
        assert_eq!(super::lock(&permits.state).free(), 0);
        permits.release(1);
        assert_eq!(acquire(&permits, 0), Grant { count: 1, block: true });
        permits.popped(0, Grant { count: 1, block: true }, 0);
        permits.resize(5);
        permits.release(1);
        assert_eq!(acquire(&permits, 0), Grant { count: 5, block: true });
    }

    #[test]
    fn hot_queues_share_permits_by_their_weights() {
        let permits = Permits::new(1, &[4, 1]);
        let mut served = [0_u32; 2];
        // Both always have messages, and one permit is free at a time.
        for queue in 0..2 {
            let grant = acquire(&permits, queue);
            permits.popped(queue, grant, grant.count);
            permits.release(1);
        }
        (0..2).for_each(|queue| permits.enter(queue));
        for _ in 0..500 {
            let (queue, grant) = (0..2)
                .find_map(|queue| match permits.attempt(queue) {
                    Attempt::Granted(grant) => Some((queue, grant)),
                    _ => None,
                })
                .unwrap();
            served[queue] += 1;
            permits.popped(queue, grant, grant.count);
            permits.enter(queue);
            permits.release(1);
        }
        assert!((395..=405).contains(&served[0]), "{served:?}");
    }

    #[test]
    fn a_permit_waits_for_a_popping_queue_whose_turn_is_earlier() {
        for delivered in [1, 0] {
            let permits = Permits::new(2, &[4, 1]);
            let (high, low) = (0, 1);
            for queue in [high, low] {
                let grant = acquire(&permits, queue);
                permits.popped(queue, grant, 1);
            }
            permits.enter(low);
            permits.release(1);
            let first = acquire(&permits, high);
            // The second handler ends while the pop for the first one is under way.
            permits.release(1);
            assert!(matches!(permits.attempt(low), Attempt::Wait(..)));
            permits.popped(high, first, delivered);
            permits.enter(high);
            let next = if delivered > 0 { high } else { low };
            assert!(matches!(permits.attempt(next), Attempt::Granted(_)), "{delivered} delivered");
        }
    }

    #[test]
    fn a_hot_queue_ends_blocked_pops_that_hold_the_permits() {
        let permits = Permits::new(2, &[1, 1]);
        let hot = acquire(&permits, 0);
        let idle = acquire(&permits, 1);
        assert!(idle.block);
        permits.popped(0, hot, hot.count);
        permits.enter(0);
        let Attempt::Wait(_, to_end) = permits.attempt(0) else { panic!("no permit is free") };
        assert_eq!(to_end, [1]);
        permits.popped(1, idle, 0);
        assert_eq!(permits.attempt(0), Attempt::Granted(Grant { count: 1, block: false }));
    }
}
