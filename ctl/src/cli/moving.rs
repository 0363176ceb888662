//! The options of `dump`, `load` and `import`.

use super::states;
use super::SelectArgs;
use crate::text::QueueName;
use clap::{Args, ValueEnum};
use dq_client::State;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct DumpArgs {
    /// The queue
    pub queue: QueueName,
    /// Only messages in this state
    #[arg(long, value_name = "STATE", value_parser = states(), ignore_case = true)]
    pub state: Option<State>,
    #[command(flatten)]
    pub select: SelectArgs,
}

#[derive(Args, Debug)]
pub struct LoadArgs {
    /// What dqctl dump wrote; - or none reads it from standard input
    pub file: Option<PathBuf>,
    /// Load into this queue instead of the one that the lines name
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<QueueName>,
    /// Only read the lines and count what would be loaded
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// What the source is
    #[arg(value_enum)]
    pub kind: Kind,
    /// The key of the source; for sidekiq, rq, laravel, celery and bullmq the name of the queue there
    pub source: OsString,
    /// The queue of dq, which is created if it does not exist
    pub queue: QueueName,
    /// Only count what would be imported
    #[arg(long)]
    pub dry_run: bool,
    /// Remove each element from the source once the queue has it
    #[arg(long = "move")]
    pub is_move: bool,
    /// list: the end from which consumers take elements
    #[arg(long, value_enum, value_name = "END", default_value = "left")]
    pub from: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// A sorted set whose scores are due times
    Zset,
    /// A list, which is moved
    List,
    /// A queue of Sidekiq, with its scheduled jobs, its retries and its dead jobs
    Sidekiq,
    /// A queue of RQ, with its scheduled and failed jobs
    Rq,
    /// A queue of Laravel, with its delayed jobs
    Laravel,
    /// A queue of Celery, with its priorities
    Celery,
    /// A queue of BullMQ: waiting, prioritized, delayed, paused and failed jobs
    Bullmq,
    /// A stream
    Stream,
}

impl Kind {
    /// Whether a source is the key of its name, which the new queue cannot have then.
    pub fn has_the_key_of_its_name(self) -> bool {
        match self {
            Kind::Zset | Kind::List | Kind::Stream | Kind::Celery => true,
            Kind::Sidekiq | Kind::Rq | Kind::Laravel | Kind::Bullmq => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum End {
    /// As with RPUSH and LPOP
    Left,
    /// As with LPUSH and RPOP
    Right,
}
