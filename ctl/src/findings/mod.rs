//! `dqctl doctor`: finds configurations that lose or delay messages. It only reads.
//!
//! [`servers`] and [`queues`] are tables of checks of `INFO` and `DQ.INFO`.

mod delivery;
mod finding;
mod looked;
mod queues;
mod servers;
mod writes;

use crate::board::{Board, Memory, Rows, Trouble};
use crate::cli::doctor::DoctorArgs;
use crate::output::Output;
use crate::server::{Failure, Outcome, ServerInfo};
use dq_client::{blocking::Client, Address, Error};
use finding::Findings;
pub use finding::{Diagnosis, Finding, Severity, Subject};
use looked::Queue;
use std::cell::OnceCell;
use writes::Writes;

/// What is found with the default limits, the most important first.
pub fn examine(client: &Client) -> Result<Vec<Finding>, Failure> {
    let args = DoctorArgs::unchanged().map_err(Failure::failed)?;
    look(client, &args).map(|(findings, _)| findings)
}

pub fn doctor(client: &Client, args: &DoctorArgs, output: &Output) -> Result<Outcome, Failure> {
    let (mut findings, [servers, queues]) = look(client, args)?;
    findings.retain(|finding| !args.critical || finding.found.severity == Severity::Critical);
    let nothing = if args.critical { "nothing critical" } else { "nothing" };
    finding::print(findings, output, &format!("{nothing} found: servers: {servers}, queues: {queues}"))
}

/// Returns the findings, and the numbers of servers and queues.
fn look(client: &Client, args: &DoctorArgs) -> Result<(Vec<Finding>, [usize; 2]), Failure> {
    let mut findings = Findings::default();
    let (servers, writes) = look_at_servers(client, &mut findings)?;
    let queues = look_at_queues(client, args, &writes, &mut findings)?;
    Ok((findings.sorted(), [servers, queues]))
}

/// All masters and their replicas. Returns how many, and whether they carry out writes.
fn look_at_servers(client: &Client, findings: &mut Findings) -> Result<(usize, Writes), Failure> {
    let mut seen: Vec<(Address, ServerInfo)> = Vec::new();
    for server in client.servers()? {
        match ServerInfo::read(client, &server) {
            Ok(info) => {
                servers::is_master(&server, &info, findings);
                seen.push((server, info));
            }
            Err(Error::NoPermission(_)) => {
                let subject = Subject::Server(server.to_string());
                findings.not_checked(&subject, "info", "+info");
            }
            Err(error) if client.is_cluster() && error.is_transient() => {
                servers::unreachable(&server, false, &error, findings);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let writes = Writes::summarize(seen.iter().map(|(_, info)| info));
    let replicas: Vec<_> = seen.iter().flat_map(|(_, info)| info.replicas()).collect();
    for replica in replicas {
        match ServerInfo::read(client, &replica) {
            Ok(info) => seen.push((replica, info)),
            Err(error) => servers::unreachable(&replica, true, &error, findings),
        }
    }
    seen.iter().for_each(|(server, info)| servers::check(server, info, findings));
    servers::compare_versions(&seen, findings);
    Ok((seen.len(), writes))
}

/// All queues. Returns how many.
fn look_at_queues(
    client: &Client,
    args: &DoctorArgs,
    writes: &Writes,
    findings: &mut Findings,
) -> Result<usize, Failure> {
    // Of a server without the module, or of one that does not answer or loads, nothing more is to be said than that.
    let is_partial = ["module", "unreachable", "loading"].iter().any(|check| findings.is_critical(check));
    if is_partial && !client.is_cluster() {
        return Ok(0);
    }
    let board = Board::new(client.clone(), args.pattern.clone(), Memory::Fields);
    let looked = board.sweep().and_then(|()| {
        let rows = board.rows(Rows::clone);
        for (name, row) in &rows {
            let queue = Queue { client, name, row, limits: args, writes, holding: OnceCell::new() };
            queues::check(&queue, findings)?;
        }
        let about = board.about();
        if let Some(why) = about.unlisted {
            let found =
                Diagnosis::new(Severity::NotChecked, "the other queues", &why, "look at them with --match PATTERN");
            findings.add(&Subject::All, "queues", found, Trouble::default());
        }
        about.missing.map_or(Ok(rows.len()), |missing| Err(Failure::failed(missing)))
    });
    match looked {
        Err(failure) if failure.is_denied() => findings.not_checked(&Subject::All, "queues", "+scan"),
        // The servers that answer refuse to serve if a part of the cluster is missing.
        Err(failure) if is_partial => {
            let advice = "run dqctl doctor again when all servers are back";
            let found = Diagnosis::new(Severity::NotChecked, "the queues", &failure.to_string(), advice);
            findings.add(&Subject::All, "queues", found, Trouble::default());
        }
        looked => return looked,
    }
    Ok(0)
}
