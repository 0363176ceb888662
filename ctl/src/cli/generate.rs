//! The arguments of `dqctl completions` and `dqctl man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Where to write dqctl.1 and a page for each command; none: print dqctl.1
    pub dir: Option<PathBuf>,
}
