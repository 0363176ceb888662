//! What is wrong with a server: persistence, eviction, replicas, clocks, and the timer of the module.

use super::finding::Severity::{Critical, NotChecked, Warning};
use super::finding::{About, Findings, Subject};
use super::info::{Clock, ServerInfo};
use crate::time::span;
use dq_client::Address;

/// A clock that differs by more makes `AT` and `DELAY` visibly different things, in ms.
const CLOCK: i64 = 1_000;
/// A replica that was silent for longer is behind, in seconds. It reports every second.
const LAG: u64 = 10;
/// A replica that has received less than this of what its master wrote is behind, in bytes.
const BEHIND: u64 = 16 * 1024 * 1024;
/// The timer has too much to do if 1/BUSY_SHARE of its runs, and at least BUSY_RUNS, used up their budget.
const BUSY_SHARE: u64 = 10;
const BUSY_RUNS: u64 = 10;
/// A run of the timer that other clients noticed, in µs.
const LONG_RUN: u64 = 100_000;
/// Runs after which a precise timer would have been seen.
const SOME_RUNS: u64 = 100;

/// All that one server says about itself.
pub fn check(server: &Address, info: &ServerInfo, findings: &mut Findings) {
    let about = &mut findings.about(Subject::Server(server.to_string()));
    if info.module.is_none() {
        let why = "no queue can be used or loaded on this server";
        about.critical(
            "module",
            "the module dq is not loaded",
            why,
            "load it with loadmodule in its configuration file",
        );
    }
    if info.config.is_none() {
        about.not_checked("config", "snapshots, appendfsync and min-replicas-to-write", "+config|get");
    }
    persistence(info, about);
    writes(info, about);
    memory(info, about);
    if info.text("role") == "slave" {
        replica(info, about);
    } else {
        replicas(info, about);
    }
    timer(info, about);
    local_clock(info.clock, about);
}

/// Looks whether a server that was named for its queues is a master.
pub fn is_master(server: &Address, info: &ServerInfo, findings: &mut Findings) {
    if info.text("role") == "slave" {
        let what = format!("it is a replica of {}:{}", info.text("master_host"), info.text("master_port"));
        let why =
            "clients wait at the master, so each queue here looks as if it had no consumer, and no change is accepted";
        let about = &mut findings.about(Subject::Server(server.to_string()));
        about.warning("role", what, why, "name the master with --url or DQ_URL");
    }
}

fn setting(info: &ServerInfo, name: &str) -> Option<String> {
    info.config.as_ref().map(|config| config.text(name))
}

fn persistence(info: &ServerInfo, about: &mut About) {
    if info.text("aof_enabled") == "0" {
        let advice = "write appendonly yes into the configuration file, and switch it on with redis-cli CONFIG SET appendonly yes";
        match setting(info, "save") {
            Some(save) if save.is_empty() => {
                let why = "all queues are lost when the server stops";
                about.critical("persistence", "neither the AOF nor snapshots are on", why, advice);
            }
            _ => {
                let why = "a crash forgets all that happened since the last snapshot";
                about.warning("aof", "the AOF is off", why, advice);
            }
        }
        return;
    }
    if setting(info, "appendfsync").as_deref() == Some("no") {
        let why = "the system decides when the AOF reaches the disk, so a power cut may lose half a minute";
        let advice = "redis-cli CONFIG SET appendfsync everysec";
        about.warning("appendfsync", "appendfsync is no", why, advice);
    }
    if setting(info, "no-appendfsync-on-rewrite").as_deref() == Some("yes") {
        let why = "while the AOF is rewritten, a power cut may lose more than a second";
        let advice = "if the disk is fast enough, redis-cli CONFIG SET no-appendfsync-on-rewrite no";
        about.note("appendfsync", "no-appendfsync-on-rewrite is yes", why, advice);
    }
}

