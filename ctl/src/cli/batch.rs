//! The options of `dqctl batch`.

use super::change::ConfirmArgs;
use super::push::{parse_header, parse_priority};
use crate::name::QueueName;
use crate::time::parse_span;
use clap::Args;
use std::time::Duration;

// Clap does not ask for what an option requires if that conflicts with another one that is given, such as --cancel.
#[derive(Args, Debug)]
#[command(override_usage = "dqctl batch [OPTIONS] <QUEUE> [NAME]\n       \
    dqctl batch [OPTIONS] <QUEUE> <NAME> --then <PAYLOAD>\n       dqctl batch [OPTIONS] <QUEUE> <NAME> --cancel\n       \
    dqctl batch [OPTIONS] <QUEUE> <NAME> --watch")]
pub struct BatchArgs {
    /// The queue
    pub queue: QueueName,
    /// The batch; none: list the batches of the messages that the queue holds
    pub name: Option<String>,
    /// Close the batch: push this payload as soon as all its messages have ended; - reads it from standard input
    #[arg(long, value_name = "PAYLOAD", requires = "name")]
    pub then: Option<String>,
    /// Remove its messages that are not dead, and the batch; nothing follows
    #[arg(long, requires = "name", conflicts_with = "then")]
    pub cancel: bool,
    /// Show how far it is whenever that changes, until it has ended
    #[arg(long, requires = "name", conflicts_with_all = ["then", "cancel"])]
    pub watch: bool,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
    /// With --then: the id of the message that follows
    #[arg(long, requires = "then", conflicts_with = "cancel")]
    pub id: Option<String>,
    /// With --then: due after this time from the end of the batch
    #[arg(long = "in", alias = "delay", value_name = "TIME", value_parser = parse_span, requires = "then",
        conflicts_with = "cancel")]
    pub delay: Option<Duration>,
    /// With --then: its priority
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "then", conflicts_with = "cancel",
        value_parser = parse_priority)]
    pub priority: Option<i8>,
    /// With --then: its most redeliveries, instead of the queue's; -1: no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "then", conflicts_with = "cancel")]
    pub retries: Option<i32>,
    /// With --then: how long its delivery may take, instead of the queue's lease
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "then", conflicts_with = "cancel")]
    pub lease: Option<Duration>,
    /// With --then: its group
    #[arg(long, value_name = "NAME", requires = "then", conflicts_with = "cancel")]
    pub group: Option<String>,
    /// With --then: a header, besides those that say how the batch ended; can be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header, requires = "then",
        conflicts_with = "cancel")]
    pub headers: Vec<(String, String)>,
}
