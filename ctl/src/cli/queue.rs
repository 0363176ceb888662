//! The options of the commands for a whole queue: `create`, `alter`, `promote`, `purge` and `delete`.

use super::change::ConfirmArgs;
use super::StateParser;
use crate::name::{MessageId, QueueName};
use crate::time::parse_span;
use clap::{ArgAction, ArgGroup, Args};
use dq_client::{Cmd, State};
use std::time::Duration;

#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The queue
    pub queue: QueueName,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Args, Debug)]
pub struct AlterArgs {
    /// The queue, or a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// Create the queue if it does not exist
    #[arg(long)]
    pub create: bool,
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}

const SETTINGS: &str = "Settings";

/// The settings of a queue, under the names of `dqctl info`. Those that are not given stay as they are.
#[derive(Args, Debug)]
#[command(next_help_heading = SETTINGS)]
pub struct SettingsArgs {
    /// How long a delivery may take before the message is delivered again
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub lease: Option<Duration>,
    /// The longest time from a delivery to the end of its lease, however often it is extended; 0: no limit
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub maxlease: Option<Duration>,
    /// How often a message is redelivered before it becomes dead; -1: no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub retries: Option<i64>,
    /// The first wait after a failure, which doubles each time, and the longest: 1s,1h
    #[arg(long, value_name = "BASE,MAX", value_parser = parse_backoff)]
    pub backoff: Option<(Duration, Duration)>,
    /// With --backoff: by up to which share the waits are shortened
    #[arg(long, value_name = "PERCENT", requires = "backoff")]
    pub jitter: Option<u8>,
    /// Messages that are not completed within this time after they were due become dead; 0: never
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub ttl: Option<Duration>,
    /// The most messages that are not dead; 0: no limit
    #[arg(long, value_name = "N")]
    pub maxlen: Option<u64>,
    /// The most messages in flight; 0: no limit
    #[arg(long, value_name = "N")]
    pub maxinflight: Option<u64>,
    /// The most deliveries in any span of a time: 100/1m; 0: no limit
    #[arg(long, value_name = "N/TIME", value_parser = parse_rate)]
    pub rate: Option<(u64, Duration)>,
    /// The most dead messages that are kept; -1: all
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub deadlen: Option<i64>,
    /// How long a dead message is kept; 0: for ever
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub deadttl: Option<Duration>,
    /// How long a completed message is kept as done; 0: not at all
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub retain: Option<Duration>,
    /// The most done messages that are kept; -1: all
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub donelen: Option<i64>,
    /// The largest payload; 0: no limit
    #[arg(long, value_name = "BYTES")]
    pub maxpayload: Option<u64>,
    /// The most messages of a group that are in flight or wait for a retry; 0: no limit
    #[arg(long, value_name = "N")]
    pub groupinflight: Option<u64>,
    /// The same as --rate, for each group by itself: 10/1s; 0: no limit
    #[arg(long, value_name = "N/TIME", value_parser = parse_rate)]
    pub grouprate: Option<(u64, Duration)>,
    /// How many errors of past attempts are kept of a message
    #[arg(long, value_name = "N")]
    pub errors: Option<u8>,
    /// In which order groups are served
    #[arg(long, value_name = "ORDER", value_parser = ["due", "turn"])]
    pub grouporder: Option<String>,
    /// For how long an accepted id is refused, even if its message is gone; 0: while its message is there
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub dedupe: Option<Duration>,
    /// Where the server writes messages that are due: 'STREAM jobs', 'LIST jobs', 'CHANNEL jobs' or NONE
    #[arg(long, value_name = "TARGET")]
    pub forward: Option<String>,
    /// Where the server moves messages that are dead: 'QUEUE dead', 'STREAM dead', 'LIST dead' or NONE
    #[arg(long, value_name = "TARGET")]
    pub deadforward: Option<String>,
    /// How long a message waits that is pushed without a delay
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub delay: Option<Duration>,
}

