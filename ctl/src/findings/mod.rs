//! `dqctl doctor`: finds what is set up in a way that loses or delays messages. It only reads.

mod dead;
mod finding;
mod info;
mod moved;
mod queues;
mod servers;
mod waiting;

use crate::cli::doctor::DoctorArgs;
use crate::dead::Targets;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::queues as names;
use dq_client::{cmd, Address, Client, Error};
pub use finding::MOST_NAMED;
use finding::{Findings, Severity, Subject};
use info::ServerInfo;
use queues::Again;
use serde_json::Value as Json;
use std::thread;
use std::time::Duration;

/// How long a queue is watched of which one look does not show enough: whether its messages are taken, and whether its backlog
/// shrinks.
const WATCH: Duration = Duration::from_secs(2);

/// What is found with the default limits, as JSON, the most important first.
pub fn examine(client: &Client) -> Result<Vec<Json>, Failure> {
    let mut findings = Findings::default();
    look_at_servers(client, &mut findings)?;
    look_at_queues(client, &DoctorArgs::default(), &mut findings)?;
    Ok(findings.json())
}

pub fn doctor(client: &Client, args: &DoctorArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut findings = Findings::default();
    let servers = look_at_servers(client, &mut findings)?;
    let queues = look_at_queues(client, args, &mut findings)?;
    let mut nothing = "nothing";
    if args.critical {
        findings.keep_critical();
        nothing = "nothing critical";
    }
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    findings.print(output, &format!("{nothing} found: {} and {}", count(servers, "server"), count(queues, "queue")))
}

/// All masters and their replicas. Returns how many.
fn look_at_servers(client: &Client, findings: &mut Findings) -> Result<usize, Failure> {
    let mut seen: Vec<(Address, ServerInfo)> = Vec::new();
    let masters = client.servers()?;
    for server in &masters {
        match read(client, server) {
            Ok(info) => seen.push((server.clone(), info)),
            Err(Error::NoPermission(_)) => {
                let subject = Subject::Server(server.to_string());
                findings.about(subject).not_checked("info", "the state of the server", "+info");
            }
            Err(error) if client.is_cluster() && error.is_transient() => {
                servers::unreachable(server, false, &error, findings);
            }
            Err(error) => return Err(error.into()),
        }
    }
    seen.iter().for_each(|(server, info)| servers::is_master(server, info, findings));
    let replicas: Vec<Address> =
        seen.iter().flat_map(|(_, info)| info.replicas()).map(|replica| replica.address).collect();
    for replica in replicas {
        match read(client, &replica) {
            Ok(info) => seen.push((replica, info)),
            Err(error) => servers::unreachable(&replica, true, &error, findings),
        }
    }
    for (server, info) in &seen {
        servers::check(server, info, findings);
    }
    servers::compare(&seen, findings);
    Ok(seen.len())
}

/// Reads a server, and once more if it does not answer: one that loads or writes to a slow disk is silent for seconds.
fn read(client: &Client, server: &Address) -> Result<ServerInfo, Error> {
    match ServerInfo::read(client, server) {
        Err(error) if error.is_transient() => ServerInfo::read(client, server),
        read => read,
    }
}

/// All queues. Returns how many.
fn look_at_queues(client: &Client, args: &DoctorArgs, findings: &mut Findings) -> Result<usize, Failure> {
    // Of a server without the module, or of one that does not answer, nothing more is to be said than that.
    let is_partial = findings.is_critical("module") || findings.is_critical("unreachable");
    if is_partial && !client.is_cluster() {
        return Ok(0);
    }
    for server in client.servers()? {
        if let Err(Error::NoPermission(_)) = client.call_on(&server, cmd("SCAN").arg(0).arg("COUNT").arg(1)) {
            findings.about(Subject::All).not_checked("queues", "the queues", "+scan");
            return Ok(0);
        }
    }
    let limits = queues::Limits::of(args);
    match look_at_each(client, args, &limits, findings) {
        // The servers that answer refuse to serve if a part of the cluster is missing.
        Err(failure) if is_partial => {
            let advice = "run dqctl doctor again when all servers are back";
            findings.about(Subject::All).add(
                Severity::NotChecked,
                "queues",
                "the queues",
                &failure.to_string(),
                advice,
            );
            Ok(0)
        }
        looked => looked,
    }
}

/// The queues of the servers that answer. Returns how many.
fn look_at_each(
    client: &Client,
    args: &DoctorArgs,
    limits: &queues::Limits,
    findings: &mut Findings,
) -> Result<usize, Failure> {
    let (found, missing) = names::find_reachable(client, args.pattern.as_deref())?;
    let (mut unclear, mut targets) = (Vec::new(), Targets::default());
    for name in &found {
        let again = queues::check(client, name, limits, &mut targets, findings)?;
        if again.is_needed() {
            unclear.push((name, again));
        }
    }
    if !unclear.is_empty() {
        thread::sleep(WATCH);
    }
    for (name, Again { waiting, moved }) in unclear {
        if let Some(before) = waiting {
            waiting::check_again(client, name, &before, limits, findings)?;
        }
        if let Some(before) = moved {
            moved::check_again(client, name, &before, findings)?;
        }
    }
    missing.map_or(Ok(found.len()), Err)
}
