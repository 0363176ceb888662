//! The settings of a queue.

use super::super::super::backoff::{Backoff, Percent};
use super::super::super::rate::Rate;
use super::super::super::settings::Settings as LiveSettings;
use super::super::Refused;
use super::numbers::{duration, retries};
use serde::{Deserialize, Serialize};

/// Settings: lease, retries, backoff base, maximum and jitter, TTL, MAXLEN, MAXINFLIGHT, DEADLEN, DEADTTL, MAXPAYLOAD,
/// rate and its period, DEDUPE.
#[derive(Debug, Serialize, Deserialize)]
pub struct Settings(u64, i32, u64, u64, u8, u64, u64, u64, Option<u64>, u64, u64, u64, u64, u64);

impl From<&LiveSettings> for Settings {
    fn from(live: &LiveSettings) -> Self {
        Settings(
            live.lease.as_ms(),
            live.retries.count(),
            live.backoff.base.as_ms(),
            live.backoff.max.as_ms(),
            live.backoff.jitter.get(),
            live.ttl.as_ms(),
            live.maxlen,
            live.maxinflight,
            live.deadlen,
            live.deadttl.as_ms(),
            live.maxpayload,
            live.rate.most,
            live.rate.period.as_ms(),
            live.dedupe.as_ms(),
        )
    }
}

impl TryFrom<Settings> for LiveSettings {
    type Error = Refused;

    fn try_from(wire: Settings) -> Result<Self, Refused> {
        let Settings(
            lease,
            count,
            base,
            max,
            jitter,
            ttl,
            maxlen,
            maxinflight,
            deadlen,
            deadttl,
            maxpayload,
            most,
            period,
            dedupe,
        ) = wire;
        let jitter = Percent::new(jitter).ok_or(Refused::Malformed)?;
        Ok(LiveSettings {
            lease: duration(lease)?,
            retries: retries(count)?,
            backoff: Backoff { base: duration(base)?, max: duration(max)?, jitter },
            ttl: duration(ttl)?,
            maxlen,
            maxinflight,
            deadlen,
            deadttl: duration(deadttl)?,
            maxpayload,
            rate: Rate { most, period: duration(period)? },
            dedupe: duration(dedupe)?,
        })
    }
}