impl SettingsArgs {
    /// Adds them to `DQ.CREATE` or `DQ.ALTER`.
    pub fn write(&self, command: &mut Cmd) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        for (name, time) in [
            ("LEASE", self.lease),
            ("MAXLEASE", self.maxlease),
            ("DELAY", self.delay),
            ("TTL", self.ttl),
            ("DEADTTL", self.deadttl),
            ("RETAIN", self.retain),
            ("DEDUPE", self.dedupe),
        ] {
            if let Some(time) = time {
                command.arg(name).arg(ms(time));
            }
        }
        for (name, number) in [
            ("MAXLEN", self.maxlen),
            ("MAXINFLIGHT", self.maxinflight),
            ("MAXPAYLOAD", self.maxpayload),
            ("GROUPINFLIGHT", self.groupinflight),
            ("ERRORS", self.errors.map(u64::from)),
        ] {
            if let Some(number) = number {
                command.arg(name).arg(number);
            }
        }
        for (name, number) in [("RETRIES", self.retries), ("DEADLEN", self.deadlen), ("DONELEN", self.donelen)] {
            if let Some(number) = number {
                command.arg(name).arg(number);
            }
        }
        if let Some((base, max)) = self.backoff {
            command.arg("BACKOFF").arg(ms(base)).arg(ms(max));
            if let Some(jitter) = self.jitter {
                command.arg("JITTER").arg(jitter);
            }
        }
        for (name, rate) in [("RATE", self.rate), ("GROUPRATE", self.grouprate)] {
            if let Some((count, period)) = rate {
                command.arg(name).arg(count).arg(ms(period));
            }
        }
        if let Some(order) = &self.grouporder {
            command.arg("GROUPORDER").arg(order);
        }
        for (name, target) in [("FORWARD", &self.forward), ("DEADFORWARD", &self.deadforward)] {
            if let Some(target) = target {
                command.arg(name).arg(target.split_whitespace().collect::<Vec<_>>());
            }
        }
    }
}

fn parse_backoff(text: &str) -> Result<(Duration, Duration), String> {
    let (base, max) = text.split_once(',').ok_or("the first wait and the longest, such as 1s,1h")?;
    Ok((parse_span(base)?, parse_span(max)?))
}

fn parse_rate(text: &str) -> Result<(u64, Duration), String> {
    const EXAMPLE: &str = "deliveries and a time, such as 100/1m, or 0";
    if text == "0" {
        return Ok((0, Duration::ZERO));
    }
    let (count, period) = text.split_once('/').ok_or(EXAMPLE)?;
    Ok((count.trim().parse().map_err(|_| EXAMPLE)?, parse_span(period)?))
}

#[derive(Args, Debug)]
pub struct PromoteArgs {
    /// The queue, or without ids a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// The ids of delayed messages; none: all of them
    #[arg(value_name = "ID", conflicts_with_all = ["count", "dry_run"])]
    pub ids: Vec<MessageId>,
    /// Only the next ones
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Only count the messages that would be due now
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("which").args(["states", "all"]).required(true),
    override_usage = "dqctl purge [OPTIONS] <QUEUE> <STATE>...\n       dqctl purge [OPTIONS] <QUEUE> --all"
)]
pub struct PurgeArgs {
    /// The queue, or a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// The states whose messages are removed
    #[arg(value_name = "STATE", value_parser = StateParser, action = ArgAction::Append)]
    pub states: Vec<State>,
    /// Remove the messages in all states
    #[arg(long)]
    pub all: bool,
    /// The most messages; of dead and done ones the newest, whereas dqctl redrive -n takes those that died first
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Only messages of this group
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Only messages that have been in their state for at least this time
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub older: Option<Duration>,
    /// Recurring messages too, which ends their series
    #[arg(long)]
    pub recurring: bool,
    /// Only count the messages that would be removed
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}

#[derive(Args, Debug)]
pub struct DeleteArgs {
    /// The queue
    pub queue: QueueName,
    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}
