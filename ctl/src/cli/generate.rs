//! The arguments of `dqctl completions` and `dqctl man`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// The shells whose completions the manual describes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Where to write dqctl.1 and a page for each command; none: print dqctl.1
    pub dir: Option<PathBuf>,
}
