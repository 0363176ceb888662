//! Slots that are being imported from another node of a cluster, which still owns them (Valkey 9).
//!
//! An atomic slot migration copies a slot and then streams its changes, as to a replica, until the ownership moves.
//! Until then the queues of the slot are foreign: this server applies effects and deletes nothing by its own decision.
//! When the import completes, a walk looks at every queue and drops what the other node had not yet dropped. When the
//! import is aborted, the server itself deletes the keys, and reports the abort afterwards.
//!
//! Several imports can run at once, but never two of the same slot. So a queue is foreign exactly while an import runs
//! whose ranges contain the queue's slot, regardless of other imports. Nothing has to be stored in the queue, and no
//! local command can reach it meanwhile: the server replies `MOVED`, because it does not own the slot.
//!
//! An import does not survive a change of role: a server that is promoted or demoted during an import fails it. The
//! list is cleared then, because a replica that synchronizes again discards its imports without an event.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::slot;
use crate::module_api::ctx::{Ctx, EventCallback, Name};

/// Valkey's number of the event. The `redis-module` crate does not know it, and Redis 8.4 uses the same number for an
/// event with other data.
const EVENT: u64 = 19;
const STARTED: u64 = 0;
const ABORTED: u64 = 2;
const COMPLETED: u64 = 4;

/// The length of a job's name, which equals the length of a node's name.
const JOB_NAME_LEN: usize = 40;

/// `ValkeyModuleSlotRange`: the first and the last slot of a range.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotRange {
    first: c_int,
    last: c_int,
}

/// `ValkeyModuleAtomicSlotMigrationInfo`, version 1: the data of the event.
#[repr(C)]
struct MigrationInfo {
    version: u64,
    job: [c_char; JOB_NAME_LEN + 1],
    ranges: *const SlotRange,
    range_count: u32,
}

/// An import that is in progress.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    job: [c_char; JOB_NAME_LEN + 1],
    ranges: Vec<SlotRange>,
}

static IMPORTS: Mutex<Vec<Import>> = Mutex::new(Vec::new());
/// The length of [`IMPORTS`], which can be read without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether this server reports its imports.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Subscribes to the event of slot migrations, if this server has it.
pub fn watch(ctx: Ctx, on_stage: EventCallback) {
    let is_valkey = ctx.server_info(c"server", c"valkey_version").is_some();
    REPORTED.store(is_valkey && ctx.subscribe(EVENT, on_stage), Relaxed);
}

/// Returns whether an import may be in progress. In a server that is part of a cluster, `false` is certain; other
/// servers have no imports.
pub fn may_run() -> bool {
    !REPORTED.load(Relaxed) || COUNT.load(Relaxed) > 0
}

/// Returns whether the key is in a slot that is being imported, so that another server decides about it.
pub fn covers(name: Name<'_>) -> bool {
    COUNT.load(Relaxed) > 0 && imports().iter().any(|import| import.contains(slot::hash_slot(name.bytes()).into()))
}

/// Clears the list of imports, because this server's role has changed.
pub fn forget() {
    change(Vec::clear);
}

impl Import {
    fn contains(&self, slot: c_int) -> bool {
        self.ranges.iter().any(|range| (range.first..=range.last).contains(&slot))
    }
}

fn imports() -> MutexGuard<'static, Vec<Import>> {
    IMPORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn change(change: impl FnOnce(&mut Vec<Import>)) {
    let mut imports = imports();
    change(&mut imports);
    COUNT.store(imports.len(), Relaxed);
}

/// Takes note of the stage of a migration. Returns whether an import has completed.
///
/// # Safety
/// `data` came with the event of [`watch`].
pub unsafe fn note_stage(stage: u64, data: *mut c_void) -> bool {
    // SAFETY: the caller vouches for it; the ranges are as many as the information says.
    let import = unsafe {
        let Some(info) = data.cast::<MigrationInfo>().as_ref().filter(|info| info.version >= 1) else { return false };
        let count = if info.ranges.is_null() { 0 } else { info.range_count as usize };
        Import { job: info.job, ranges: (0..count).map(|n| *info.ranges.add(n)).collect() }
    };
    match stage {
        STARTED => change(|imports| imports.push(import)),
        ABORTED | COMPLETED => change(|imports| imports.retain(|running| running.job != import.job)),
        _ => {}
    }
    stage == COMPLETED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_contains_the_slots_of_its_ranges() {
        let ranges = vec![SlotRange { first: 5, last: 7 }, SlotRange { first: 9, last: 9 }];
        let import = Import { job: [0; JOB_NAME_LEN + 1], ranges };
        let contained: Vec<_> = (0..20).filter(|slot| import.contains(*slot)).collect();
        assert_eq!(contained, [5, 6, 7, 9]);
    }
}