fn writes(info: &ServerInfo, about: &mut About) {
    for (field, what) in [
        ("aof_last_write_status", "the last write of the AOF failed"),
        ("aof_last_bgrewrite_status", "the last rewrite of the AOF failed"),
        ("rdb_last_bgsave_status", "the last snapshot failed"),
    ] {
        if !matches!(info.text(field), "ok" | "") {
            let why = "the next crash loses more than expected, and the server may refuse writes";
            let advice = "read the log of the server: the disk may be full, or there is too little memory for the fork";
            about.critical("writes", what, why, advice);
        }
    }
}

fn memory(info: &ServerInfo, about: &mut About) {
    let (policy, limit) = (info.text("maxmemory_policy"), info.number("maxmemory").unwrap_or(0));
    if policy.starts_with("allkeys") {
        let (severity, why) = if limit > 0 {
            (Critical, "whole queues are deleted when the memory is used up")
        } else {
            (Warning, "whole queues would be deleted as soon as somebody sets maxmemory")
        };
        let what = format!("maxmemory-policy is {policy}");
        about.add(severity, "eviction", what, why, "redis-cli CONFIG SET maxmemory-policy noeviction");
    } else if policy.starts_with("volatile") && limit > 0 {
        let why = "queues with a time to live (EXPIRE) may be deleted when the memory is used up";
        let what = format!("maxmemory-policy is {policy}");
        about.note("eviction", what, why, "redis-cli CONFIG SET maxmemory-policy noeviction");
    }
    let used = info.number("used_memory").unwrap_or(0);
    if limit > 0 && used / 4 >= limit / 5 {
        let what = format!("{}% of maxmemory is used", used.saturating_mul(100) / limit);
        let why = "pushes are refused with OOM when it is used up";
        about.warning(
            "memory",
            what,
            why,
            "raise maxmemory, or limit the largest queues (--maxlen); dqctl ls --sort ready lists them",
        );
    }
}

fn replica(info: &ServerInfo, about: &mut About) {
    if info.text("master_link_status") != "up" {
        let why = "a failover to this replica would forget all that happened since";
        let advice = "read its log, and check whether it can reach its master";
        about.critical("replica-link", "the link of this replica to its master is down", why, advice);
    }
}

fn replicas(info: &ServerInfo, about: &mut About) {
    let replicas = info.replicas();
    if replicas.is_empty() {
        let why = "if the machine is lost, its queues are lost; while it is down, nothing is delivered";
        about.note("replicas", "there is no replica", why, "add one with REPLICAOF");
        return;
    }
    if setting(info, "min-replicas-to-write").as_deref() == Some("0") {
        let why = "a master that is cut off goes on accepting messages, which are lost when another one takes over";
        let advice = "if that matters more than accepting writes, redis-cli CONFIG SET min-replicas-to-write 1";
        about.note("min-replicas", "min-replicas-to-write is 0", why, advice);
    }
    let written = info.number("master_repl_offset").unwrap_or(0);
    for replica in replicas {
        let name = replica.address.to_string();
        let missing = written.saturating_sub(replica.offset);
        let what = if replica.state != "online" {
            format!("the replica {name} is not in step yet: {}", replica.state)
        } else if replica.lag > LAG {
            format!("the replica {name} was silent for {}", span(replica.lag.saturating_mul(1_000)))
        } else if missing > BEHIND {
            format!("the replica {name} is {} MB behind", missing / 1024 / 1024)
        } else {
            continue;
        };
        let why = "a failover to it would forget what it has not received";
        about.warning("replica-lag", what, why, "look at its load and at the network between them");
    }
}

fn timer(info: &ServerInfo, about: &mut About) {
    let number = |name: &str| info.number(name).unwrap_or(0);
    let (runs, over) = (number("dq_timer_runs"), number("dq_timer_over_budget"));
    if over >= BUSY_RUNS && over >= runs / BUSY_SHARE {
        let what = format!("{over} of {runs} runs of the timer used up their budget");
        let why = "leases and times to live expire faster than the timer can process them, so messages are late";
        about.warning("timer", what, why, "raise dq.timer-budget, or spread the queues over servers");
    }
    let longest = number("dq_timer_longest_us");
    if longest > LONG_RUN {
        let what = format!("a run of the timer took {}", span(longest / 1_000));
        let why = "all clients of the server waited for it";
        let advice = "lower dq.timer-budget, and check whether the machine swaps or is overloaded";
        about.warning("timer", what, why, advice);
    }
    if runs > SOME_RUNS && info.text("dq_timer_punctual") == "0" {
        let why = "messages are delivered up to 2 ms after they are due";
        about.note("timer", "the precise timer is not available", why, "run the server on Linux");
    }
}

