//! The options of `dqctl doctor`.

use crate::text::time::parse_span;
use clap::Args;
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

impl Default for DoctorArgs {
    /// What the command line has if it says nothing.
    fn default() -> DoctorArgs {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        DoctorArgs {
            pattern: None,
            max_ready: hours(1) / 60,
            max_dead: hours(7 * 24),
            max_paused: hours(1),
            critical: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DoctorArgs;
    use clap::{Args, Command, FromArgMatches};

    #[test]
    fn the_page_looks_with_the_limits_of_the_command() {
        let matches = DoctorArgs::augment_args(Command::new("doctor")).get_matches_from(["doctor"]);
        let args = DoctorArgs::from_arg_matches(&matches).unwrap();
        assert_eq!(format!("{args:?}"), format!("{:?}", DoctorArgs::default()));
    }
}
