//! The key at which the clients that are being called find nothing.
//!
//! When a key is signalled, the server calls every client that waits there, in the order in which they were blocked,
//! and executes nothing in between. So once one of them has found too few messages, those behind it that want as many,
//! or more, need not look. With thousands of waiting clients, all but two end here.
//!
//! Clients are numbered as they are blocked. A client with the number of the last one that was called, or a lower one,
//! is called because the key was signalled again, and looks; and so does every client after another one has been
//! blocked or freed.

use dq_queue::time::DurationMs;
use std::cell::RefCell;

/// What a client needs to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// How many messages at once, at least one.
    pub least: usize,
    /// How long a message waits at most until that many are there.
    pub linger: DurationMs,
    /// Whether they are leased. `MAXINFLIGHT` may leave room for some that are not, and for none that are.
    pub is_leased: bool,
}

impl Need {
    /// Whether a client with the need `other` finds too few messages wherever this one does.
    fn is_met_before(self, other: Need) -> bool {
        self.least <= other.least && self.linger <= other.linger && self.is_leased == other.is_leased
    }
}

/// What the last client that was called has found.
#[derive(Debug, Default)]
struct Barren {
    /// The number of the client; `None` if it may have found something.
    last: Option<u64>,
    /// The need that was not met; `None` if no need is.
    unmet: Option<Need>,
    db: i32,
    name: Vec<u8>,
    /// The number of the client that was blocked last.
    blocked: u64,
}

thread_local! {
    /// Clients are blocked, called and freed on the server's main thread.
    static BARREN: RefCell<Barren> = RefCell::default();
}

impl Barren {
    fn number(&mut self) -> u64 {
        self.last = None;
        self.blocked += 1;
        self.blocked
    }

    fn note(&mut self, number: u64, unmet: Option<Need>, db: i32, name: &[u8]) {
        (self.last, self.unmet, self.db) = (Some(number), unmet, db);
        self.name.clear();
        self.name.extend_from_slice(name);
    }

    fn holds_for(&mut self, number: u64, need: Need, db: i32, name: &[u8]) -> bool {
        let holds = self.last.is_some_and(|last| last < number)
            && self.unmet.is_none_or(|unmet| unmet.is_met_before(need))
            && self.db == db
            && self.name == name;
        self.last = holds.then_some(number);
        holds
    }
}

/// The number of a client that is being blocked.
pub fn number() -> u64 {
    BARREN.with_borrow_mut(Barren::number)
}

/// Takes note that the client with this number has found at a key that its need is not met, or that no need is.
pub fn note(number: u64, unmet: Option<Need>, db: i32, name: &[u8]) {
    BARREN.with_borrow_mut(|barren| barren.note(number, unmet, db, name));
}

/// Whether the client with this number, which is called for this key, need not look.
pub fn holds_for(number: u64, need: Need, db: i32, name: &[u8]) -> bool {
    BARREN.with_borrow_mut(|barren| barren.holds_for(number, need, db, name))
}

/// Forgets what was found, because a client was freed.
pub fn forget() {
    BARREN.with_borrow_mut(|barren| barren.last = None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(least: usize, linger: u64) -> Need {
        Need { least, linger: DurationMs::new(linger), is_leased: true }
    }

    const ONE: Need = Need { least: 1, linger: DurationMs::ZERO, is_leased: true };

    #[test]
    fn only_those_behind_the_one_that_found_nothing_need_not_look() {
        let mut barren = Barren::default();
        let [first, second, third] = [(); 3].map(|()| barren.number());
        assert!(!barren.holds_for(first, ONE, 0, b"q"));
        barren.note(first, None, 0, b"q");
        assert!(barren.holds_for(second, ONE, 0, b"q") && barren.holds_for(third, ONE, 0, b"q"));
        assert!(!barren.holds_for(first, ONE, 0, b"q"), "the key was signalled again");
        barren.note(second, None, 0, b"q");
        assert!(!barren.holds_for(third, ONE, 1, b"q"), "another database");
        barren.note(second, None, 0, b"q");
        assert!(!barren.holds_for(third, ONE, 0, b"r"), "another key");
        assert!(!barren.holds_for(third, ONE, 0, b"q"), "another one was called in between");
        barren.note(second, None, 0, b"q");
        let fourth = barren.number();
        assert!(!barren.holds_for(fourth, ONE, 0, b"q"), "a client was blocked in between");
    }

    #[test]
    fn a_client_that_needs_less_looks() {
        let mut barren = Barren::default();
        let [first, second] = [(); 2].map(|()| barren.number());
        let mut holds = |unmet, need| {
            barren.note(first, Some(unmet), 0, b"q");
            barren.holds_for(second, need, 0, b"q")
        };
        assert!(holds(need(5, 100), need(5, 100)) && holds(need(5, 100), need(6, 200)) && holds(ONE, need(5, 100)));
        assert!(!holds(need(5, 100), need(4, 100)) && !holds(need(5, 100), need(5, 99)) && !holds(need(5, 100), ONE));
        assert!(!holds(ONE, Need { is_leased: false, ..ONE }));
    }
}
