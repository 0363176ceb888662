//! Whether a server accepts writes. Pops are writes too, so a queue on a server that refuses them seems to have no
//! consumers.

use super::server_info::ServerInfo;

/// The replicas that `min-replicas-to-write` asks for, and those that a server has.
pub struct Replicas {
    pub least: u64,
    pub good: u64,
}

impl ServerInfo {
    /// Whether it refuses writes or lets them wait.
    pub fn refuses_writes(&self) -> bool {
        self.is_misconfigured() || self.lacks_replicas().is_some() || self.pauses_writes()
    }

    /// Whether it answers writes with `MISCONF`, because it could not write to its disk.
    fn is_misconfigured(&self) -> bool {
        let after_snapshot = self.may_be_set("stop-writes-on-bgsave-error", "yes") && !self.is_set("save", "");
        let has_failed = |field| !matches!(self.text(field), "ok" | "");
        has_failed("aof_last_write_status") || has_failed("rdb_last_bgsave_status") && after_snapshot
    }

    /// `min-replicas-to-write` is not met, so that it answers writes with `NOREPLICAS`.
    pub fn lacks_replicas(&self) -> Option<Replicas> {
        // The field is missing if the setting is 0, so it is at least 1.
        let good: u64 = self.text("min_slaves_good_slaves").parse().ok()?;
        let least = self.config.as_ref().map(|config| config.text("min-replicas-to-write").parse::<u64>());
        let least = least.and_then(Result::ok).unwrap_or(1);
        (!self.is_replica() && good < least).then_some(Replicas { least, good })
    }

    /// `CLIENT PAUSE`, or a failover that an operator has begun.
    pub fn pauses_writes(&self) -> bool {
        !matches!(self.text("paused_actions"), "" | "none")
    }
}
