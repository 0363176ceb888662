//! The keys that clients are blocked on: how many clients each key has, and when a refused delivery is retried.
//!
//! A key is a database and a name, as the server keeps it for a blocked client: `SWAPDB`, `RENAME` and `MOVE` move
//! values, but blocked clients remain where they are.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::module_api::alarms::BUG;
use crate::module_api::log::{log, Level};
use dq_queue::time::{DurationMs, UnixMs};

/// The delay before a delivery that the server refused is retried. No event tells a module that writes are accepted
/// again. One retry costs a few microseconds for each client that is blocked on the key.
const RETRY: DurationMs = DurationMs::new(50);

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

/// All keys that clients are blocked on.
#[derive(Debug, Default)]
pub struct BlockedKeys {
    keys: HashMap<i32, HashMap<Box<[u8]>, BlockedKey>>,
}

/// A key that clients are blocked on.
#[derive(Debug, Default)]
struct BlockedKey {
    clients: u64,
    /// When the timer is going to look at the key, if a delivery was refused.
    retry: Option<UnixMs>,
}

impl BlockedKeys {
    /// Counts a client that is now blocked on these keys.
    pub fn enter(&mut self, keys: &Names) {
        let db = self.keys.entry(keys.db).or_default();
        for name in &keys.names {
            match db.get_mut(name) {
                Some(key) => key.clients += 1,
                None => {
                    db.insert(name.clone(), BlockedKey { clients: 1, retry: None });
                }
            }
        }
    }

    /// Reverts [`enter`](Self::enter).
    pub fn leave(&mut self, keys: &Names) {
        let Some(db) = self.keys.get_mut(&keys.db) else { return };
        for name in &keys.names {
            if let Some(key) = db.get_mut(name) {
                key.clients = key.clients.saturating_sub(1);
                if key.clients == 0 {
                    db.remove(name);
                }
            }
        }
        if db.is_empty() {
            self.keys.remove(&keys.db);
        }
    }

    /// The number of clients that are blocked on a key.
    pub fn clients(&self, db: i32, name: &[u8]) -> u64 {
        self.keys.get(&db).and_then(|db| db.get(name)).map_or(0, |key| key.clients)
    }

    /// Schedules the retry of a delivery that was refused. Returns its time, or `None` if a retry is already scheduled:
    /// one retry serves all clients of the key, however many were refused.
    pub fn plan_retry(&mut self, db: i32, name: &[u8], now: UnixMs) -> Option<UnixMs> {
        let key = self.keys.get_mut(&db)?.get_mut(name)?;
        let at = now.after(RETRY);
        // A time after `at` was scheduled before the clock stepped back.
        if key.retry.is_some_and(|planned| now < planned && planned <= at) {
            return None;
        }
        key.retry = Some(at);
        key.retry
    }
}

thread_local! {
    /// Clients block, are served and are freed on the server's main thread.
    static BLOCKED: RefCell<BlockedKeys> = RefCell::default();
}

/// Runs `step` on the keys that clients are blocked on. Returns `None`, and does nothing, if they are in use; that
/// would be a bug.
pub fn with_blocked<R>(step: impl FnOnce(&mut BlockedKeys) -> R) -> Option<R> {
    BLOCKED.with(|blocked| match blocked.try_borrow_mut() {
        Ok(mut blocked) => Some(step(&mut blocked)),
        Err(_) => {
            log(Level::Warning, &format!("the keys of blocked clients were asked for while in use, {BUG}"));
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(db: i32, names: &[&str]) -> Names {
        Names::new(db, names.iter().map(|name| name.as_bytes()))
    }

    #[test]
    fn a_client_counts_once_on_each_of_its_keys() {
        let mut blocked = BlockedKeys::default();
        let (first, second) = (names(0, &["b", "a", "b"]), names(0, &["b"]));
        blocked.enter(&first);
        blocked.enter(&second);
        assert_eq!([blocked.clients(0, b"a"), blocked.clients(0, b"b"), blocked.clients(1, b"b")], [1, 2, 0]);
        blocked.leave(&first);
        assert_eq!([blocked.clients(0, b"a"), blocked.clients(0, b"b")], [0, 1]);
        blocked.leave(&second);
        assert!(blocked.keys.is_empty());
    }

    #[test]
    fn clients_that_are_refused_share_one_retry() {
        let at = UnixMs::new;
        let mut blocked = BlockedKeys::default();
        blocked.enter(&names(0, &["a"]));
        let planned = blocked.plan_retry(0, b"a", at(1_000));
        assert_eq!(planned, Some(at(1_000).after(RETRY)));
        assert_eq!(blocked.plan_retry(0, b"a", at(1_001)), None);
        assert!(blocked.plan_retry(0, b"a", planned.unwrap()).is_some(), "its time has come");
        assert!(blocked.plan_retry(0, b"a", at(5)).is_some(), "the clock has stepped back");
        assert_eq!(blocked.plan_retry(0, b"nobody", at(1_000)), None);
    }
}
