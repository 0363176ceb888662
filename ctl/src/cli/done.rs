//! The options of `complete` and `await`.

use super::push::parse_raw;
use crate::text::{parse_span, MessageId, QueueName};
use clap::Args;
use dq_client::Raw;
use std::time::Duration;

#[derive(Args, Debug)]
pub struct CompleteArgs {
    /// The queue
    pub queue: QueueName,
    /// The id of the message in flight, or the receipt of its delivery
    #[arg(value_name = "ID")]
    pub id: MessageId,
    /// The result, which is kept with the message; - reads it from standard input
    #[arg(value_parser = parse_raw)]
    pub result: Option<Raw>,
    /// How long the message is kept as done, instead of its own or the queue's time
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub retain: Option<Duration>,
}

#[derive(Args, Debug)]
pub struct AwaitArgs {
    /// The queue
    pub queue: QueueName,
    /// The id of the message
    pub id: MessageId,
    /// The longest time to wait
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub time: Duration,
    /// Print the result alone, byte for byte
    #[arg(long, conflicts_with = "json")]
    pub result: bool,
}
