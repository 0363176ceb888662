//! The settings of a queue.

use super::command::{millis, Command};
use super::forward::Forward;
use crate::reply::Fields;
use crate::Error;
use std::time::Duration;

/// Settings of a queue: those that are `Some` are set. [`Info::settings`](super::Info::settings) has them all.
///
/// ```
/// # use std::time::Duration;
/// let settings = dq_client::Settings {
///     retries: Some(5),
///     backoff: Some((Duration::from_secs(1), Duration::from_secs(60))),
///     ..Default::default()
/// };
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// How long a delivery may take before the message is delivered again.
    pub lease: Option<Duration>,
    /// The longest time from the beginning of a delivery to the end of its lease; zero: no limit.
    pub max_lease: Option<Duration>,
    /// How long after its push a message is due whose push says nothing about that; zero: at once.
    pub delay: Option<Duration>,
    /// The most redeliveries before a message becomes dead; -1: no limit.
    pub retries: Option<i32>,
    /// How long a message waits after a nack: the first wait, which doubles each time, and the longest.
    pub backoff: Option<(Duration, Duration)>,
    /// The largest share in % by which that wait is shortened. Set only together with `backoff`.
    pub jitter: Option<u8>,
    /// A message that is not completed within this time becomes dead; zero: never.
    pub ttl: Option<Duration>,
    /// The most messages that are not dead; 0: no limit.
    pub max_len: Option<u64>,
    /// The most messages in flight; 0: no limit.
    pub max_inflight: Option<u64>,
    /// The most deliveries in any span of this time; `(0, ZERO)`: no limit.
    pub rate: Option<(u32, Duration)>,
    /// The same for each group by itself.
    pub group_rate: Option<(u32, Duration)>,
    /// The most dead messages that are kept; -1: all.
    pub dead_len: Option<i64>,
    /// How long dead messages are kept; zero: for ever.
    pub dead_ttl: Option<Duration>,
    /// The largest payload in bytes; 0: no limit.
    pub max_payload: Option<u64>,
    /// For how long an accepted id is refused; zero: only while its message is there.
    pub dedupe: Option<Duration>,
    /// How long a completed message is kept as done; zero: not at all.
    pub retain: Option<Duration>,
    /// The most done messages that are kept; -1: all.
    pub done_len: Option<i64>,
    /// The most messages of one group that are in flight or wait for a retry; 0: no limit.
    pub group_inflight: Option<u64>,
    /// How many errors of past attempts are kept of a message; 0: only the last text.
    pub errors: Option<u8>,
    /// In which order groups are served.
    pub group_order: Option<GroupOrder>,
    /// Where the server itself writes messages that are due.
    pub forward: Option<Forward>,
    /// Where the server itself writes messages that are dead.
    pub dead_forward: Option<Forward>,
}

/// In which order the groups of a queue are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GroupOrder {
    /// By priority and due time, over all groups.
    #[default]
    Due,
    /// In turn among equal priorities, so that a group with many messages does not delay the others.
    Turn,
}

impl Settings {
    pub(super) fn write(&self, command: &mut Command) {
        command.maybe("LEASE", self.lease.map(millis));
        command.maybe("MAXLEASE", self.max_lease.map(millis));
        command.maybe("DELAY", self.delay.map(millis));
        command.maybe("RETRIES", self.retries);
        if let Some((base, max)) = self.backoff {
            command.option("BACKOFF", millis(base));
            command.word(millis(max));
            command.maybe("JITTER", self.jitter);
        }
        if let Some((deliveries, period)) = self.rate {
            command.option("RATE", deliveries);
            command.word(millis(period));
        }
        if let Some((deliveries, period)) = self.group_rate {
            command.option("GROUPRATE", deliveries);
            command.word(millis(period));
        }
        command.maybe("TTL", self.ttl.map(millis));
        command.maybe("MAXLEN", self.max_len);
        command.maybe("MAXINFLIGHT", self.max_inflight);
        command.maybe("MAXPAYLOAD", self.max_payload);
        command.maybe("DEADLEN", self.dead_len);
        command.maybe("DEADTTL", self.dead_ttl.map(millis));
        command.maybe("RETAIN", self.retain.map(millis));
        command.maybe("DONELEN", self.done_len);
        command.maybe("DEDUPE", self.dedupe.map(millis));
        command.maybe("GROUPINFLIGHT", self.group_inflight);
        command.maybe("ERRORS", self.errors);
        command.maybe("GROUPORDER", self.group_order.map(GroupOrder::as_str));
        for (option, forward) in [("FORWARD", &self.forward), ("DEADFORWARD", &self.dead_forward)] {
            if let Some(forward) = forward {
                forward.write(command, option);
            }
        }
    }

    /// The settings among the fields of `DQ.INFO`.
    pub(super) fn read(fields: &Fields) -> Result<Settings, Error> {
        let time = |name: &str| fields.count(name).map(Duration::from_millis);
        let small = |name: &str| fields.count(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        Ok(Settings {
            lease: Some(time("lease")?),
            max_lease: Some(time("maxlease")?),
            delay: Some(time("delay")?),
            retries: Some(i32::try_from(fields.int("retries")?).unwrap_or(i32::MAX)),
            backoff: Some((time("backoff-base")?, time("backoff-max")?)),
            jitter: Some(u8::try_from(fields.count("backoff-jitter")?).unwrap_or(u8::MAX)),
            ttl: Some(time("ttl")?),
            max_len: Some(fields.count("maxlen")?),
            max_inflight: Some(fields.count("maxinflight")?),
            rate: Some((small("rate")?, time("rate-period")?)),
            group_rate: Some((small("grouprate")?, time("grouprate-period")?)),
            dead_len: Some(fields.int("deadlen")?),
            dead_ttl: Some(time("deadttl")?),
            max_payload: Some(fields.count("maxpayload")?),
            dedupe: Some(time("dedupe")?),
            retain: Some(time("retain")?),
            done_len: Some(fields.int("donelen")?),
            group_inflight: Some(fields.count("groupinflight")?),
            errors: Some(u8::try_from(fields.count("errors")?).unwrap_or(u8::MAX)),
            group_order: fields.maybe_text("grouporder")?.map(|order| match order.as_str() {
                "turn" => GroupOrder::Turn,
                _ => GroupOrder::Due,
            }),
            forward: fields.maybe_text("forward")?.and_then(|words| Forward::read(&words)),
            dead_forward: fields.maybe_text("deadforward")?.and_then(|words| Forward::read(&words)),
        })
    }
}

impl GroupOrder {
    fn as_str(self) -> &'static str {
        match self {
            GroupOrder::Due => "due",
            GroupOrder::Turn => "turn",
        }
    }
}