fn local_clock(clock: Option<Clock>, about: &mut About) {
    let Some(clock) = clock else {
        about.not_checked("clock", "the clock", "+time");
        return;
    };
    if clock.ahead.abs() > CLOCK + clock.uncertain {
        let direction = if clock.ahead > 0 { "ahead of" } else { "behind" };
        let what = format!("its clock is {} {direction} the clock of this machine", span(clock.ahead.unsigned_abs()));
        let why = "messages that are pushed with AT are delivered that much too early or too late";
        about.warning("clock", what, why, "synchronise both clocks with NTP");
    }
}

/// What differs between servers: masters and replicas, and the nodes of a cluster.
pub fn compare(servers: &[(Address, ServerInfo)], findings: &mut Findings) {
    let (Some((first, first_info)), true) = (servers.first(), servers.len() > 1) else { return };
    for (server, info) in servers.iter().skip(1) {
        let about = &mut findings.about(Subject::Server(server.to_string()));
        if let (Some(one), Some(other)) = (first_info.module, info.module) {
            if one != other {
                let what = format!("the module has version {other}, but {one} on {first}");
                let why = "the older one may not understand what the newer one sends, and then drops the link";
                about.warning("module-version", what, why, "upgrade the replicas first, then the masters");
            }
        }
        if let (Some(one), Some(other)) = (first_info.clock, info.clock) {
            let difference = other.ahead - one.ahead;
            if difference.abs() > CLOCK + one.uncertain + other.uncertain {
                let direction = if difference > 0 { "ahead of" } else { "behind" };
                let what = format!("its clock is {} {direction} that of {first}", span(difference.unsigned_abs()));
                let why = "after a failover, messages are due and leases expire that much too early or too late";
                about.warning("clocks", what, why, "synchronise the clocks of all servers with NTP");
            }
        }
    }
}

