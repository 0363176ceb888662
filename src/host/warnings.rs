//! What the log warns of while the module loads: settings of the server with which queues are lost.

use std::path::Path;

use crate::module_api::ctx::Ctx;
use crate::module_api::log::{log, Level};

/// Logs a warning for each setting of the server with which queues are lost.
pub fn log_all(ctx: Ctx) {
    warn_of_eviction(ctx);
    warn_of_an_ignored_dump(ctx);
}

/// Logs a warning if the server's eviction policy allows it to evict queues.
fn warn_of_eviction(ctx: Ctx) {
    let policy = ctx.server_info(c"memory", c"maxmemory_policy");
    let taken = match policy.as_deref() {
        None | Some("noeviction") => return,
        Some(policy) if policy.starts_with("volatile-") => "a whole queue that has an EXPIRE",
        Some(_) => "a whole queue",
    };
    let policy = policy.unwrap_or_default();
    let text = format!("maxmemory-policy is {policy}: at maxmemory the server may evict {taken}; set it to noeviction");
    log(Level::Warning, &text);
}

/// Logs a warning if the server has an RDB file that it will not load, because its AOF is on and there is none yet. It
/// then starts without data, and overwrites the file with its next save. The working directory is that of both files.
fn warn_of_an_ignored_dump(ctx: Ctx) {
    if ctx.server_info(c"persistence", c"aof_enabled").as_deref() != Some("1") {
        return;
    }
    let parameters = ["dbfilename", "appenddirname", "appendfilename"].map(|name| ctx.parameter(name));
    let [Some(dump), Some(folder), Some(aof)] = parameters else { return };
    let has_dump = Path::new(&dump).metadata().is_ok_and(|file| file.len() > 0);
    let manifest = Path::new(&folder).join(format!("{aof}.manifest"));
    // Redis 6 and older had one file, which newer servers load.
    if has_dump && !manifest.exists() && !Path::new(&aof).exists() {
        let text = format!(
            "appendonly is yes and there is no AOF yet: the server does not load {dump}, and its next save overwrites \
             it. To keep these data, stop the server with SHUTDOWN NOSAVE, start it with appendonly no, and then \
             CONFIG SET appendonly yes"
        );
        log(Level::Warning, &text);
    }
}
