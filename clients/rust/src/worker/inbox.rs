//! A queue between threads.

use crate::connect::lock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

pub(super) struct Inbox<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    waiting: usize,
    nudged: bool,
    closed: bool,
}

impl<T> Inbox<T> {
    pub fn new() -> Inbox<T> {
        Inbox {
            state: Mutex::new(State { items: VecDeque::new(), waiting: 0, nudged: false, closed: false }),
            filled: Condvar::new(),
        }
    }

    /// Adds items. They are returned if the inbox is closed.
    pub fn put(&self, items: Vec<T>) -> Result<(), Vec<T>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(items);
        }
        let wake = state.waiting.min(items.len());
        state.items.extend(items);
        drop(state);
        (0..wake).for_each(|_| self.filled.notify_one());
        Ok(())
    }

    /// Waits for an item. `None` if the inbox is closed and empty.
    pub fn take(&self) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            if let Some(item) = state.items.pop_front() {
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state.waiting += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Takes all items, waiting for one until `deadline`. `None` if the inbox is closed and empty.
    pub fn take_all(&self, deadline: Option<Instant>) -> Option<VecDeque<T>> {
        let mut state = lock(&self.state);
        while state.items.is_empty() && !std::mem::take(&mut state.nudged) {
            if state.closed {
                return None;
            }
            state.waiting += 1;
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => {
                    state.waiting -= 1;
                    break;
                }
                Some(left) => self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            state.waiting -= 1;
        }
        Some(std::mem::take(&mut state.items))
    }

    /// Ends the waiting of `take_all`, so that it is called with another deadline.
    pub fn nudge(&self) {
        lock(&self.state).nudged = true;
        self.filled.notify_all();
    }

    /// Refuses further items, and returns those that have not been taken.
    pub fn close(&self) -> VecDeque<T> {
        let mut state = lock(&self.state);
        state.closed = true;
        self.filled.notify_all();
        std::mem::take(&mut state.items)
    }

    /// Refuses further items. Those in the inbox can still be taken.
    pub fn end(&self) {
        lock(&self.state).closed = true;
        self.filled.notify_all();
    }
}
