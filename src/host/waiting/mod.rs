//! The clients that wait, and the keys at which they do.
//!
//! | a client waits for | command | file |
//! | --- | --- | --- |
//! | a delivery | `DQ.POP`, `DQ.MPOP`, `DQ.ACKPOP` with `BLOCK` | [`delivery`] |
//! | a message | `DQ.AWAIT` with `BLOCK` | [`message`] |
//!
//! A client is called when its key is signalled. One that waits for a delivery is served if the queue has a message for
//! it, and the clients that came before it were served or wait for more; one that waits for a message, if the message
//! is *awaited* ([`awaited`]), and an effect ended it.
//!
//! For each key the table here says how many clients wait, which messages are awaited, and when an answer that the
//! server refused ([`admission`](super::admission)) is tried again. So a change tells whether its key must be
//! signalled. A client that was served is remembered until the server has unblocked it ([`answered`]). Both kinds of
//! clients are blocked, called and freed in the same way ([`client`]).
//!
//! A key is a database and a name, as the server keeps it for a blocked client: `SWAPDB`, `RENAME` and `MOVE` move
//! values, but clients wait where they are.

mod answered;
pub mod awaited;
pub mod barren;
mod client;
pub mod delivery;
pub mod message;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::session::Session;
use crate::module_api::alarms::BUG;
use crate::module_api::log::{log, Level};
use crate::schedule::with_schedule;
use awaited::{Awaited, AwaitedMessages};
use dq_queue::id::Sequence;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::Effect;

/// The delay before an answer that the server refused is tried again. No event tells a module that the server accepts
/// commands again. One attempt costs a few microseconds for each client that is blocked on the key.
const RETRY: DurationMs = DurationMs::new(50);

/// The number of clients that wait for a delivery.
static FOR_DELIVERY: AtomicU64 = AtomicU64::new(0);
/// The number of clients that wait for a message to be done.
static FOR_MESSAGE: AtomicU64 = AtomicU64::new(0);

/// The keys that a client named, without duplicates.
#[derive(Debug)]
pub struct Names {
    db: i32,
    names: Box<[Box<[u8]>]>,
}

impl Names {
    /// Collects the distinct names in a database. O(k log k).
    pub fn new<'a>(db: i32, names: impl IntoIterator<Item = &'a [u8]>) -> Names {
        let mut names: Vec<Box<[u8]>> = names.into_iter().map(Into::into).collect();
        names.sort_unstable();
        names.dedup();
        Names { db, names: names.into() }
    }

    /// Each name once.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }
}

/// What waits at a key.
#[derive(Debug, Default)]
struct Key {
    /// How many clients wait for a delivery.
    for_delivery: u64,
    /// How many clients wait for a message to be done.
    for_message: u64,
    messages: AwaitedMessages,
    /// When the timer will look at the key, if the server refused to answer a client.
    retry: Option<UnixMs>,
    /// When the timer will look at the key because a message has waited for long enough for others.
    linger: Option<UnixMs>,
    /// Whether a client of `DQ.AWAIT` was to be answered, but the server refused its command.
    is_postponed: bool,
}

/// All keys at which clients wait.
#[derive(Debug, Default)]
struct Table(HashMap<i32, HashMap<Box<[u8]>, Key>>);

impl Table {
    fn get(&mut self, db: i32, name: &[u8]) -> Option<&mut Key> {
        self.0.get_mut(&db)?.get_mut(name)
    }

    fn get_or_add(&mut self, db: i32, name: &[u8]) -> &mut Key {
        self.0.entry(db).or_default().entry(name.into()).or_default()
    }

    /// Changes what waits at a key, and removes the key if nothing does any more.
    fn reduce(&mut self, db: i32, name: &[u8], change: impl FnOnce(&mut Key)) {
        let Some(names) = self.0.get_mut(&db) else { return };
        let Some(key) = names.get_mut(name) else { return };
        change(key);
        if key.for_delivery == 0 && key.for_message == 0 {
            names.remove(name);
        }
        if names.is_empty() {
            self.0.remove(&db);
        }
    }

    fn enter(&mut self, keys: &Names) {
        keys.iter().for_each(|name| self.get_or_add(keys.db, name).for_delivery += 1);
    }

    fn leave(&mut self, keys: &Names) {
        for name in keys.iter() {
            self.reduce(keys.db, name, |key| key.for_delivery = key.for_delivery.saturating_sub(1));
        }
    }

