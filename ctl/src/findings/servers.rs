//! The checks of a server, in tables, over its `INFO`. [`super::writes`] has those of writes.

use super::finding::Severity::{self, Critical, Note, Warning};
use super::finding::{some, Diagnosis, Findings, Subject};
use super::writes;
use crate::board::Trouble;
use crate::server::ServerInfo;
use crate::text::span;
use dq_client::{Address, Error};

/// A clock that differs by more makes `AT` and `DELAY` visibly different things, in ms.
const CLOCK: i64 = 1_000;
/// The timer has too much to do if 1/BUSY_SHARE of its runs, and at least BUSY_RUNS, used up their budget.
const BUSY_SHARE: u64 = 10;
const BUSY_RUNS: u64 = 10;
/// A run of the timer that other clients noticed, in µs.
const LONG_RUN: u64 = 100_000;
/// A check that is only a condition: its name, the condition, the severity, the problem, the reason why it matters, and
/// the advice.
type Simple = (&'static str, fn(&ServerInfo) -> bool, Severity, [&'static str; 2], Advice);
type Check = (&'static str, fn(&ServerInfo) -> Option<Diagnosis>);

/// What to do about a finding.
#[derive(Clone, Copy)]
enum Advice {
    Text(&'static str),
    /// A text that ends with the command that sets this parameter, and what else to do.
    Set(&'static str, &'static str, &'static str),
}

impl Advice {
    fn text(self, info: &ServerInfo) -> String {
        match self {
            Advice::Text(text) => text.to_owned(),
            Advice::Set(text, parameter, more) => format!("{text}{}{more}", info.config_set(parameter)),
        }
    }
}

const SWITCH_AOF_ON: Advice =
    Advice::Set("write appendonly yes into the configuration file, and switch it on with ", "appendonly yes", "");

#[rustfmt::skip]
const SIMPLE: [Simple; 10] = [
    ("module", |info| info.module.is_none(), Critical, [
        "the module dq is not loaded",
        "no queue can be used or loaded on this server",
    ], Advice::Text("load it with loadmodule in its configuration file")),
    ("effects", |info| !info.is_replica() && info.text("dq_decides_by_time") == "0", Critical, [
        "dq.allow-effects is yes, so it decides nothing by time",
        "nothing is forwarded, no schedule goes on, and no dead or done message is dropped",
    ], Advice::Set(
        "end it with ",
        "dq.allow-effects no",
        "; remove it from the configuration file, if it is there",
    )),
    ("persistence", |info| info.has_aof() == Some(false) && info.is_set("save", ""), Critical, [
        "neither the AOF nor snapshots are on",
        "all queues are lost when the server stops",
    ], SWITCH_AOF_ON),
    ("aof", |info| info.has_aof() == Some(false) && info.config.is_some() && !info.is_set("save", ""), Warning, [
        "the AOF is off",
        "a crash forgets all that happened since the last snapshot",
    ], SWITCH_AOF_ON),
    ("aof", |info| info.has_aof() == Some(false) && info.config.is_none(), Warning, [
        "the AOF is off, and it is unknown whether snapshots are on",
        "a crash forgets all that happened since the last snapshot; without snapshots, all queues are lost",
    ], SWITCH_AOF_ON),
    ("appendfsync", |info| info.has_aof() == Some(true) && info.is_set("appendfsync", "no"), Warning, [
        "appendfsync is no",
        "the system decides when the AOF reaches the disk, so a power cut may lose half a minute",
    ], Advice::Set("", "appendfsync everysec", "")),
    ("replica-link", |info| info.is_replica() && info.text("master_link_status") != "up", Critical, [
        "the link of this replica to its master is down",
        "a failover to this replica would forget all that happened since",
    ], Advice::Text("read its log, and check whether it can reach its master")),
    ("replicas", |info| !info.is_replica() && info.replicas().is_empty(), Note, [
        "there is no replica",
        "if the machine is lost, its queues are lost; while it is down, nothing is delivered",
    ], Advice::Text("add one with REPLICAOF")),
    ("min-replicas", |info| !info.replicas().is_empty() && info.is_set("min-replicas-to-write", "0"), Note, [
        "min-replicas-to-write is 0",
        "a master that is cut off goes on accepting messages, which are lost when another one takes over",
    ], Advice::Set("if that matters more than accepting writes, ", "min-replicas-to-write 1", "")),
    ("timer", |info| info.number("dq_timer_longest_us") > LONG_RUN, Warning, [
        "a run of the timer took longer than 100 ms",
        "all clients of the server waited for it",
    ], Advice::Text("lower dq.timer-budget, and check whether the machine swaps or is overloaded")),
];

const CHECKS: [Check; 9] = [
    ("loading", loading),
    ("unsound", unsound),
    ("writes", writes::failed),
    ("no-replicas", writes::without_replicas),
    ("paused-writes", writes::paused),
    ("eviction", eviction),
    ("memory", memory),
    ("timer", busy_timer),
    ("clock", local_clock),
];

/// Checks one server.
pub fn check(server: &Address, info: &ServerInfo, findings: &mut Findings) {
    let subject = Subject::Server(server.to_string());
    if info.config.is_none() {
        findings.not_checked(&subject, "config", "+config|get");
    }
    if info.clock.is_none() {
        findings.not_checked(&subject, "clock", "+time");
    }
    for (name, is_so, severity, [what, why], advice) in SIMPLE {
        let found = is_so(info).then(|| Diagnosis::new(severity, what, why, advice.text(info)));
        add(server, name, found, findings);
    }
    for (name, look) in CHECKS {
        add(server, name, look(info), findings);
    }
}

fn add(server: &Address, check: &'static str, found: impl IntoIterator<Item = Diagnosis>, findings: &mut Findings) {
    let subject = Subject::Server(server.to_string());
    for found in found {
        findings.add(&subject, check, found, Trouble::default());
    }
}

/// Looks whether a server that was named for its queues is a master.
pub fn is_master(server: &Address, info: &ServerInfo, findings: &mut Findings) {
    if info.is_replica() {
        let what = format!("it is a replica of {}:{}", info.text("master_host"), info.text("master_port"));
        let why =
            "clients wait at the master, so each queue here looks as if it had no consumer, and no change is accepted";
        add(server, "role", some(Warning, what, why, "name the master with --url or DQ_URL"), findings);
    }
}

/// A server that starts, or a replica that takes over the data of its master, for which its link is down.
fn loading(info: &ServerInfo) -> Option<Diagnosis> {
    if !info.is_loading() || info.is_replica() {
        return None;
    }
    let what = format!("it is loading its data: {}%", info.text("loading_loaded_perc").trim_end_matches(".00"));
    let advice = "wait; its log shows when it is ready";
    some(Critical, what, "until then its queues neither accept nor deliver messages", advice)
}

/// A panic left queues half changed.
fn unsound(info: &ServerInfo) -> Option<Diagnosis> {
    let queues = info.number("dq_unsound_queues");
    let what = format!("queues that are not served, after an error of the module: {queues}");
    let advice = "restart the server, or fail over to a replica; lines of <dq> in its log name the queues";
    (queues > 0).then(|| Diagnosis::new(Critical, what, "nothing in them is delivered, forwarded or dropped", advice))
}

fn eviction(info: &ServerInfo) -> Option<Diagnosis> {
    let (policy, is_limited) = (info.text("maxmemory_policy"), info.number("maxmemory") > 0);
    let (severity, why) = match (policy.split('-').next()?, is_limited) {
        ("allkeys", true) => (Critical, "whole queues are deleted when the memory is used up"),
        ("allkeys", false) => (Warning, "whole queues would be deleted as soon as somebody sets maxmemory"),
        ("volatile", true) => (Note, "queues with a time to live (EXPIRE) may be deleted when the memory is used up"),
        _ => return None,
    };
    let advice = info.config_set("maxmemory-policy noeviction");
    some(severity, format!("maxmemory-policy is {policy}"), why, advice)
}

fn memory(info: &ServerInfo) -> Option<Diagnosis> {
    let (limit, used) = (info.number("maxmemory"), info.number("used_memory"));
    if limit == 0 || used / 4 < limit / 5 {
        return None;
    }
    let advice = "raise maxmemory, or limit the largest queues (--maxlen); dqctl ls --sort ready lists them";
    let what = format!("{}% of maxmemory is used", used.saturating_mul(100) / limit);
    some(Warning, what, "pushes are refused with OOM when it is used up", advice)
}

fn busy_timer(info: &ServerInfo) -> Option<Diagnosis> {
    let (runs, over) = (info.number("dq_timer_runs"), info.number("dq_timer_over_budget"));
    let what = format!("{over} of {runs} runs of the timer used up their budget");
    let why = "leases and times to live expire faster than the timer can process them, so messages are late";
    let is_busy = over >= BUSY_RUNS && over >= runs / BUSY_SHARE;
    is_busy.then(|| Diagnosis::new(Warning, what, why, "raise dq.timer-budget, or spread the queues over servers"))
}

fn local_clock(info: &ServerInfo) -> Option<Diagnosis> {
    let clock = info.clock.filter(|clock| clock.ahead.abs() > CLOCK + clock.uncertain)?;
    let side = if clock.ahead > 0 { "ahead of" } else { "behind" };
    let what = format!("its clock is {} {side} the clock of this machine", span(clock.ahead.unsigned_abs()));
    let why = "messages that are pushed with AT are delivered that much too early or too late";
    some(Warning, what, why, "synchronise the clocks of all machines with NTP")
}

/// Masters and replicas, and the nodes of a cluster, have one version of the module.
pub fn compare_versions(servers: &[(Address, ServerInfo)], findings: &mut Findings) {
    let versions: Vec<_> = servers.iter().filter_map(|(server, info)| Some((server, info.module?))).collect();
    let Some(((first, one), others)) = versions.split_first() else { return };
    for (server, other) in others.iter().filter(|(_, other)| other != one) {
        let what = format!("the module has version {other}, but {one} on {first}");
        let why = "the older one may not understand what the newer one sends, and then drops the link";
        let found = some(Warning, what, why, "upgrade the replicas first, then the masters");
        add(server, "module-version", found, findings);
    }
}

/// A server that does not answer. Replicas may be in a network of their own.
pub fn unreachable(server: &Address, is_replica: bool, error: &Error, findings: &mut Findings) {
    let (severity, why, advice) = match is_replica {
        true => {
            (Severity::NotChecked, "its clock and its module are unknown", "run dqctl doctor where it can be reached")
        }
        false => (Critical, "its queues neither accept nor deliver messages", "start it, or let a replica take over"),
    };
    add(server, "unreachable", some(severity, format!("it does not answer: {error}"), why, advice), findings);
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Findings, Severity};
    use super::{check, compare_versions};
    use crate::server::{Clock, Fields, ServerInfo};
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
        let cases: [Case; 18] = [
            ("aof_enabled:0", &[], Critical, "persistence"),
            ("aof_enabled:0", &[("save", "3600 1")], Warning, "aof"),
            ("", &[("appendfsync", "no")], Warning, "appendfsync"),
            ("aof_last_write_status:err", &[], Critical, "writes"),
            ("rdb_last_bgsave_status:err", &[], Critical, "writes"),
            ("maxmemory_policy:allkeys-lru", &[], Critical, "eviction"),
            ("maxmemory_policy:allkeys-lru\nmaxmemory:0", &[], Warning, "eviction"),
            ("maxmemory_policy:volatile-lru", &[], Note, "eviction"),
            ("used_memory:80", &[], Warning, "memory"),
            ("role:slave\nmaster_link_status:down", &[], Critical, "replica-link"),
            ("", &[("min-replicas-to-write", "0")], Note, "min-replicas"),
            ("dq_timer_over_budget:100", &[], Warning, "timer"),
            ("dq_decides_by_time:0", &[], Critical, "effects"),
            ("dq_unsound_queues:1", &[], Critical, "unsound"),
            ("loading:1\nloading_loaded_perc:45.00", &[("appendonly", "yes")], Critical, "loading"),
            ("min_slaves_good_slaves:1", &[("min-replicas-to-write", "2")], Critical, "no-replicas"),
            ("paused_actions:write\npaused_timeout_milliseconds:900", &[], Warning, "paused-writes"),
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
    fn an_aof_that_is_being_loaded_is_not_missing() {
        let loading = "loading:1\naof_enabled:0";
        assert_eq!(found(&sound(loading, &[("appendonly", "yes")])), [(Severity::Critical, "loading")]);
        let replica = "role:slave\nmaster_link_status:up\nmaster_sync_in_progress:1\naof_enabled:0";
        assert_eq!(found(&sound(replica, &[("appendonly", "yes")])), []);
        let unread = ServerInfo { config: None, ..sound(loading, &[]) };
        assert_eq!(found(&unread), [(Severity::NotChecked, "config"), (Severity::Critical, "loading")]);
        let unread = ServerInfo { config: None, ..sound("aof_enabled:0", &[]) };
        assert_eq!(found(&unread), [(Severity::NotChecked, "config"), (Severity::Warning, "aof")]);
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
    }

    #[test]
    fn module_versions_that_differ_are_found() {
        let with = |module| ServerInfo { module, ..sound("", &[]) };
        let mut findings = Findings::default();
        compare_versions(&[(address(), with(Some(100))), (address(), with(Some(200)))], &mut findings);
        assert_eq!(findings.names(), [(Severity::Warning, "module-version")]);
    }
}
