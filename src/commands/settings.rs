//! The settings of a queue as options of `DQ.CREATE` and `DQ.ALTER`.

use super::error::Error;
use super::options::{options, Options};
use crate::module_api::register::Arg;
use crate::queue::settings::{Backoff, Percent, Retries, Settings, MAX_LENGTH, MAX_PAYLOAD};
use crate::queue::time::DurationMs;

options! {
    /// The settings of a queue.
    pub enum Setting {
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
        Retries => Arg::token_int(c"RETRIES", c"retries"),
        Backoff => Arg::block(
            c"backoff",
            &[Arg::int(c"base-ms"), Arg::int(c"max-ms"), Arg::token_int(c"JITTER", c"percent").optional()],
        )
        .after(c"BACKOFF"),
        Ttl => Arg::token_int(c"TTL", c"ttl-ms"),
        MaxLen => Arg::token_int(c"MAXLEN", c"messages"),
        MaxInFlight => Arg::token_int(c"MAXINFLIGHT", c"leases"),
        DeadLen => Arg::token_int(c"DEADLEN", c"dead-messages"),
        DeadTtl => Arg::token_int(c"DEADTTL", c"dead-ttl-ms"),
        MaxPayload => Arg::token_int(c"MAXPAYLOAD", c"bytes"),
    }
}

/// The settings that a command names. The others keep their values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    lease: Option<DurationMs>,
    retries: Option<Retries>,
    backoff: Option<(DurationMs, DurationMs, Option<Percent>)>,
    ttl: Option<DurationMs>,
    maxlen: Option<u64>,
    maxinflight: Option<u64>,
    deadlen: Option<Option<u64>>,
    deadttl: Option<DurationMs>,
    maxpayload: Option<u64>,
}

impl Change {
    /// Reads the value of a setting.
    pub fn read(&mut self, setting: Setting, options: &mut Options<'_, '_>) -> Result<(), Error> {
        match setting {
            Setting::Lease => self.lease = Some(options.positive_duration()?),
            Setting::Retries => self.retries = Some(options.retries()?),
            Setting::Backoff => self.backoff = Some(backoff(options)?),
            Setting::Ttl => self.ttl = Some(options.duration()?),
            Setting::MaxLen => self.maxlen = Some(options.length(MAX_LENGTH)?),
            Setting::MaxInFlight => self.maxinflight = Some(options.length(MAX_LENGTH)?),
            Setting::DeadLen => self.deadlen = Some(options.length_or_all()?),
            Setting::DeadTtl => self.deadttl = Some(options.duration()?),
            Setting::MaxPayload => self.maxpayload = Some(options.length(MAX_PAYLOAD)?),
        }
        Ok(())
    }

    /// Returns `settings` with this change applied.
    pub fn of(&self, settings: &Settings) -> Settings {
        let backoff = self.backoff.map(|(base, max, jitter)| {
            // If the command does not name the jitter, it keeps its value.
            Backoff { base, max, jitter: jitter.unwrap_or(settings.backoff.jitter) }
        });
        Settings {
            lease: self.lease.unwrap_or(settings.lease),
            retries: self.retries.unwrap_or(settings.retries),
            backoff: backoff.unwrap_or(settings.backoff),
            ttl: self.ttl.unwrap_or(settings.ttl),
            maxlen: self.maxlen.unwrap_or(settings.maxlen),
            maxinflight: self.maxinflight.unwrap_or(settings.maxinflight),
            deadlen: self.deadlen.unwrap_or(settings.deadlen),
            deadttl: self.deadttl.unwrap_or(settings.deadttl),
            maxpayload: self.maxpayload.unwrap_or(settings.maxpayload),
        }
    }
}

/// Parses `base max [JITTER percent]`.
fn backoff(options: &mut Options<'_, '_>) -> Result<(DurationMs, DurationMs, Option<Percent>), Error> {
    let is_number =
        |word: Option<&[u8]>| word.is_none_or(|word| word.first().is_some_and(|byte| !byte.is_ascii_alphabetic()));
    if options.rest().remaining() < 2 {
        return Err(Error::BackoffValues);
    }
    let base = options.duration()?;
    if !is_number(options.rest().peek()) {
        return Err(Error::BackoffValues);
    }
    let max = options.duration()?;
    if base > max {
        return Err(Error::Backoff);
    }
    let jitter = if options.accept(b"JITTER") { Some(options.percent()?) } else { None };
    Ok((base, max, jitter))
}
