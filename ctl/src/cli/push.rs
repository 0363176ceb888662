//! The options of `push` and `schedule`.

use crate::text::{parse_instant, parse_span, MessageId, QueueName};
use clap::{ArgGroup, Args};
use dq_client::Raw;
use std::convert::Infallible;
use std::time::{Duration, SystemTime};

/// What a message and the runs of a schedule have in common.
#[derive(Args, Debug)]
pub struct MessageArgs {
    /// -128 to 127: among ready messages, a higher one is delivered first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
        value_parser = parse_priority)]
    pub priority: i8,
    /// The most redeliveries, instead of the queue's; -1: no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub retries: Option<i32>,
    /// How long a delivery may take, instead of the queue's lease
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub lease: Option<Duration>,
    /// Dead if it is not completed within this time after it was due
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub ttl: Option<Duration>,
    /// The group, whose messages are delivered in order
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// A header, which says something about the message besides its payload; can be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header)]
    pub headers: Vec<(String, String)>,
}

/// A payload as it is typed.
pub fn parse_raw(text: &str) -> Result<Raw, Infallible> {
    Ok(Raw(text.as_bytes().to_vec()))
}

/// A priority as it is given on the command line.
pub fn parse_priority(text: &str) -> Result<i8, String> {
    text.parse().map_err(|_| "a priority is a whole number from -128 to 127".to_owned())
}

/// A header as it is given on the command line.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a header is NAME=VALUE, such as content-type=text/csv")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Args, Debug)]
pub struct PushArgs {
    /// The queue, which is created if it does not exist
    pub queue: QueueName,
    /// The payload; - or none reads it from standard input
    #[arg(value_parser = parse_raw, allow_hyphen_values = true)]
    pub payload: Option<Raw>,
    /// The message's own id: while the queue holds it, further pushes are duplicates
    #[arg(long)]
    pub id: Option<MessageId>,
    /// Due after this time, such as 15m or 1h30m
    #[arg(long = "in", alias = "delay", value_name = "TIME", value_parser = parse_span, conflicts_with = "at")]
    pub delay: Option<Duration>,
    /// Due at this instant, such as 2026-12-01T09:00+01:00
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    pub at: Option<SystemTime>,
    /// Take the place of the message that has the id
    #[arg(long, requires = "id")]
    pub replace: bool,
    /// With --replace: due no later than this long after the first push of the chain of replacements
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "replace")]
    pub max_wait: Option<Duration>,
    /// With --replace: a message in flight is replaced when its delivery ends, and not before
    #[arg(long, requires = "replace")]
    pub later: bool,
    /// How long the message is kept as done after its completion, instead of the queue's time
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub retain: Option<Duration>,
    /// The batch that the message belongs to; dqctl batch says what follows it
    #[arg(long, value_name = "NAME")]
    pub batch: Option<String>,
    #[command(flatten)]
    pub message: MessageArgs,
}

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("rule").args(["every", "cron"]),
    group = ArgGroup::new("of_runs").args(["priority", "retries", "lease", "ttl", "group", "headers"]).multiple(true)
        .requires("id")
)]
// Clap does not ask for what an option requires if that conflicts with another one that is given.
pub struct ScheduleArgs {
    /// The queue
    pub queue: QueueName,
    /// The id of the recurring message
    #[arg(requires = "rule")]
    pub id: Option<MessageId>,
    /// The payload; - or none reads it from standard input
    #[arg(value_parser = parse_raw, allow_hyphen_values = true)]
    pub payload: Option<Raw>,
    /// Due at each multiple of this interval since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "id")]
    pub every: Option<Duration>,
    /// With --every: later than the multiples by this time
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "every", conflicts_with = "cron")]
    pub offset: Option<Duration>,
    /// Due at the times of this expression, such as '30 18 * * mon-fri'
    #[arg(long, value_name = "EXPRESSION", requires = "id")]
    pub cron: Option<String>,
    /// With --cron: its time zone, such as Europe/Berlin, instead of UTC
    #[arg(long, value_name = "ZONE", requires = "cron", conflicts_with = "every")]
    pub tz: Option<String>,
    /// The first run is due at this instant
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant, requires = "id")]
    pub at: Option<SystemTime>,
    /// No run is due after this instant
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant, requires = "id")]
    pub until: Option<SystemTime>,
    /// The series ends after this many runs
    #[arg(long, value_name = "N", requires = "id")]
    pub times: Option<u32>,
    #[command(flatten)]
    pub message: MessageArgs,
}
