//! The replies of `DQ.INFO` and `DQ.STATS`.

use super::command::time_of;
use super::settings::Settings;
use crate::reply::{self, Fields};
use crate::Error;
use redis::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The counts, settings and totals of a queue.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// Messages that wait for their due time.
    pub delayed: u64,
    /// Messages that are due.
    pub ready: u64,
    /// Messages under a lease.
    pub inflight: u64,
    /// Messages that failed for good.
    pub dead: u64,
    /// Messages that were completed, and are kept for a time.
    pub done: u64,
    /// Groups that have a message which is not dead.
    pub groups: u64,
    /// Messages that are due and wait for their group.
    pub blocked: u64,
    /// Ids that are refused although their message is gone.
    pub known: u64,
    /// Batches that have not ended.
    pub batches: u64,
    /// The size of all payloads in bytes.
    pub payload_bytes: u64,
    /// When the next delayed message is due.
    pub next_due: Option<SystemTime>,
    /// How long the oldest ready message has been due.
    pub oldest_ready: Option<Duration>,
    /// How long ago the earliest running delivery began.
    pub oldest_inflight: Option<Duration>,
    /// How long ago the earliest of the dead messages died.
    pub oldest_dead: Option<Duration>,
    /// How long ago the latest of the dead messages died.
    pub newest_dead: Option<Duration>,
    /// How long ago any message died on this server, even if it was redriven or dropped since.
    pub last_death: Option<Duration>,
    /// How long ago the last delivery began on this server.
    pub last_delivery: Option<Duration>,
    /// Messages that recur.
    pub schedules: u64,
    /// Consumers with a name that hold messages.
    pub consumers: u64,
    /// Groups that are paused.
    pub paused_groups: u64,
    /// Clients that are blocked on the queue.
    pub waiting_clients: u64,
    /// Whether delivery is suspended.
    pub paused: bool,
    /// When a pause ends by itself.
    pub paused_until: Option<SystemTime>,
    /// Whether it accepts no messages.
    pub closed: bool,
    /// When it accepts messages again by itself.
    pub closed_until: Option<SystemTime>,
    /// When the rate limit allows a delivery again; `None` if it does now.
    pub next_delivery: Option<SystemTime>,
    /// Where the server forwards messages, as `FORWARD` takes it; `None` if they are popped.
    pub forward: Option<String>,
    /// Why messages cannot be forwarded at present.
    pub forward_error: Option<String>,
    /// Since when they cannot be forwarded.
    pub forward_failing_since: Option<SystemTime>,
    /// Where the server forwards dead messages, as `DEADFORWARD` takes it; `None` if they stay.
    pub dead_forward: Option<String>,
    /// Why dead messages cannot be forwarded at present.
    pub dead_forward_error: Option<String>,
    /// Since when they cannot be forwarded.
    pub dead_forward_failing_since: Option<SystemTime>,
    /// The settings, each `Some`.
    pub settings: Settings,
    /// What has happened since the queue was created.
    pub totals: Totals,
    /// Fields that are unknown to this version of the crate, as text.
    pub other: BTreeMap<String, String>,
    numbers: Vec<(String, i64)>,
}

impl Info {
    /// Any number of `DQ.INFO` by its name, as the server sent it; `None` if it is null or does not exist.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<i64> {
        self.numbers.iter().find(|(field, _)| field == name).map(|(_, number)| *number)
    }

    pub(super) fn read(reply: Value) -> Result<Info, Error> {
        let fields = Fields::from(reply)?;
        let time =
            |name: &str| Ok::<_, Error>(fields.maybe_int(name)?.map(|ms| time_of(u64::try_from(ms).unwrap_or(0))));
        let age = |name: &str| {
            Ok::<_, Error>(fields.maybe_int(name)?.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
        };
        Ok(Info {
            delayed: fields.count("delayed")?,
            ready: fields.count("ready")?,
            inflight: fields.count("inflight")?,
            dead: fields.count("dead")?,
            done: fields.count("done")?,
            groups: fields.count("groups")?,
            blocked: fields.count("blocked")?,
            known: fields.count("known")?,
            batches: fields.count("batches")?,
            payload_bytes: fields.count("payload-bytes")?,
            next_due: time("next-due")?,
            oldest_ready: age("oldest-ready")?,
            oldest_inflight: age("oldest-inflight")?,
            oldest_dead: age("oldest-dead")?,
            newest_dead: age("newest-dead")?,
            last_death: age("last-death")?,
            last_delivery: age("last-delivery")?,
            schedules: fields.count("schedules")?,
            consumers: fields.count("consumers")?,
            paused_groups: fields.count("paused-groups")?,
            waiting_clients: fields.count("waiting-clients")?,
            paused: fields.count("paused")? != 0,
            paused_until: time("paused-until")?,
            closed: fields.count("closed")? != 0,
            closed_until: time("closed-until")?,
            next_delivery: time("next-delivery")?,
            forward: fields.maybe_text("forward")?.filter(|forward| forward != "NONE"),
            forward_error: fields.maybe_text("forward-error")?,
            forward_failing_since: time("forward-failing-since")?,
            dead_forward: fields.maybe_text("deadforward")?.filter(|forward| forward != "NONE"),
            dead_forward_error: fields.maybe_text("deadforward-error")?,
            dead_forward_failing_since: time("deadforward-failing-since")?,
            settings: Settings::read(&fields)?,
            totals: Totals::read(&fields)?,
            other: fields.unknown(),
            numbers: fields.into_rest().filter_map(|(name, value)| Some((name, reply::int(&value).ok()?))).collect(),
        })
    }
}

