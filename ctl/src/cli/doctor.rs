//! The options of `dqctl doctor`.

use crate::time::parse_span;
use clap::Args;
use std::time::Duration;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// How long a message may be ready while nobody takes it
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "15m")]
    pub max_ready: Duration,
    /// How old a dead message may be
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "7d")]
    pub max_dead: Duration,
    /// How long a paused queue may keep a message that is due
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "1h")]
    pub max_paused: Duration,
}
