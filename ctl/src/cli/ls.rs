//! The options of `dqctl ls`.

use crate::board::Sort;
use clap::Args;

#[derive(Args, Debug, Default)]
pub struct LsArgs {
    /// Only queues whose name matches this glob
    pub pattern: Option<String>,
    /// Only queues that something is wrong with; red before amber, then those that lose messages
    #[arg(long)]
    pub trouble: bool,
    /// The column to sort by: the largest number or the worst state comes first
    #[arg(long, value_name = "COLUMN", ignore_case = true)]
    pub sort: Option<Sort>,
    /// In the opposite order
    #[arg(long)]
    pub reverse: bool,
    /// Only the first ones, after they were sorted
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
}
