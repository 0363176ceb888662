//! The settings of a queue, as `DQ.CREATE` and `DQ.ALTER` take them.

use super::error::Error;
use super::options::Options;
use crate::queue::settings::{Backoff, Retries, Settings};
use crate::queue::time::DurationMs;
use crate::server::register::{Arg, Call};

/// A key and settings, as arguments.
pub const KEY_AND_SETTINGS: &[Arg] = &[
    Arg::key(c"key"),
    Arg::token_int(c"LEASE", c"lease-ms").optional(),
    Arg::token_int(c"RETRIES", c"retries").optional(),
    Arg::block(c"backoff", &[Arg::int(c"base-ms"), Arg::int(c"max-ms")]).after(c"BACKOFF").optional(),
    Arg::token_int(c"TTL", c"ttl-ms").optional(),
    Arg::token_int(c"MAXLEN", c"messages").optional(),
    Arg::token_int(c"MAXINFLIGHT", c"leases").optional(),
    Arg::token_int(c"DEADLEN", c"dead-messages").optional(),
];

const OPTIONS: &[&str] = &["LEASE", "RETRIES", "BACKOFF", "TTL", "MAXLEN", "MAXINFLIGHT", "DEADLEN"];

/// The settings that a command names; the others stay as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    lease: Option<DurationMs>,
    retries: Option<Retries>,
    backoff: Option<Backoff>,
    ttl: Option<DurationMs>,
    maxlen: Option<u64>,
    maxinflight: Option<u64>,
    deadlen: Option<Option<u64>>,
}

impl Change {
    /// Reads the settings of a call.
    pub fn parse(call: &mut Call<'_>) -> Result<Change, Error> {
        let mut change = Change::default();
        let mut options = Options::new(&mut call.args, OPTIONS);
        while let Some(option) = options.next()? {
            match option {
                "LEASE" => change.lease = Some(options.lease(option)?),
                "RETRIES" => change.retries = Some(options.retries(option)?),
                "BACKOFF" => change.backoff = Some(backoff(option, &mut options)?),
                "TTL" => change.ttl = Some(options.duration(option)?),
                "MAXLEN" => change.maxlen = Some(options.length(option)?),
                "MAXINFLIGHT" => change.maxinflight = Some(options.length(option)?),
                _ => change.deadlen = Some(options.length_or_all(option)?),
            }
        }
        Ok(change)
    }

    /// The settings with this change.
    pub fn of(&self, settings: &Settings) -> Settings {
        Settings {
            lease: self.lease.unwrap_or(settings.lease),
            retries: self.retries.unwrap_or(settings.retries),
            backoff: self.backoff.unwrap_or(settings.backoff),
            ttl: self.ttl.unwrap_or(settings.ttl),
            maxlen: self.maxlen.unwrap_or(settings.maxlen),
            maxinflight: self.maxinflight.unwrap_or(settings.maxinflight),
            deadlen: self.deadlen.unwrap_or(settings.deadlen),
        }
    }
}

fn backoff(option: &'static str, options: &mut Options<'_, '_>) -> Result<Backoff, Error> {
    if options.rest().remaining() < 2 {
        return Err(Error::BackoffValues);
    }
    let backoff = Backoff { base: options.duration(option)?, max: options.duration(option)? };
    if backoff.base > backoff.max {
        return Err(Error::Backoff);
    }
    Ok(backoff)
}
