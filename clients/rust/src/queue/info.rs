//! The replies of `DQ.INFO` and `DQ.STATS`.

use super::settings::Settings;
use crate::error::Error;
use crate::reply::{reply, Fields, Part};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

reply! {
    /// The counts, settings and totals of a queue.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    Info {
        /// Messages that wait for their due time.
        pub delayed: u64 = "delayed",
        /// Messages that are due.
        pub ready: u64 = "ready",
        /// Messages under a lease.
        pub inflight: u64 = "inflight",
        /// Messages that failed for good.
        pub dead: u64 = "dead",
        /// Messages that were completed, and are kept for a time.
        pub done: u64 = "done",
        /// Groups that have a message which is not dead.
        pub groups: u64 = "groups",
        /// Messages that are due and wait for their group.
        pub blocked: u64 = "blocked",
        /// Ids that are refused although their message is gone.
        pub known: u64 = "known",
        /// Batches that have not ended.
        pub batches: u64 = "batches",
        /// The size of all payloads in bytes.
        pub payload_bytes: u64 = "payload-bytes",
        /// When the next delayed message is due.
        pub next_due: Option<SystemTime> = "next-due",
        /// How long the oldest ready message has been due.
        pub oldest_ready: Option<Duration> = "oldest-ready",
        /// How long ago the earliest running delivery began.
        pub oldest_inflight: Option<Duration> = "oldest-inflight",
        /// How long ago the earliest of the dead messages died.
        pub oldest_dead: Option<Duration> = "oldest-dead",
        /// How long ago the latest of the dead messages died.
        pub newest_dead: Option<Duration> = "newest-dead",
        /// How long ago any message died on this server, even if it was redriven or dropped since.
        pub last_death: Option<Duration> = "last-death",
        /// How long ago the last delivery began on this server.
        pub last_delivery: Option<Duration> = "last-delivery",
        /// Messages that recur.
        pub schedules: u64 = "schedules",
        /// Consumers with a name that hold messages.
        pub consumers: u64 = "consumers",
        /// Groups that are paused.
        pub paused_groups: u64 = "paused-groups",
        /// Clients that are blocked on the queue.
        pub waiting_clients: u64 = "waiting-clients",
        /// Whether delivery is suspended.
        pub paused: bool = "paused",
        /// When a pause ends by itself.
        pub paused_until: Option<SystemTime> = "paused-until",
        /// Whether it accepts no messages.
        pub closed: bool = "closed",
        /// When it accepts messages again by itself.
        pub closed_until: Option<SystemTime> = "closed-until",
        /// When the rate limit allows a delivery again; `None` if it does now.
        pub next_delivery: Option<SystemTime> = "next-delivery",
        /// Why messages cannot be forwarded at present.
        pub forward_error: Option<String> = "forward-error",
        /// Since when they cannot be forwarded.
        pub forward_failing_since: Option<SystemTime> = "forward-failing-since",
        /// Why dead messages cannot be forwarded at present.
        pub dead_forward_error: Option<String> = "deadforward-error",
        /// Since when they cannot be forwarded.
        pub dead_forward_failing_since: Option<SystemTime> = "deadforward-failing-since",
        /// The settings, each `Some`.
        pub settings: Settings = "",
        /// What has happened since the queue was created.
        pub totals: Totals = "",
        /// Fields that are unknown to this version of the crate, as text.
        pub other: BTreeMap<String, String> = "",
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

        impl Part for Totals {
            fn read_part(fields: &mut Fields, _: &str) -> Result<Totals, Error> {
                Ok(Totals { $($field: fields.get($name)?,)* })
            }
        }

        impl Totals {
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

reply! {
    /// How late a queue delivers, and how long its consumers take, as one server has measured it since its start.
    #[derive(Clone, PartialEq, Eq, Debug)]
    Stats {
        /// From when a message was due to its first delivery.
        pub lateness: Histogram = "lateness",
        /// From a delivery to its ack.
        pub runtime: Histogram = "runtime",
        /// Pops that returned no message.
        pub pops_empty: u64 = "pops-empty",
        /// Clients that are blocked on the queue.
        pub waiting_clients: u64 = "waiting-clients",
        /// Time in which the rate limit alone held back a message.
        pub rate_limited: Duration = "rate-limited-ms",
    }
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
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// The upper bound of the bucket below which this share of the times lies, such as 0.99. `None` if there are no
    /// times, or if it is beyond all bounds.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        #[allow(clippy::cast_precision_loss, reason = "an estimate by buckets")]
        let reaches = |count: u64| count as f64 >= share * self.count() as f64;
        let (bound, _) = self.buckets.iter().find(|(_, count)| *count > 0 && reaches(*count))?;
        *bound
    }

    pub(crate) fn add(&mut self, time: Duration) {
        let holds = |bound: Option<Duration>| bound.is_none_or(|bound| time <= bound);
        self.buckets.iter_mut().filter(|(bound, _)| holds(*bound)).for_each(|(_, count)| *count += 1);
        self.sum += time;
    }
}

impl Part for Histogram {
    fn read_part(fields: &mut Fields, name: &str) -> Result<Histogram, Error> {
        Ok(Histogram { buckets: fields.get(name)?, sum: fields.get(&format!("{name}-sum-ms"))? })
    }
}
