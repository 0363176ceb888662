//! A server that cannot save, and so refuses writes as soon as it is told to.

use super::{eventually, Client, Server};
use std::path::PathBuf;

/// As long as this directory exists, saving fails; the server accepts writes until `stop-writes-on-bgsave-error` is
/// set.
pub struct NoSave {
    /// A save cannot replace a directory.
    in_the_way: PathBuf,
}

impl NoSave {
    /// Makes the server fail to save.
    pub fn on(server: &Server) -> NoSave {
        let in_the_way = server.dir().join("dump.rdb");
        std::fs::create_dir(&in_the_way).expect("a directory");
        let mut c = server.client();
        c.cmd(&["CONFIG", "SET", "save", "3600 1000000"]).ok();
        c.configure("stop-writes-on-bgsave-error", "no");
        save(&mut c, "err");
        NoSave { in_the_way }
    }

    /// Lets it save again.
    pub fn end(self, c: &mut Client) {
        std::fs::remove_dir(&self.in_the_way).expect("removed");
        save(c, "ok");
    }
}

fn save(c: &mut Client, status: &str) {
    c.ask("BGSAVE");
    eventually("the save ends", || {
        c.info("persistence", "rdb_bgsave_in_progress") == "0"
            && c.info("persistence", "rdb_last_bgsave_status") == status
    });
}
