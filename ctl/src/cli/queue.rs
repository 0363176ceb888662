//! The options of the commands for a whole queue: `create`, `alter`, `promote`, `purge` and `delete`.

use super::change::{ConfirmArgs, ManyArgs};
use super::{states, SettingsArgs};
use crate::text::{parse_span, MessageId, QueueName};
use clap::{ArgAction, ArgGroup, Args};
use dq_client::State;
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

#[derive(Args, Debug)]
pub struct PromoteArgs {
    /// The queue, or without ids a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// The ids of delayed messages; none: all of them
    #[arg(value_name = "ID", conflicts_with = "count")]
    pub ids: Vec<MessageId>,
    /// Only the next ones
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    #[command(flatten)]
    pub many: ManyArgs,
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
    #[arg(value_name = "STATE", value_parser = states(), ignore_case = true, action = ArgAction::Append)]
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
    #[command(flatten)]
    pub many: ManyArgs,
}

#[derive(Args, Debug)]
pub struct DeleteArgs {
    /// The queue
    pub queue: QueueName,
    #[command(flatten)]
    pub many: ManyArgs,
}