    fn clients(&mut self, db: i32, name: &[u8]) -> u64 {
        self.get(db, name).map_or(0, |key| key.for_delivery + key.for_message)
    }

    /// Schedules another attempt to answer. Returns its time, or `None` if one is already scheduled: one attempt serves
    /// all clients of the key, however many were refused.
    fn plan_retry(&mut self, db: i32, name: &[u8], now: UnixMs) -> Option<UnixMs> {
        let key = self.get(db, name)?;
        // A later time was scheduled before the clock stepped back.
        plan(&mut key.retry, now, now.after(RETRY))
    }

    /// Schedules a look at the key at `end`. Returns `None` if an earlier one is already scheduled: it serves too,
    /// since every client that gathers at the key then says again until when it waits.
    fn plan_linger(&mut self, db: i32, name: &[u8], now: UnixMs, end: UnixMs) -> Option<UnixMs> {
        plan(&mut self.get(db, name)?.linger, now, end)
    }
}

/// Moves a planned look to `at`, unless there will be one until then. Returns the time of the new look.
fn plan(planned: &mut Option<UnixMs>, now: UnixMs, at: UnixMs) -> Option<UnixMs> {
    if planned.is_some_and(|planned| now < planned && planned <= at) {
        return None;
    }
    *planned = Some(at);
    *planned
}

thread_local! {
    /// Clients block, are answered and are freed on the server's main thread.
    static TABLE: RefCell<Table> = RefCell::default();
}

/// Returns `None`, and does nothing, if the table is in use; that would be a bug.
fn with_table<R>(step: impl FnOnce(&mut Table) -> R) -> Option<R> {
    TABLE.with(|table| match table.try_borrow_mut() {
        Ok(mut table) => Some(step(&mut table)),
        Err(_) => {
            log(Level::Warning, &format!("the keys of blocked clients were asked for while in use, {BUG}"));
            None
        }
    })
}

/// The number of blocked clients.
pub fn clients() -> u64 {
    FOR_DELIVERY.load(Relaxed) + FOR_MESSAGE.load(Relaxed)
}

/// The number of clients that are blocked on a key.
pub fn clients_at(session: &Session<'_>) -> u64 {
    with_table(|table| table.clients(session.db, session.name.bytes())).unwrap_or(0)
}

/// Counts a client that waits for a delivery at these keys.
pub fn enter(keys: &Names) {
    with_table(|table| table.enter(keys));
    FOR_DELIVERY.fetch_add(1, Relaxed);
}

/// Reverts [`enter`].
pub fn leave(keys: &Names) {
    with_table(|table| table.leave(keys));
    FOR_DELIVERY.fetch_sub(1, Relaxed);
}

/// Counts a client that waits for the message with the id `id`, which has this sequence at present.
pub fn enter_for_message(session: &Session<'_>, id: &[u8], sequence: Sequence) -> Option<Rc<Awaited>> {
    let awaited = with_table(|table| {
        let key = table.get_or_add(session.db, session.name.bytes());
        key.for_message += 1;
        key.messages.enter(id, sequence)
    });
    FOR_MESSAGE.fetch_add(u64::from(awaited.is_some()), Relaxed);
    awaited
}

/// Reverts [`enter_for_message`].
pub fn leave_for_message(db: i32, name: &[u8], awaited: &Rc<Awaited>) {
    with_table(|table| {
        table.reduce(db, name, |key| {
            key.for_message = key.for_message.saturating_sub(1);
            key.messages.leave(awaited);
        });
    });
    FOR_MESSAGE.fetch_sub(1, Relaxed);
}

/// Makes the timer signal the key again, because the server refused to answer a client at present.
pub fn retry(session: &Session<'_>) {
    look_when(session, |table| table.plan_retry(session.db, session.name.bytes(), session.now));
}

/// Makes the timer signal the key at `end`, when a message will have waited for long enough for others.
pub fn linger(session: &Session<'_>, end: UnixMs) {
    look_when(session, |table| table.plan_linger(session.db, session.name.bytes(), session.now, end));
}

/// Makes the timer look at the key at the time that `plan` returns.
fn look_when(session: &Session<'_>, plan: impl FnOnce(&mut Table) -> Option<UnixMs>) {
    if let Some(at) = with_table(plan).flatten() {
        with_schedule(|schedule| {
            schedule.agenda.look_at(at, session.db, session.name.bytes());
            schedule.rearm(&session.ctx, session.now);
        });
    }
}

