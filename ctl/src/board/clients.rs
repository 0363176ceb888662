//! The clients that take messages: those whose last command was a pop, as `CLIENT LIST` tells it on each server.
//!
//! The server does not tell which queues they pop. Connections with the same name, from the same host and of the same library
//! are one row, as those of one worker are.

use crate::server::reply;
use crate::text::time::now_ms;
use dq_client::{cmd, Address, Client, Error};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// The commands that take messages.
const POPS: [&str; 3] = ["DQ.POP", "DQ.MPOP", "DQ.ACKPOP"];

/// What connections have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Popper {
    /// As `CLIENT SETNAME` gave it; may be empty.
    pub name: String,
    pub host: String,
    /// As `CLIENT SETINFO` gave it; may be empty.
    pub library: String,
}

/// Such connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connections {
    pub count: u64,
    /// How many of them are blocked in a pop.
    pub waiting: u64,
    /// When one of them was last active, in Unix ms. The server rounds it to seconds.
    pub last_active: i64,
}

/// The connections of all servers.
#[derive(Default)]
pub struct Listed {
    /// Those that take messages.
    pub poppers: BTreeMap<Popper, Connections>,
    /// How many there are of each name, whatever they do.
    pub names: BTreeMap<String, u64>,
}

/// Those that take messages. Needs the rights `+client|list` and `+client|info`.
pub fn find(client: &Client) -> Result<BTreeMap<Popper, Connections>, Error> {
    Ok(list(client)?.poppers)
}

/// All of them, with the same rights.
pub fn list(client: &Client) -> Result<Listed, Error> {
    let mut found = Listed::default();
    for server in client.servers()? {
        list_on(client, &server, &mut found)?;
    }
    Ok(found)
}

fn list_on(client: &Client, server: &Address, found: &mut Listed) -> Result<(), Error> {
    let ask = |words: &[&str]| Ok::<_, Error>(reply::text(&client.call_on(server, cmd("CLIENT").arg(words))?));
    let own = ask(&["INFO"])?.unwrap_or_default();
    let listed = ask(&["LIST", "TYPE", "NORMAL"])?.unwrap_or_default();
    let is_here = |line: &&str| field(line, "db") == field(&own, "db");
    for line in listed.lines().filter(is_here) {
        note(line, now_ms(), &mut found.poppers);
        *found.names.entry(field(line, "name").to_owned()).or_default() += 1;
    }
    Ok(())
}

/// Adds the client of a line of `CLIENT LIST`, if its last command was a pop.
fn note(line: &str, now: i64, found: &mut BTreeMap<Popper, Connections>) {
    if !POPS.iter().any(|pop| pop.eq_ignore_ascii_case(field(line, "cmd"))) {
        return;
    }
    let address = field(line, "addr");
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let popper = Popper {
        name: field(line, "name").to_owned(),
        host: host.trim_matches(['[', ']']).to_owned(),
        library: field(line, "lib-name").to_owned(),
    };
    let idle = field(line, "idle").parse::<i64>().unwrap_or(0);
    let active = now.saturating_sub(idle.saturating_mul(1_000));
    let connections = found.entry(popper).or_insert(Connections { count: 0, waiting: 0, last_active: active });
    connections.count += 1;
    connections.waiting += u64::from(field(line, "flags").contains('b'));
    connections.last_active = connections.last_active.max(active);
}

/// The value of `NAME=VALUE` among words; empty if there is none.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
}

impl Popper {
    pub fn json(&self, connections: Connections) -> Map<String, Json> {
        let texts = [("client", &self.name), ("host", &self.host), ("library", &self.library)];
        let mut object: Map<_, _> =
            texts.into_iter().map(|(name, text)| (name.to_owned(), Json::from(text.as_str()))).collect();
        object.insert("connections".to_owned(), connections.count.into());
        object.insert("waiting".to_owned(), connections.waiting.into());
        object.insert("last-active".to_owned(), connections.last_active.into());
        object
    }
}

#[cfg(test)]
mod tests {
    use super::{note, Connections, Popper};
    use std::collections::BTreeMap;

    #[test]
    fn the_connections_of_a_worker_are_one_row() {
        let mut found = BTreeMap::new();
        for line in [
            "id=1 addr=10.0.0.4:5000 name=mail idle=3 flags=b db=0 cmd=dq.pop user=default lib-name=redis-py",
            "id=2 addr=10.0.0.4:5001 name=mail idle=1 flags=N db=0 cmd=DQ.ACKPOP user=default lib-name=redis-py",
            "id=3 addr=10.0.0.4:5002 name=mail idle=0 flags=P db=0 cmd=subscribe user=default lib-name=redis-py",
            "id=4 addr=[::1]:5003 name= idle=9 flags=b db=0 cmd=dq.mpop user=default",
        ] {
            note(line, 60_000, &mut found);
        }
        let popper = |name: &str, host: &str, library: &str| Popper {
            name: name.to_owned(),
            host: host.to_owned(),
            library: library.to_owned(),
        };
        let expected = [
            (popper("", "::1", ""), Connections { count: 1, waiting: 1, last_active: 51_000 }),
            (popper("mail", "10.0.0.4", "redis-py"), Connections { count: 2, waiting: 1, last_active: 59_000 }),
        ];
        assert_eq!(found, BTreeMap::from(expected));
    }
}
