//! The options of `dqctl doctor`.

use crate::text::parse_span;
use clap::{Args, Command, FromArgMatches};
use std::time::Duration;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// How long a message may be ready before somebody takes it
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "1m")]
    pub max_ready: Duration,
    /// How old a dead message may be
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "7d")]
    pub max_dead: Duration,
    /// How long a paused queue may keep a message that is due
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "1h")]
    pub max_paused: Duration,
    /// Only what is critical: messages are lost, or are not delivered at all
    #[arg(long)]
    pub critical: bool,
}

impl DoctorArgs {
    /// The arguments of an empty command line.
    pub fn unchanged() -> Result<DoctorArgs, clap::Error> {
        let matches = DoctorArgs::augment_args(Command::new("doctor")).try_get_matches_from(["doctor"])?;
        DoctorArgs::from_arg_matches(&matches)
    }
}
