//! Slots that arrive from another node of a cluster while that node still owns them (Valkey 9).
//!
//! An atomic slot migration copies a slot and then streams its changes, as to a replica, until the ownership moves. Until
//! then the queues of the slot are foreign: this server carries out effects and deletes nothing by its own decision.
//! When the import completes, a sweep looks at every queue and drops what the other node had not dropped yet. When it
//! is aborted, the server itself deletes the keys, and tells of the abort afterwards.
//!
//! Several imports can run at once, but never two of one slot. So a queue is foreign exactly while an import runs whose
//! ranges contain the queue's slot, whatever other imports do. Nothing has to be remembered in the queue, and a local
//! command cannot reach it meanwhile: the server answers `MOVED`, because it does not own the slot.
//!
//! An import does not outlive a change of role: a server that is promoted or demoted in the midst of one fails it. The
//! list is emptied then, because a replica that synchronises anew forgets imports without an event.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis_module::raw;

use super::listeners;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::guard;
use crate::schedule::walk;

/// Valkey's number of the event. The crate does not know it, and Redis 8.4 gave it to an event with other data.
const EVENT: u64 = 19;
const STARTED: u64 = 0;
const ABORTED: u64 = 2;
const COMPLETED: u64 = 4;

/// Length of a job's name, which is as long as a node's.
const JOB_NAME_LEN: usize = 40;

/// `ValkeyModuleSlotRange`: the first and the last slot.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotRange {
    first: c_int,
    last: c_int,
}

/// `ValkeyModuleAtomicSlotMigrationInfo`, version 1: what the event points to.
#[repr(C)]
struct Info {
    version: u64,
    job: [c_char; JOB_NAME_LEN + 1],
    ranges: *const SlotRange,
    range_count: u32,
}

/// An import that runs.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    job: [c_char; JOB_NAME_LEN + 1],
    ranges: Vec<SlotRange>,
}

static IMPORTS: Mutex<Vec<Import>> = Mutex::new(Vec::new());
/// The length of [`IMPORTS`], for a look without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether this server tells of its imports.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Subscribes to slot migrations, if this server has them.
pub fn watch(ctx: Ctx) {
    let is_valkey = ctx.server_info(c"server", c"valkey_version").is_some();
    TOLD.store(is_valkey && ctx.subscribe(EVENT, on_stage), Relaxed);
}

/// Whether an import may run now. `false` is certain in a server that is part of a cluster; others have none.
pub fn may_run() -> bool {
    !TOLD.load(Relaxed) || COUNT.load(Relaxed) > 0
}

/// Whether the key is in a slot whose import runs, so that another server decides about it.
#[inline]
pub fn covers(name: Name<'_>) -> bool {
    COUNT.load(Relaxed) > 0 && slot_of(name).is_none_or(|slot| imports().iter().any(|import| import.contains(slot)))
}

/// Forgets every import: this server's role has changed.
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

/// The key's slot. `None` where the server has no function for it, which every server with imports has.
fn slot_of(name: Name<'_>) -> Option<c_int> {
    // SAFETY: the static is read by value.
    let key_slot = unsafe { raw::RedisModule_ClusterKeySlot }?;
    // SAFETY: the name is a valid string of the server.
    c_int::try_from(unsafe { key_slot(name.as_ptr()) }).ok()
}

extern "C" fn on_stage(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, data: *mut c_void) {
    guard("a slot migration", (), || {
        // SAFETY: the server passes a context that is valid during this call, and for this event its information,
        // whose ranges are as many as it says.
        let (ctx, import) = unsafe {
            let Some(info) = data.cast::<Info>().as_ref().filter(|info| info.version >= 1) else { return };
            let count = if info.ranges.is_null() { 0 } else { info.range_count as usize };
            let ranges = (0..count).map(|n| *info.ranges.add(n)).collect();
            (Ctx::from_raw(ctx), Import { job: info.job, ranges })
        };
        match stage {
            STARTED => change(|imports| imports.push(import)),
            ABORTED | COMPLETED => change(|imports| imports.retain(|running| running.job != import.job)),
            _ => {}
        }
        // From the first import on, commands may come from another node.
        listeners::forget();
        if stage == COMPLETED {
            walk::start(ctx);
        }
    });
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
