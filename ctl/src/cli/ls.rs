//! The options of `dqctl ls`.

use crate::board::sort::Sort;
use crate::text::time::parse_span;
use clap::Args;
use std::time::Duration;

#[derive(Args, Debug, Default)]
pub struct LsArgs {
    /// Only queues whose name matches this glob, like --match
    #[arg(value_name = "PATTERN", conflicts_with = "pattern")]
    pub glob: Option<String>,
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// Only queues that something is wrong with; red before amber, then those that lose messages
    #[arg(long)]
    pub trouble: bool,
    /// The column to sort by: the largest number or the worst state comes first; in/s and out/s need --watch
    #[arg(long, value_name = "COLUMN", ignore_case = true)]
    pub sort: Option<Sort>,
    /// In the opposite order
    #[arg(long)]
    pub reverse: bool,
    /// Only the first ones, after they were sorted
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// List them again after each TIME, or every 2 seconds, with the messages a second that are pushed and completed
    #[arg(long, value_name = "TIME", value_parser = parse_watch, num_args = 0..=1, default_missing_value = "2s")]
    pub watch: Option<Duration>,
}

/// What follows `--watch` is taken as its time.
fn parse_watch(text: &str) -> Result<Duration, String> {
    parse_span(text).map_err(|why| format!("{why}; a PATTERN stands before --watch"))
}

impl LsArgs {
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_deref().or(self.glob.as_deref())
    }
}
