//! The messages that clients wait for with `DQ.AWAIT`, so that whoever changes a queue knows whether to signal its key.
//!
//! The server wakes clients by key, and a key may have many of them. An effect names its messages, so a look-up here
//! tells whether one of them is awaited: only then is the key signalled. The server then calls every client of the key,
//! and each of them sees in two comparisons whether its own message is concerned.
//!
//! A message is known here by its sequence, and also by its name, since a replacement has the name but another
//! sequence. What no effect tells (a key was loaded, renamed, swapped, flushed; time made messages dead) makes all
//! clients of the key look again.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::blocked_keys::with_blocked;
use super::gauges;
use crate::module_api::alarms::BUG;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::log::{log, Level};
use dq_queue::id::{Id, Sequence};
use dq_queue::{Effect, News};

/// The number of clients that wait for a message.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// Counts the events by which keys may have got other values without an effect.
static REPLACED: AtomicU64 = AtomicU64::new(0);

/// Records that keys may have got other values: a load, a copy, a rename, a deletion, a swap or a flush.
#[inline]
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
    /// What a client sees that looks now.
    #[inline]
    pub fn seen_now(&self) -> Seen {
        Seen { key_looks: self.key_looks.get(), replaced: REPLACED.load(Relaxed) }
    }

    /// Whether a client that last saw `seen` has to look.
    #[inline]
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
struct Key {
    clients: u64,
    looks: Rc<Cell<u64>>,
    /// Whether a client was to be answered, but the server refused its command.
    is_pending: bool,
    by_sequence: HashMap<Sequence, Rc<Awaited>>,
    by_name: HashMap<Box<[u8]>, Rc<Awaited>>,
}

impl Key {
    /// Records that the message with `sequence` is over. Returns whether it is awaited.
    fn end(&self, sequence: Sequence) -> bool {
        let found = self.by_sequence.get(&sequence);
        if let Some(awaited) = found {
            awaited.is_over.set(true);
        }
        found.is_some()
    }

    /// Records that the awaited message has this sequence from now on.
    fn bind(&mut self, awaited: &Rc<Awaited>, sequence: Sequence) {
        let before = awaited.sequence.replace(sequence);
        if self.by_sequence.get(&before).is_some_and(|held| Rc::ptr_eq(held, awaited)) {
            self.by_sequence.remove(&before);
        }
        awaited.is_over.set(false);
        self.by_sequence.insert(sequence, Rc::clone(awaited));
    }

    fn look_again(&self) -> bool {
        self.looks.set(self.looks.get().wrapping_add(1));
        true
    }