macro_rules! totals {
    ($($(#[$doc:meta])* $field:ident $name:literal,)*) => {
        /// What has happened to a queue since it was created.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Totals {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Totals {
            fn read(fields: &Fields) -> Result<Totals, Error> {
                Ok(Totals { $($field: fields.count($name)?,)* })
            }

            /// The totals with their names in `DQ.INFO`.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field),)*].into_iter()
            }
        }
    };
}

totals! {
    /// Messages pushed, including those that replaced another.
    pushed "pushed",
    /// Pushes that were duplicates.
    duplicates "duplicates",
    /// Deliveries.
    delivered "delivered",
    /// Of those, messages that the server forwarded.
    forwarded "forwarded",
    /// Dead messages that the server forwarded.
    dead_forwarded "deadforwarded",
    /// Deliveries that were acknowledged.
    acked "acked",
    /// Deliveries that failed or were rejected.
    nacked "nacked",
    /// Deliveries that were given back without being counted.
    given_back "given-back",
    /// Leases that expired by themselves.
    lease_expired "lease-expired",
    /// Messages that became dead.
    died "died",
    /// Of those, messages whose time to live had ended.
    expired "expired",
    /// Dead messages that were made live again.
    redriven "redriven",
    /// Messages that were cancelled.
    cancelled "cancelled",
    /// Pushes that were refused because the queue was full.
    rejected_full "rejected-full",
}

/// How late a queue delivers, and how long its consumers take, as one server has measured it since its start.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// From when a message was due to its first delivery.
    pub lateness: Histogram,
    /// From a delivery to its ack.
    pub runtime: Histogram,
    /// Pops that returned no message.
    pub pops_empty: u64,
    /// Clients that are blocked on the queue.
    pub waiting_clients: u64,
    /// Time in which the rate limit alone held back a message.
    pub rate_limited: Duration,
}

/// A histogram of times, cumulative as in Prometheus.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Histogram {
    /// Upper bounds, and how many of the times do not exceed them. The last bound is `None`: no limit.
    pub buckets: Vec<(Option<Duration>, u64)>,
    /// The sum of all times.
    pub sum: Duration,
}

impl Histogram {
    /// How many times were measured.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// The upper bound of the bucket below which this share of the times lies, such as 0.99. `None` if there are no times, or
    /// if it is beyond all bounds.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        #[allow(clippy::cast_precision_loss, reason = "an estimate by buckets")]
        let reaches = |count: u64| count as f64 >= share * self.count() as f64;
        let (bound, _) = self.buckets.iter().find(|(_, count)| *count > 0 && reaches(*count))?;
        *bound
    }

    fn read(fields: &mut Fields, name: &str) -> Result<Histogram, Error> {
        let sum = Duration::from_millis(fields.count(&format!("{name}-sum-ms"))?);
        let bucket = |pair: Value| match reply::list(pair)?.as_slice() {
            [Value::Nil, count] => Ok((None, reply::count(count)?)),
            [bound, count] => Ok((Some(Duration::from_millis(reply::count(bound)?)), reply::count(count)?)),
            _ => Err(Error::Protocol(format!("a bucket of {name}"))),
        };
        let buckets = reply::list(fields.take(name).unwrap_or_default())?;
        Ok(Histogram { buckets: buckets.into_iter().map(bucket).collect::<Result<_, _>>()?, sum })
    }

    pub(crate) fn new(buckets: Vec<(Option<Duration>, u64)>, sum: Duration) -> Histogram {
        Histogram { buckets, sum }
    }
}

impl Stats {
    pub(super) fn read(reply: Value) -> Result<Stats, Error> {
        let mut fields = Fields::from(reply)?;
        Ok(Stats {
            lateness: Histogram::read(&mut fields, "lateness")?,
            runtime: Histogram::read(&mut fields, "runtime")?,
            pops_empty: fields.count("pops-empty")?,
            waiting_clients: fields.count("waiting-clients")?,
            rate_limited: Duration::from_millis(fields.count("rate-limited-ms")?),
        })
    }
}
