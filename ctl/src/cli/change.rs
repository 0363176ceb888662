//! The options of the commands that change messages, or suspend a queue.

use super::push::parse_priority;
use super::states;
use super::SelectArgs;
use crate::board::{Among, Filter};
use crate::text::{parse_instant, parse_span, MessageId, QueueName};
use clap::{ArgGroup, Args, ValueEnum};
use dq_client::State;
use std::time::{Duration, SystemTime};

/// For the commands that change many messages, or several queues.
#[derive(Args, Clone, Debug)]
pub struct ConfirmArgs {
    /// Do it without asking, as in a pipe; a terminal asks, with the number of messages or queues
    #[arg(short, long)]
    pub yes: bool,
}

/// For the commands that change many messages.
#[derive(Args, Debug)]
pub struct ManyArgs {
    /// Only count the messages that would be changed
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}

/// Messages of a queue or of several: those of some ids, or those that conditions select.
#[derive(Args, Debug)]
pub struct TargetArgs {
    /// The queue, or without ids a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// The ids of the messages
    #[arg(value_name = "ID", conflicts_with_all = ["count", "conditions", "older"])]
    pub ids: Vec<MessageId>,
    /// Without ids: at most so many of each queue, those that have been dead, or in their state, for longest
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub many: ManyArgs,
}

impl TargetArgs {
    pub fn filter(&self, among: Among) -> Filter {
        self.select.filter(among, self.count)
    }
}

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("which").args(["ids", "conditions", "older"]).required(true).multiple(true),
    override_usage = "dqctl cancel [OPTIONS] <QUEUE> <ID>...\n       \
        dqctl cancel [OPTIONS] <QUEUE> [--state <STATE>] [--where <CONDITION>]... [--older <TIME>] [-n <N>]"
)]
pub struct CancelArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// With conditions: instead of dead messages, those in this state
    #[arg(long, value_name = "STATE", value_parser = states(), ignore_case = true,
        conflicts_with_all = ["ids", "letters"])]
    pub state: Option<State>,
    /// With conditions: instead of dead messages, those that DEADFORWARD has moved here from other queues
    #[arg(long, conflicts_with = "ids")]
    pub letters: bool,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("change").args(["delay", "at", "priority"]).required(true).multiple(true))]
pub struct RescheduleArgs {
    /// The queue
    pub queue: QueueName,
    /// The id of the message
    pub id: MessageId,
    /// Due after this time, such as 15m; 0: now
    #[arg(long = "in", alias = "delay", value_name = "TIME", value_parser = parse_span, conflicts_with = "at")]
    pub delay: Option<Duration>,
    /// Due at this instant, such as 2026-12-01T09:00+01:00
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    pub at: Option<SystemTime>,
    /// The new priority
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_priority)]
    pub priority: Option<i8>,
}

#[derive(Args, Debug)]
pub struct RedriveArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// Due after this time instead of now
    #[arg(long = "in", alias = "delay", value_name = "TIME", value_parser = parse_span)]
    pub delay: Option<Duration>,
    /// Instead of dead messages, send those that DEADFORWARD has moved here back to the queues in which they died
    #[arg(long)]
    pub letters: bool,
}

#[derive(Args, Debug)]
pub struct ReleaseArgs {
    /// The queue, or a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// The name of the consumer, which it gave with AS
    pub consumer: String,
    /// Only those that were delivered first
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Do not count the attempts
    #[arg(long)]
    pub no_count: bool,
    #[command(flatten)]
    pub many: ManyArgs,
}

#[derive(Args, Debug)]
pub struct PauseArgs {
    /// The queue, or a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// What is suspended: out, what it delivers; in, what is pushed to it, so that it is closed; or all
    #[arg(value_enum, default_value = "out")]
    pub flow: FlowArg,
    /// Suspend what it delivers of this group alone, whether or not the group has messages
    #[arg(long, value_name = "NAME", conflicts_with = "flow")]
    pub group: Option<String>,
    /// Resume by itself after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    pub time: Option<Duration>,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}

#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The queue, or a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// What is resumed: out, in or all
    #[arg(value_enum, default_value = "all")]
    pub flow: FlowArg,
    /// Resume this group, which stays paused otherwise
    #[arg(long, value_name = "NAME", conflicts_with = "flow")]
    pub group: Option<String>,
    #[command(flatten)]
    pub confirm: ConfirmArgs,
}

/// A flow of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FlowArg {
    Out,
    In,
    All,
}

impl FlowArg {
    /// As the commands of the server take it.
    pub fn word(self) -> &'static str {
        match self {
            FlowArg::Out => "OUT",
            FlowArg::In => "IN",
            FlowArg::All => "ALL",
        }
    }
}

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("which").args(["ids", "conditions", "older"]).required(true).multiple(true),
    override_usage = "dqctl bury [OPTIONS] <QUEUE> <ID>...\n       \
        dqctl bury [OPTIONS] <QUEUE> [--state <STATE>] [--where <CONDITION>]... [--older <TIME>] [-n <N>]"
)]
pub struct BuryArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// The error that is kept with them
    #[arg(long, value_name = "TEXT")]
    pub error: Option<String>,
    /// With conditions: those in this state: ready, delayed or inflight
    #[arg(long, value_name = "STATE", value_parser = states(), ignore_case = true, default_value = "ready",
        conflicts_with = "ids")]
    pub state: State,
}

#[derive(Args, Debug)]
pub struct NackArgs {
    /// The queue
    pub queue: QueueName,
    /// The ids of messages in flight, or the receipts of their deliveries
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<MessageId>,
    /// Due again after this time, instead of the queue's backoff
    #[arg(long = "in", alias = "delay", value_name = "TIME", value_parser = parse_span)]
    pub delay: Option<Duration>,
    /// The error that is kept with them
    #[arg(long, value_name = "TEXT")]
    pub error: Option<String>,
    /// They become dead at once
    #[arg(long, conflicts_with_all = ["no_count", "delay"])]
    pub dead: bool,
    /// Do not count the attempt
    #[arg(long)]
    pub no_count: bool,
}
