//! `INFO everything` of a server, and its configuration if the user may read it.

use super::advice::redis_cli;
use super::reply::{self, Fields};
use crate::text::unix_ms;
use dq_client::{blocking::Client, cmd, Address, Error};
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

/// The settings that are looked at.
const SETTINGS: [&str; 5] =
    ["save", "appendonly", "appendfsync", "min-replicas-to-write", "stop-writes-on-bgsave-error"];

/// One server at one time.
#[derive(Default)]
pub struct ServerInfo {
    /// The program that talks to it, with the options that name it.
    pub redis_cli: String,
    pub fields: BTreeMap<String, String>,
    /// The version of the module.
    pub module: Option<u32>,
    /// `None`: the user may not read it.
    pub config: Option<Fields>,
    pub clock: Option<Clock>,
}

/// How far the clock of a server is ahead of the local one, in ms, and how exact that is.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub ahead: i64,
    pub uncertain: i64,
}

impl ServerInfo {
    /// Reads a server. Rights to `CONFIG GET` and `TIME` may be missing.
    pub fn read(client: &Client, server: &Address) -> Result<ServerInfo, Error> {
        let info = client.call_on(server, cmd("INFO").arg("everything"))?;
        let mut this = ServerInfo::parse(&reply::text(&info).unwrap_or_default());
        this.redis_cli = redis_cli(&server.to_string());
        this.config = config(client, server)?;
        this.clock = match clock(client, server) {
            Ok(clock) => clock,
            Err(error) => refused(error)?,
        };
        Ok(this)
    }

    /// Reads only what decides whether a server refuses writes. `CONFIG GET` is sent only if the answer depends on it.
    pub fn read_writes(client: &Client, server: &Address) -> Result<ServerInfo, Error> {
        let info = client.call_on(server, &cmd("INFO"))?;
        let mut this = ServerInfo::parse(&reply::text(&info).unwrap_or_default());
        if this.refuses_writes() || !this.text("min_slaves_good_slaves").is_empty() {
            this.config = config(client, server)?;
        }
        Ok(this)
    }

    pub fn parse(info: &str) -> ServerInfo {
        let mut this = ServerInfo::default();
        for (name, value) in info.lines().filter_map(|line| line.trim_end().split_once(':')) {
            if name == "module" {
                let mut parts = value.split(',').filter_map(|part| part.split_once('='));
                if parts.next() == Some(("name", "dq")) {
                    this.module = parts.find(|(name, _)| *name == "ver").and_then(|(_, ver)| ver.parse().ok());
                }
            } else {
                this.fields.insert(name.to_owned(), value.to_owned());
            }
        }
        this
    }

    /// A command that sets a parameter of this server.
    pub fn config_set(&self, parameter: &str) -> String {
        self.command(&format!("CONFIG SET {parameter}"))
    }

    /// A command on this server, to be pasted into a shell.
    pub fn command(&self, words: &str) -> String {
        format!("{} {words}", self.redis_cli)
    }

    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Zero if it is missing.
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Whether it is known that a setting has this value.
    pub fn is_set(&self, name: &str, value: &str) -> bool {
        self.config.as_ref().is_some_and(|config| config.text(name) == value)
    }

    /// Whether a setting may have this value: it has, or the user may not read it.
    pub fn may_be_set(&self, name: &str, value: &str) -> bool {
        self.config.is_none() || self.is_set(name, value)
    }

    pub fn is_replica(&self) -> bool {
        self.text("role") == "slave"
    }

    pub fn is_loading(&self) -> bool {
        self.text("loading") == "1"
    }

    /// Whether the AOF is on; `None` if that is unknown. `aof_enabled` is 0 while a server loads its AOF and while a
    /// replica loads the data of its master, whatever its setting.
    pub fn has_aof(&self) -> Option<bool> {
        match self.config.as_ref().map(|config| config.text("appendonly")).as_deref() {
            Some("yes") => Some(true),
            Some("no") => Some(false),
            _ if self.is_loading() || self.text("master_sync_in_progress") == "1" => None,
            _ => Some(self.text("aof_enabled") != "0"),
        }
    }

    /// The replicas of a master: the values of `slave0`, `slave1` and so on.
    pub fn replicas(&self) -> Vec<Address> {
        let address = |(name, line): (&String, &String)| {
            name.strip_prefix("slave").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))?;
            let value = |name: &str| line.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            Some(Address::Tcp(value("ip")?.to_owned(), value("port")?.parse().ok()?))
        };
        self.fields.iter().filter_map(address).collect()
    }
}

/// The settings; `None` if the user may not read them.
fn config(client: &Client, server: &Address) -> Result<Option<Fields>, Error> {
    match client.call_on(server, cmd("CONFIG").arg("GET").arg(&SETTINGS)) {
        Ok(reply) => Ok(Fields::read(reply).ok().flatten()),
        Err(error) => refused(error),
    }
}

/// A missing right is nothing worse than that; neither is a command that was renamed.
fn refused<T>(error: Error) -> Result<Option<T>, Error> {
    match error {
        Error::NoPermission(_) | Error::Server(_) => Ok(None),
        error => Err(error),
    }
}

/// Compares the clocks. The round trip bounds the error.
fn clock(client: &Client, server: &Address) -> Result<Option<Clock>, Error> {
    let (begin, before) = (Instant::now(), unix_ms(SystemTime::now()));
    let reply = client.call_on(server, &cmd("TIME"))?;
    let took = i64::try_from(begin.elapsed().as_millis()).unwrap_or(i64::MAX);
    let parts = reply::list(reply).unwrap_or_default();
    let mut parts = parts.iter().filter_map(|part| reply::text(part)?.parse::<i64>().ok());
    let (Some(seconds), Some(micros)) = (parts.next(), parts.next()) else { return Ok(None) };
    Ok(Some(Clock { ahead: seconds * 1_000 + micros / 1_000 - before - took / 2, uncertain: took / 2 + 1 }))
}
