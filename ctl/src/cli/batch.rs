//! The options of `dqctl batch`.

use super::change::ConfirmArgs;
use super::push::{parse_raw, MessageArgs};
use crate::text::{parse_span, MessageId, QueueName};
use clap::{ArgGroup, Args};
use dq_client::Raw;
use std::time::Duration;

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("of_then").args(["id", "delay", "priority", "retries", "lease", "ttl", "group", "headers"])
        .multiple(true).requires("then").conflicts_with("cancel"),
    override_usage = "dqctl batch [OPTIONS] <QUEUE> [NAME]\n       \
        dqctl batch [OPTIONS] <QUEUE> <NAME> --then <PAYLOAD>\n       \
        dqctl batch [OPTIONS] <QUEUE> <NAME> --cancel"
)]
pub struct BatchArgs {
    /// The queue
    pub queue: QueueName,
    /// The batch; none: list the batches of the messages that the queue holds
    pub name: Option<String>,
    /// Close the batch: push this payload as soon as all its messages have ended; - reads it from standard input
    #[arg(long, value_name = "PAYLOAD", requires = "name", value_parser = parse_raw)]
    pub then: Option<Raw>,
    /// Remove its messages that are not dead, and the batch; nothing follows
    #[arg(long, requires = "name", conflicts_with = "then")]
    pub cancel: bool,
    /// With --then: the id of the message that follows
    #[arg(long)]
    pub id: Option<MessageId>,
    /// With --then: due after this time from the end of the batch
    #[arg(long = "in", alias = "delay", value_name = "TIME", value_parser = parse_span)]
    pub delay: Option<Duration>,
    // Of what follows.
    #[command(flatten)]
    pub message: MessageArgs,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}
