//! Watching a queue as a transaction does.

use super::{Client, Server};

/// Whether a watcher of `q` sees a change while `act` runs.
pub fn touches(server: &Server, act: impl FnOnce(&mut Client)) -> bool {
    let (mut watcher, mut c) = (server.client(), server.client());
    watcher.ask("WATCH q").ok();
    act(&mut c);
    watcher.ask("MULTI").ok();
    watcher.ask("PING");
    watcher.ask("EXEC").is_null()
}