/// A server that does not answer.
pub fn unreachable(server: &Address, is_replica: bool, error: &dq_client::Error, findings: &mut Findings) {
    let about = &mut findings.about(Subject::Server(server.to_string()));
    let what = format!("it does not answer: {error}");
    if is_replica {
        // Replicas may be in a network of their own.
        let why = "its clock and its module are unknown";
        about.add(NotChecked, "unreachable", what, why, "run dqctl doctor where it can be reached");
    } else {
        let why = "its queues neither accept nor deliver messages";
        about.critical("unreachable", what, why, "start it, or let a replica take over");
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Findings, Severity};
    use super::super::info::{Clock, ServerInfo};
    use super::{check, compare};
    use crate::reply::Fields;
    use dq_client::{Address, Value};

    const SOUND: &str = "aof_enabled:1\r\naof_last_write_status:ok\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n\
        used_memory:79\r\nrole:master\r\nconnected_slaves:1\r\n\
        slave0:ip=10.0.0.2,port=6379,state=online,offset=90,lag=1\r\nmaster_repl_offset:100\r\n\
        module:name=other,ver=7\r\nmodule:name=dq,ver=100,api=1\r\n\
        dq_timer_runs:1000\r\ndq_timer_punctual:900\r\ndq_timer_over_budget:9\r\ndq_timer_longest_us:800\r\n";

    fn address() -> Address {
        Address::Tcp("10.0.0.1".to_owned(), 6379)
    }

    fn sound(changed: &str, config: &[(&str, &str)]) -> ServerInfo {
        let mut info = ServerInfo::parse(&format!("{SOUND}{changed}"));
        let mut fields = vec![("save", ""), ("appendfsync", "everysec"), ("min-replicas-to-write", "1")];
        fields.retain(|(name, _)| config.iter().all(|(changed, _)| changed != name));
        fields.extend(config);
        let field = |(name, value): (&str, &str)| (name.to_owned(), Value::BulkString(value.as_bytes().to_vec()));
        info.config = Some(Fields(fields.into_iter().map(field).collect()));
        info.clock = Some(Clock { ahead: 10, uncertain: 1 });
        info
    }

    fn found(info: &ServerInfo) -> Vec<(Severity, &'static str)> {
        let mut findings = Findings::default();
        check(&address(), info, &mut findings);
        findings.names()
    }

    #[test]
    fn a_sound_server_has_no_findings() {
        assert_eq!(found(&sound("", &[])), []);
    }

    #[test]
    fn each_setting_that_loses_messages_is_found() {
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Severity, &'a str);
        use Severity::{Critical, Note, Warning};
        let cases: [Case; 16] = [
            ("aof_enabled:0", &[], Critical, "persistence"),
            ("aof_enabled:0", &[("save", "3600 1")], Warning, "aof"),
            ("", &[("appendfsync", "no")], Warning, "appendfsync"),
            ("", &[("no-appendfsync-on-rewrite", "yes")], Note, "appendfsync"),
            ("aof_last_write_status:err", &[], Critical, "writes"),
            ("rdb_last_bgsave_status:err", &[], Critical, "writes"),
            ("maxmemory_policy:allkeys-lru", &[], Critical, "eviction"),
            ("maxmemory_policy:allkeys-lru\nmaxmemory:0", &[], Warning, "eviction"),
            ("maxmemory_policy:volatile-lru", &[], Note, "eviction"),
            ("used_memory:80", &[], Warning, "memory"),
            ("role:slave\nmaster_link_status:down", &[], Critical, "replica-link"),
            ("", &[("min-replicas-to-write", "0")], Note, "min-replicas"),
            ("slave0:ip=10.0.0.2,port=6379,state=online,offset=90,lag=11", &[], Warning, "replica-lag"),
            ("master_repl_offset:99999999", &[], Warning, "replica-lag"),
            ("dq_timer_over_budget:100", &[], Warning, "timer"),
            ("dq_timer_longest_us:100001", &[], Warning, "timer"),
        ];
        for (changed, config, severity, name) in cases {
            assert_eq!(found(&sound(changed, config)), [(severity, name)], "{changed} {config:?}");
        }
        let alone = SOUND.replace("slave0", "other");
        let mut info = sound("", &[]);
        let config = info.config.take();
        info = ServerInfo { config, clock: info.clock, ..ServerInfo::parse(&alone) };
        assert_eq!(found(&info), [(Note, "replicas")]);
        assert_eq!(found(&ServerInfo { module: None, ..sound("", &[]) }), [(Critical, "module")]);
    }

    #[test]
    fn missing_rights_are_no_findings_that_matter() {
        let info = ServerInfo { config: None, clock: None, ..sound("", &[]) };
        assert_eq!(found(&info), [(Severity::NotChecked, "config"), (Severity::NotChecked, "clock")]);
    }

    #[test]
    fn clocks_are_compared_beyond_what_the_round_trip_hides() {
        let at = |ahead, uncertain| ServerInfo { clock: Some(Clock { ahead, uncertain }), ..sound("", &[]) };
        assert_eq!(found(&at(1_050, 100)), []);
        assert_eq!(found(&at(-1_050, 10)), [(Severity::Warning, "clock")]);
        let mut findings = Findings::default();
        compare(&[(address(), at(-600, 10)), (address(), at(600, 10)), (address(), at(300, 10))], &mut findings);
        assert_eq!(findings.names(), [(Severity::Warning, "clocks")]);
    }

    #[test]
    fn module_versions_that_differ_are_found() {
        let with = |module| ServerInfo { module, ..sound("", &[]) };
        let mut findings = Findings::default();
        compare(&[(address(), with(Some(100))), (address(), with(Some(200)))], &mut findings);
        assert_eq!(findings.names(), [(Severity::Warning, "module-version")]);
    }
}
