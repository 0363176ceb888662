//! The options of `dqctl top`.

use clap::Args;

#[derive(Args, Debug)]
pub struct TopArgs {
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
}