/// Runs `step` on a key at which clients wait for messages to be done. Costs nothing if there is no such client.
fn with_awaited<R>(session: &Session<'_>, step: impl FnOnce(&mut Key) -> R) -> Option<R> {
    if FOR_MESSAGE.load(Relaxed) == 0 {
        return None;
    }
    with_table(|table| table.get(session.db, session.name.bytes()).filter(|key| key.for_message > 0).map(step))
        .flatten()
}

/// Records that the awaited message is held, and has this sequence at present.
pub fn bind(session: &Session<'_>, awaited: &Rc<Awaited>, sequence: Sequence) {
    with_awaited(session, |key| key.messages.bind(awaited, sequence));
}

/// Whether a client waits for a message of this key to be done.
#[inline(always)]
pub fn is_awaited(session: &Session<'_>) -> bool {
    FOR_MESSAGE.load(Relaxed) > 0 && with_awaited(session, |_| ()).is_some()
}

/// Takes note of an effect on a key. Returns whether the key must be signalled.
pub fn note(session: &Session<'_>, effect: &Effect<'_>) -> bool {
    with_awaited(session, |key| key.messages.note(effect)).unwrap_or(false)
}

/// Takes note that messages of a key may have ended that no effect names: time has made them dead, or their ids now
/// belong to others. Returns whether the key must be signalled.
pub fn look_again(session: &Session<'_>) -> bool {
    with_awaited(session, |key| key.messages.look_again()).unwrap_or(false)
}

/// Records that a client of this key is to be answered as soon as the server accepts its command.
pub fn postpone(session: &Session<'_>) {
    with_awaited(session, |key| key.is_postponed = true);
}

/// Whether a client of this key was to be answered later. The key must be signalled then.
pub fn take_postponed(session: &Session<'_>) -> bool {
    with_awaited(session, |key| std::mem::take(&mut key.is_postponed)).unwrap_or(false)
}

/// Whether a client that waits for a delivery may be blocked on this key.
pub fn may_wait_for_delivery(session: &Session<'_>) -> bool {
    FOR_DELIVERY.load(Relaxed) > 0 && (FOR_MESSAGE.load(Relaxed) == 0 || waits_for_delivery(session))
}

#[cold]
fn waits_for_delivery(session: &Session<'_>) -> bool {
    with_table(|table| table.get(session.db, session.name.bytes()).is_some_and(|key| key.for_delivery > 0))
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(db: i32, names: &[&str]) -> Names {
        Names::new(db, names.iter().map(|name| name.as_bytes()))
    }

    #[test]
    fn a_client_counts_once_on_each_of_its_keys() {
        let mut table = Table::default();
        let (first, second) = (names(0, &["b", "a", "b"]), names(0, &["b"]));
        table.enter(&first);
        table.enter(&second);
        assert_eq!([table.clients(0, b"a"), table.clients(0, b"b"), table.clients(1, b"b")], [1, 2, 0]);
        table.leave(&first);
        assert_eq!([table.clients(0, b"a"), table.clients(0, b"b")], [0, 1]);
        table.leave(&second);
        assert!(table.0.is_empty());
    }

    #[test]
    fn clients_that_are_refused_share_one_retry() {
        let at = UnixMs::new;
        let mut table = Table::default();
        table.enter(&names(0, &["a"]));
        let planned = table.plan_retry(0, b"a", at(1_000));
        assert_eq!(planned, Some(at(1_000).after(RETRY)));
        assert_eq!(table.plan_retry(0, b"a", at(1_001)), None);
        assert!(table.plan_retry(0, b"a", planned.unwrap()).is_some(), "its time has come");
        assert!(table.plan_retry(0, b"a", at(5)).is_some(), "the clock has stepped back");
        assert_eq!(table.plan_retry(0, b"nobody", at(1_000)), None);
    }

    #[test]
    fn clients_that_gather_share_the_earliest_look() {
        let at = UnixMs::new;
        let mut table = Table::default();
        table.enter(&names(0, &["a"]));
        assert!(table.plan_linger(0, b"a", at(1_000), at(1_500)).is_some());
        assert_eq!(table.plan_linger(0, b"a", at(1_001), at(1_700)), None, "it is asked again at 1,500");
        assert!(table.plan_linger(0, b"a", at(1_002), at(1_300)).is_some());
        assert!(table.plan_linger(0, b"a", at(1_300), at(1_700)).is_some(), "its time has come");
        assert_eq!(table.plan_linger(0, b"nobody", at(1_000), at(1_500)), None);
    }
}