    /// Takes note of an effect. Returns whether a client may have to be answered.
    fn note(&mut self, effect: &Effect<'_>) -> bool {
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

/// The keys on which clients wait for a message.
#[derive(Debug, Default)]
struct Keys(HashMap<i32, HashMap<Box<[u8]>, Key>>);

impl Keys {
    fn get(&mut self, db: i32, name: &[u8]) -> Option<&mut Key> {
        self.0.get_mut(&db)?.get_mut(name)
    }

    fn enter(&mut self, db: i32, name: &[u8], id: &[u8], sequence: Sequence) -> Rc<Awaited> {
        let key = self.0.entry(db).or_default().entry(name.into()).or_default();
        key.clients += 1;
        let is_named = matches!(Id::parse(id), Some(Id::Named(_)));
        let known = if is_named { key.by_name.get(id) } else { key.by_sequence.get(&sequence) };
        let awaited = known.cloned().unwrap_or_else(|| {
            let key_looks = Rc::clone(&key.looks);
            let (is_over, clients) = (Cell::new(false), Cell::new(0));
            Rc::new(Awaited { id: id.into(), sequence: Cell::new(sequence), is_over, clients, key_looks })
        });
        awaited.clients.set(awaited.clients.get() + 1);
        if is_named {
            key.by_name.insert(id.into(), Rc::clone(&awaited));
        }
        key.bind(&awaited, sequence);
        awaited
    }

    fn leave(&mut self, db: i32, name: &[u8], awaited: &Rc<Awaited>) {
        let Some(names) = self.0.get_mut(&db) else { return };
        let Some(key) = names.get_mut(name) else { return };
        key.clients = key.clients.saturating_sub(1);
        awaited.clients.set(awaited.clients.get().saturating_sub(1));
        if awaited.clients.get() == 0 {
            key.by_name.remove(awaited.id());
            if key.by_sequence.get(&awaited.sequence.get()).is_some_and(|held| Rc::ptr_eq(held, awaited)) {
                key.by_sequence.remove(&awaited.sequence.get());
            }
        }
        if key.clients == 0 {
            names.remove(name);
        }
        if names.is_empty() {
            self.0.remove(&db);
        }
    }
}

thread_local! {
    /// Clients block, are answered and are freed on the server's main thread.
    static KEYS: RefCell<Keys> = RefCell::default();
}

fn with_keys<R>(step: impl FnOnce(&mut Keys) -> R) -> Option<R> {
    KEYS.with(|keys| match keys.try_borrow_mut() {
        Ok(mut keys) => Some(step(&mut keys)),
        Err(_) => {
            log(Level::Warning, &format!("the awaited messages were asked for while in use, {BUG}"));
            None
        }
    })
}

/// Whether a client waits for a message of any key.
#[inline]
fn somebody_waits() -> bool {
    CLIENTS.load(Relaxed) > 0
}

fn with_key<R>(db: i32, name: &[u8], step: impl FnOnce(&mut Key) -> R) -> Option<R> {
    if !somebody_waits() {
        return None;
    }
    with_keys(|keys| keys.get(db, name).map(step)).flatten()
}

/// Counts a client that waits for the message with the id `id`, which has this sequence at present.
pub fn enter(db: i32, name: &[u8], id: &[u8], sequence: Sequence) -> Option<Rc<Awaited>> {
    let awaited = with_keys(|keys| keys.enter(db, name, id, sequence));
    CLIENTS.fetch_add(u64::from(awaited.is_some()), Relaxed);
    awaited
}

/// Reverts [`enter`].
pub fn leave(db: i32, name: &[u8], awaited: &Rc<Awaited>) {
    if with_keys(|keys| keys.leave(db, name, awaited)).is_some() {
        CLIENTS.fetch_sub(1, Relaxed);
    }
}

/// Records that the awaited message is held, and has this sequence at present.
pub fn bind(db: i32, name: &[u8], awaited: &Rc<Awaited>, sequence: Sequence) {
    with_key(db, name, |key| key.bind(awaited, sequence));
}

/// Whether a client waits for a message of this key. Costs nothing while nobody waits for any message.
#[inline]
pub fn on(ctx: Ctx, name: Name<'_>) -> bool {
    somebody_waits() && on_key(ctx, name)
}

#[cold]
fn on_key(ctx: Ctx, name: Name<'_>) -> bool {
    with_key(ctx.selected_db(), name.bytes(), |_| ()).is_some()
}

/// Takes note of an effect on a key. Returns whether the key must be signalled.
#[inline]
pub fn note(ctx: Ctx, name: Name<'_>, effect: &Effect<'_>) -> bool {
    somebody_waits() && note_on_key(ctx, name, effect)
}

#[cold]
fn note_on_key(ctx: Ctx, name: Name<'_>, effect: &Effect<'_>) -> bool {
    with_key(ctx.selected_db(), name.bytes(), |key| key.note(effect)).unwrap_or(false)
}

/// Takes note that time has made messages of a key dead. Returns whether the key must be signalled.
pub fn note_deaths(db: i32, name: &[u8]) -> bool {
    with_key(db, name, |key| key.look_again()).unwrap_or(false)
}

/// Records that a client of this key is to be answered as soon as the server accepts its command.
pub fn postpone(db: i32, name: &[u8]) {
    with_key(db, name, |key| key.is_pending = true);
}

/// Whether a client of this key was to be answered later. The key must be signalled then.
pub fn take_postponed(db: i32, name: &[u8]) -> bool {
    with_key(db, name, |key| std::mem::take(&mut key.is_pending)).unwrap_or(false)
}

/// Whether a client may be blocked on this key that waits for a delivery.
#[inline]
pub fn may_wait_for_delivery(db: i32, name: &[u8]) -> bool {
    let (blocked, awaiting) = (gauges::blocked_clients(), CLIENTS.load(Relaxed));
    blocked > awaiting && (awaiting == 0 || waits_for_delivery(db, name))
}

#[cold]
fn waits_for_delivery(db: i32, name: &[u8]) -> bool {
    let awaiting = with_key(db, name, |key| key.clients).unwrap_or(0);
    with_blocked(|blocked| blocked.clients(db, name)).unwrap_or(0) > awaiting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_effect_on_an_awaited_message_is_news() {
        let mut keys = Keys::default();
        let awaited = keys.enter(0, b"q", b"m", Sequence(5));
        let again = keys.enter(0, b"q", b"m", Sequence(5));
        assert!(Rc::ptr_eq(&awaited, &again));
        let seen = awaited.seen_now();
        let key = keys.get(0, b"q").unwrap();
        assert!(!key.note(&Effect::Ack(vec![Sequence(4), Sequence(6)])));
        assert!(!awaited.has_news(seen));
        assert!(key.note(&Effect::Ack(vec![Sequence(4), Sequence(5)])));
        assert!(awaited.has_news(seen));
        keys.leave(0, b"q", &awaited);
        keys.leave(0, b"q", &again);
        assert!(keys.0.is_empty());
    }

    #[test]
    fn a_message_is_followed_when_its_sequence_changes() {
        let mut keys = Keys::default();
        let awaited = keys.enter(0, b"q", b"m", Sequence(5));
        let key = keys.get(0, b"q").unwrap();
        assert!(!key.hear(News::Renewed(Sequence(5), Sequence(9))));
        assert!(!key.note(&Effect::Ack(vec![Sequence(5)])), "nobody waits for it any more");
        assert!(key.note(&Effect::Ack(vec![Sequence(9)])));
        assert!(awaited.has_news(awaited.seen_now()));
    }
}
