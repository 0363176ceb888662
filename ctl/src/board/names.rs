//! Which queues, and which other keys, a server or a cluster has: `SCAN TYPE` on each of its servers.

use crate::server::{reply, Failure};
use dq_client::{blocking::Client, cmd, Address, Error, Value};
use std::collections::BTreeSet;

/// The name of the data type, as `SCAN … TYPE` takes it and `TYPE` returns it.
const TYPE: &str = "DQ--queue";
/// How many keys the server looks at in one step, so that each step is short.
const PAGE: u32 = 1000;

/// The names of the queues on the servers of a cluster that answer, and why those of the others are missing. It is a
/// failure if none answers.
pub fn find_reachable(client: &Client, pattern: Option<&str>) -> Result<(Vec<Vec<u8>>, Option<Failure>), Failure> {
    let (mut names, mut silent, mut last) = (BTreeSet::new(), Vec::new(), None);
    let servers = client.servers()?;
    for server in &servers {
        match find_on(client, server, pattern) {
            Ok(found) => names.extend(found),
            Err(failure) => {
                silent.push(server.to_string());
                last = Some(failure);
            }
        }
    }
    let missing = match last {
        Some(failure) if silent.len() == servers.len() => return Err(failure),
        last => last.map(|why| Failure::failed(format!("the queues of {} are missing: {why}", silent.join(", ")))),
    };
    Ok((names.into_iter().collect(), missing))
}

/// Checks that all servers answer and have loaded the module. On one without it, all queues seem to be gone.
pub fn check(client: &Client) -> Result<(), Failure> {
    client.servers()?.iter().try_for_each(|server| check_on(client, server))
}

/// The same, but one server of a cluster that answers is enough.
pub fn check_any(client: &Client) -> Result<(), Failure> {
    let (mut answers, mut silent) = (false, None);
    for server in client.servers().map_err(Failure::read)? {
        match check_on(client, &server) {
            Ok(()) => answers = true,
            Err(failure) if failure.lacks_module() => return Err(failure),
            Err(failure) => silent = Some(failure),
        }
    }
    silent.filter(|_| !answers).map_or(Ok(()), Err)
}

/// The same for one server. Every user has the right to it.
pub fn check_on(client: &Client, server: &Address) -> Result<(), Failure> {
    // Without its key, the command is refused, unless it does not exist.
    match client.call_on(server, &cmd("DQ.INFO")) {
        Ok(_) | Err(Error::Server(_) | Error::NoPermission(_)) => Ok(()),
        Err(error) => Err(Failure::read(error).about_server(server)),
    }
}

/// The failure of a server without the module, which names that server if it is found.
pub fn name_server(failure: Failure, client: &Client) -> Failure {
    check(client).err().filter(Failure::lacks_module).unwrap_or(failure)
}

/// The names of the queues of one server, some of them more than once.
pub fn find_on(client: &Client, server: &Address, pattern: Option<&str>) -> Result<Vec<Vec<u8>>, Failure> {
    check_on(client, server)?;
    scan(client, server, TYPE, pattern.map(str::as_bytes))
}

/// The keys of a type on one server, some of them more than once.
pub fn scan(client: &Client, server: &Address, of_type: &str, pattern: Option<&[u8]>) -> Result<Vec<Vec<u8>>, Failure> {
    let (mut cursor, mut names) = (b"0".to_vec(), Vec::new());
    loop {
        let mut command = cmd("SCAN");
        command.arg(&cursor).arg("COUNT").arg(PAGE).arg("TYPE").arg(of_type);
        if let Some(pattern) = pattern {
            command.arg("MATCH").arg(pattern);
        }
        let mut page = reply::list(client.call_on(server, &command)?)?.into_iter();
        let Some(Value::BulkString(next)) = page.next() else { return Ok(names) };
        for name in reply::list(page.next().unwrap_or(Value::Nil))? {
            if let Value::BulkString(name) = name {
                names.push(name);
            }
        }
        cursor = next;
        if cursor == b"0" {
            return Ok(names);
        }
    }
}
