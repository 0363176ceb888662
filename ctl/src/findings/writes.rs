//! What is wrong with a server that does not carry out writes, or may soon refuse them.

use super::finding::{some, Diagnosis, Severity};
use crate::server::{Replicas, ServerInfo};
use crate::text::span;
use Severity::{Critical, Warning};

/// A pause of writes that is longer than a failover takes, in ms.
const LONG_PAUSE: u64 = 60_000;

/// Whether servers hold pops back: then a queue without deliveries may still have consumers.
#[derive(Default)]
pub struct Writes {
    /// No master carries out writes.
    pub are_refused: bool,
    /// Clients that are blocked, but not by a queue: their writes may be paused, if the server does not report that.
    pub held_clients: u64,
}

impl Writes {
    /// Those of all masters.
    pub fn summarize<'i>(masters: impl Iterator<Item = &'i ServerInfo>) -> Writes {
        let mut writes = Writes { are_refused: true, held_clients: 0 };
        let mut is_any = false;
        for info in masters.filter(|info| !info.is_replica()) {
            is_any = true;
            writes.are_refused &= info.refuses_writes();
            writes.held_clients += held_clients(info);
        }
        Writes { are_refused: writes.are_refused && is_any, ..writes }
    }
}

fn held_clients(info: &ServerInfo) -> u64 {
    // A server that has this field reports pauses.
    match info.text("paused_actions") {
        "" => info.number("blocked_clients").saturating_sub(info.number("dq_blocked_clients")),
        _ => 0,
    }
}

/// The server could not write to its disk.
pub fn failed(info: &ServerInfo) -> Option<Diagnosis> {
    let all = [
        ("aof_last_write_status", "the last write of the AOF failed"),
        ("aof_last_bgrewrite_status", "the last rewrite of the AOF failed"),
        ("rdb_last_bgsave_status", "the last snapshot failed"),
    ];
    let (_, what) = all.into_iter().find(|(field, _)| !matches!(info.text(field), "ok" | ""))?;
    let why = "the next crash loses more than expected, and the server may refuse writes";
    let advice = "read the log of the server: the disk may be full, or there is too little memory for the fork";
    some(Critical, what, why, advice)
}

/// `min-replicas-to-write` is not met.
pub fn without_replicas(info: &ServerInfo) -> Option<Diagnosis> {
    let Replicas { least, good } = info.lacks_replicas()?;
    let what = format!("it refuses writes: min-replicas-to-write is {least}, and {good} replicas follow it closely");
    let why = "nothing is pushed or popped, and consumers get the error NOREPLICAS";
    let accept = info.config_set("min-replicas-to-write 0");
    let advice = format!("start its replicas, or accept writes without them: {accept}");
    some(Critical, what, why, advice)
}

/// `CLIENT PAUSE`, or a failover that an operator has begun.
pub fn paused(info: &ServerInfo) -> Option<Diagnosis> {
    if !info.pauses_writes() {
        return None;
    }
    let (reason, left) = (info.text("paused_reason"), info.number("paused_timeout_milliseconds"));
    let severity = if left > LONG_PAUSE { Critical } else { Warning };
    let what = format!("its writes are paused for {} ({reason})", span(left));
    let why = "nothing is pushed or popped, and consumers look as if they were not there";
    let advice = format!("wait for the end of the pause, or end it: {}", info.command("CLIENT UNPAUSE"));
    some(severity, what, why, advice)
}

#[cfg(test)]
mod tests {
    use super::Writes;
    use crate::server::ServerInfo;

    #[test]
    fn writes_are_refused_if_no_master_takes_them() {
        let refused = |texts: &[&str]| {
            let infos: Vec<ServerInfo> = texts.iter().map(|text| ServerInfo::parse(text)).collect();
            Writes::summarize(infos.iter()).are_refused
        };
        for (texts, expected) in [
            (&[][..], false),
            (&["role:master\nmin_slaves_good_slaves:0"], true),
            (&["role:master\nmin_slaves_good_slaves:1"], false),
            (&["role:master\naof_last_write_status:err"], true),
            (&["role:master\nrdb_last_bgsave_status:err"], true),
            (&["role:master\npaused_actions:write\npaused_timeout_milliseconds:9"], true),
            (&["role:master\npaused_actions:none"], false),
            (&["role:master\nmin_slaves_good_slaves:0", "role:master"], false),
            (&["role:master\nmin_slaves_good_slaves:0", "role:slave"], true),
        ] {
            assert_eq!(refused(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn clients_that_are_blocked_for_another_reason_may_be_paused() {
        let held = |text: &str| Writes::summarize([ServerInfo::parse(text)].iter()).held_clients;
        assert_eq!(held("role:master\nblocked_clients:5\ndq_blocked_clients:2"), 3);
        assert_eq!(held("role:master\nblocked_clients:5\ndq_blocked_clients:2\npaused_actions:none"), 0);
    }
}
