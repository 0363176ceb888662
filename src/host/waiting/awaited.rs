//! The messages of a key that clients wait for with `DQ.AWAIT`. They tell whether a change of a queue must signal its
//! key.
//!
//! The server wakes clients by key, and a key may have many of them. An effect names its messages, so a look-up here
//! tells whether one of them is awaited: only then is the key signalled. The server then calls every client of the key,
//! and each of them sees in two comparisons whether its own message is concerned.
//!
//! A message is known here by its sequence, and also by its name, since a replacement has the name but another
//! sequence. A change without an effect (a key was loaded, renamed, swapped or flushed; time made messages dead) makes
//! all clients of the key look again.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dq_queue::id::{Id, Sequence};
use dq_queue::{Effect, News};

/// Counts the events by which keys may have got other values without an effect.
static REPLACED: AtomicU64 = AtomicU64::new(0);

/// Records that keys may have got other values: a load, a copy, a rename, a deletion, a swap or a flush.
pub fn values_replaced() {
    REPLACED.fetch_add(1, Relaxed);
}

/// A message that clients wait for.
#[derive(Debug)]
pub struct Awaited {
    /// The id by which the clients know it.
    id: Box<[u8]>,
    /// The sequence of the message that has the id at present.
    sequence: Cell<Sequence>,
    /// Whether an effect has completed or removed the message, or made it dead.
    is_over: Cell<bool>,
    clients: Cell<u64>,
    /// Changes when all clients of the key have to look again.
    key_looks: Rc<Cell<u64>>,
}

/// What a client had seen when it last looked: as long as nothing has changed since, it need not look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    key_looks: u64,
    replaced: u64,
}

impl Awaited {
    /// What a client that looks now sees.
    pub fn seen_now(&self) -> Seen {
        Seen { key_looks: self.key_looks.get(), replaced: REPLACED.load(Relaxed) }
    }

    /// Whether a client that last saw `seen` has to look.
    pub fn has_news(&self, seen: Seen) -> bool {
        self.is_over.get() || seen != self.seen_now()
    }

    /// The id by which the clients know the message.
    pub fn id(&self) -> &[u8] {
        &self.id
    }
}

/// The awaited messages of a key.
#[derive(Debug, Default)]
pub struct AwaitedMessages {
    looks: Rc<Cell<u64>>,
    by_sequence: HashMap<Sequence, Rc<Awaited>>,
    by_name: HashMap<Box<[u8]>, Rc<Awaited>>,
}

impl AwaitedMessages {
    /// Counts a client that waits for the message with the id `id`, which has this sequence at present.
    pub fn enter(&mut self, id: &[u8], sequence: Sequence) -> Rc<Awaited> {
        let is_named = matches!(Id::parse(id), Some(Id::Named(_)));
        let known = if is_named { self.by_name.get(id) } else { self.by_sequence.get(&sequence) };
        let awaited = known.cloned().unwrap_or_else(|| {
            let key_looks = Rc::clone(&self.looks);
            let (is_over, clients) = (Cell::new(false), Cell::new(0));
            Rc::new(Awaited { id: id.into(), sequence: Cell::new(sequence), is_over, clients, key_looks })
        });
        awaited.clients.set(awaited.clients.get() + 1);
        if is_named {
            self.by_name.insert(id.into(), Rc::clone(&awaited));
        }
        self.bind(&awaited, sequence);
        awaited
    }

    /// Reverts [`enter`](Self::enter).
    pub fn leave(&mut self, awaited: &Rc<Awaited>) {
        awaited.clients.set(awaited.clients.get().saturating_sub(1));
        if awaited.clients.get() == 0 {
            self.by_name.remove(awaited.id());
            if self.by_sequence.get(&awaited.sequence.get()).is_some_and(|held| Rc::ptr_eq(held, awaited)) {
                self.by_sequence.remove(&awaited.sequence.get());
            }
        }
    }

    /// Records that the message with `sequence` is over. Returns whether it is awaited.
    fn end(&self, sequence: Sequence) -> bool {
        let found = self.by_sequence.get(&sequence);
        if let Some(awaited) = found {
            awaited.is_over.set(true);
        }
        found.is_some()
    }

    /// Records that the awaited message has this sequence from now on.
    pub fn bind(&mut self, awaited: &Rc<Awaited>, sequence: Sequence) {
        let before = awaited.sequence.replace(sequence);
        if self.by_sequence.get(&before).is_some_and(|held| Rc::ptr_eq(held, awaited)) {
            self.by_sequence.remove(&before);
        }
        awaited.is_over.set(false);
        self.by_sequence.insert(sequence, Rc::clone(awaited));
    }

    /// Makes all clients of the key look again, and returns `true`.
    pub fn look_again(&self) -> bool {
        self.looks.set(self.looks.get().wrapping_add(1));
        true
    }

    /// Takes note of an effect. Returns whether a client may have to be answered.
    pub fn note(&mut self, effect: &Effect<'_>) -> bool {
        let mut answers = false;
        effect.news(|news| answers |= self.hear(news));
        answers
    }

    /// Takes note of a part of an effect. Returns whether a client may have to be answered.
    fn hear(&mut self, news: News<'_>) -> bool {
        let (awaited, sequence) = match news {
            News::Ended(sequence) => return self.end(sequence),
            News::LookAgain => return self.look_again(),
            News::Named(name, sequence) => (self.by_name.get(name), sequence),
            News::Renewed(before, sequence) => (self.by_sequence.get(&before), sequence),
        };
        if let Some(awaited) = awaited.cloned() {
            self.bind(&awaited, sequence);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_effect_on_an_awaited_message_is_news() {
        let mut key = AwaitedMessages::default();
        let awaited = key.enter(b"m", Sequence(5));
        let again = key.enter(b"m", Sequence(5));
        assert!(Rc::ptr_eq(&awaited, &again));
        let seen = awaited.seen_now();
        assert!(!key.note(&Effect::Ack(vec![Sequence(4), Sequence(6)])));
        assert!(!awaited.has_news(seen));
        assert!(key.note(&Effect::Ack(vec![Sequence(4), Sequence(5)])));
        assert!(awaited.has_news(seen));
        key.leave(&awaited);
        key.leave(&again);
        assert!(key.by_name.is_empty() && key.by_sequence.is_empty());
    }

    #[test]
    fn a_message_is_followed_when_its_sequence_changes() {
        let mut key = AwaitedMessages::default();
        let awaited = key.enter(b"m", Sequence(5));
        assert!(!key.hear(News::Renewed(Sequence(5), Sequence(9))));
        assert!(!key.note(&Effect::Ack(vec![Sequence(5)])), "nobody waits for it any more");
        assert!(key.note(&Effect::Ack(vec![Sequence(9)])));
        assert!(awaited.has_news(awaited.seen_now()));
    }
}
