//! In which queues messages have died in the last minutes.

use crate::condition::Dead;
use crate::reply::Fields;
use crate::time::now_ms;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// For how long the dead count as growing after one has died, in ms.
const RECENT: i64 = 10 * 60_000;

#[derive(Default)]
pub struct Deaths {
    seen: Mutex<HashMap<Vec<u8>, Seen>>,
}

/// The total of deaths of a queue that was seen last, and when it grew, in Unix ms.
struct Seen {
    total: i64,
    grew: Option<i64>,
}

impl Deaths {
    /// Notes the fields of `DQ.INFO`, and says whether messages die.
    pub fn note(&self, queue: &[u8], info: &Fields) -> Dead {
        self.note_at(now_ms(), queue, info.int("died").unwrap_or(0))
    }

    fn note_at(&self, now: i64, queue: &[u8], died: i64) -> Dead {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = seen.get_mut(queue) else {
            seen.insert(queue.to_vec(), Seen { total: died, grew: None });
            return Dead::Stay;
        };
        if died > known.total {
            known.grew = Some(now);
        }
        known.total = died;
        match known.grew {
            Some(at) if now - at < RECENT => Dead::Grow,
            _ => Dead::Stay,
        }
    }

    /// Forgets queues that no longer exist.
    pub fn keep(&self, exists: impl Fn(&[u8]) -> bool) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|queue, _| exists(queue));
    }
}

#[cfg(test)]
mod tests {
    use super::{Deaths, RECENT};
    use crate::condition::Dead;

    #[test]
    fn the_dead_grow_for_minutes_after_one_has_died() {
        let deaths = Deaths::default();
        let at = |now, died| deaths.note_at(now, b"q", died);
        // Those that were there before say nothing.
        assert_eq!(at(0, 5), Dead::Stay);
        assert_eq!(at(10, 6), Dead::Grow);
        assert_eq!(at(RECENT, 6), Dead::Grow);
        assert_eq!(at(RECENT + 10, 6), Dead::Stay);
        // It was created again.
        assert_eq!(at(RECENT + 20, 0), Dead::Stay);
        assert_eq!(at(RECENT + 30, 1), Dead::Grow);
        deaths.keep(|_| false);
        assert_eq!(at(RECENT + 40, 2), Dead::Stay);
    }
}
