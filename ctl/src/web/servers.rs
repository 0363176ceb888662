//! The servers: which there are, and what they hold together.

use crate::board::history::Sample;
use crate::server::failure::Failure;
use crate::server::reply;
use dq_client::blocking::Client;
use dq_client::{cmd, Error};
use std::collections::BTreeMap;

/// The fields of `INFO dq`, added up over all servers, without their prefix; and why some could not be read.
#[derive(Default)]
pub struct Sums {
    pub totals: BTreeMap<String, i64>,
    pub failed: Vec<String>,
}

pub fn read(client: &Client) -> Result<Sums, Failure> {
    let (mut sums, mut last) = (Sums::default(), None);
    let servers = client.servers()?;
    for server in &servers {
        // The second attempt opens another connection, if the first one was closed by the server meanwhile.
        let command = cmd("INFO").arg("persistence").arg("dq").clone();
        let info = client.call_on(server, &command).or_else(|_| client.call_on(server, &command));
        let failure: Failure = match info {
            Ok(info) => {
                let info = reply::text(&info).unwrap_or_default();
                let has_module = info.lines().any(|line| line.starts_with("dq_"));
                // What it has loaded so far is not what it holds.
                let is_loading = info.lines().any(|line| line.trim() == "loading:1");
                if has_module && !is_loading {
                    let counts = info.lines().filter_map(|line| line.strip_prefix("dq_")?.trim().split_once(':'));
                    for (name, number) in counts.filter_map(|(name, text)| Some((name, text.parse::<i64>().ok()?))) {
                        *sums.totals.entry(name.to_owned()).or_default() += number;
                    }
                    continue;
                }
                match is_loading {
                    true => Failure::failed(format!("{server} is loading its data")),
                    false => Error::NoModule(server.to_string()).into(),
                }
            }
            Err(error @ Error::NoPermission(_)) => return Err(error.into()),
            Err(error) => error.into(),
        };
        sums.failed.push(format!("{server}: {}", failure));
        last = Some(failure);
    }
    match last {
        Some(failure) if sums.failed.len() == servers.len() => Err(failure),
        _ => Ok(sums),
    }
}

/// A sample of all queues together; `None` if some could not be read, without which the totals are too low.
pub fn sample(sums: &Result<Sums, Failure>) -> Option<Sample> {
    let Sums { totals, failed } = sums.as_ref().ok()?;
    let number = |name: &str| totals.get(name).copied().unwrap_or(0);
    failed.is_empty().then(|| Sample::of(number, |name| number(&format!("total_{name}"))))
}

/// For the head of the page.
pub fn names(client: &Client) -> String {
    match client.servers() {
        Ok(servers) if client.is_cluster() => format!("Cluster of {} masters", servers.len()),
        Ok(servers) => servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Err(_) => String::new(),
    }
}
