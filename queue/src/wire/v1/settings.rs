//! The settings of a queue.

use super::super::super::backoff::{Backoff, Percent};
use super::super::super::forward::Forward as LiveForward;
use super::super::super::rate::Rate;
use super::super::super::settings::{GroupOrder, Settings as LiveSettings};
use super::super::Refused;
use super::forward::Forward;
use super::numbers::{duration, retries};
use serde::{Deserialize, Serialize};

/// Settings: lease, retries, backoff base, maximum and jitter, TTL, MAXLEN, MAXINFLIGHT, DEADLEN, DEADTTL, MAXPAYLOAD,
/// rate and its period, DEDUPE, RETAIN, DONELEN, GROUPINFLIGHT, whether groups take turns, and FORWARD if it is set.
#[derive(Debug, Serialize, Deserialize)]
pub struct Settings(
    u64,
    i32,
    u64,
    u64,
    u8,
    u64,
    u64,
    u64,
    Option<u64>,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    Option<u64>,
    u64,
    bool,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<Box<Forward>>,
);

impl Settings {
    /// The wire form of settings.
    pub(super) fn of(live: &LiveSettings, forward: Option<&LiveForward>) -> Settings {
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
            live.retain.as_ms(),
            live.donelen,
            live.groupinflight,
            live.grouporder == GroupOrder::Turn,
            forward.map(|forward| Box::new(Forward::from(forward))),
        )
    }

    /// Converts back what [`Settings::of`] wrote for a queue that does not forward.
    pub(super) fn alone(self) -> Result<LiveSettings, Refused> {
        match self.live()? {
            (settings, None) => Ok(settings),
            (_, Some(_)) => Err(Refused::Impossible),
        }
    }

    /// Converts back what [`Settings::of`] wrote. Returns an error if a value is out of its range.
    pub(super) fn live(self) -> Result<(LiveSettings, Option<Box<LiveForward>>), Refused> {
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
            retain,
            donelen,
            groupinflight,
            by_turn,
            forward,
        ) = self;
        let jitter = Percent::new(jitter).ok_or(Refused::Malformed)?;
        let live = LiveSettings {
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
            retain: duration(retain)?,
            donelen,
            groupinflight,
            grouporder: if by_turn { GroupOrder::Turn } else { GroupOrder::Due },
        };
        Ok((live, forward.map(|forward| Box::new(LiveForward::from(*forward)))))
    }
}
