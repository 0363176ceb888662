//! The options of `dump` and `load`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct DumpArgs {
    /// The queue
    pub queue: OsString,
}

#[derive(Args, Debug)]
pub struct LoadArgs {
    /// What dqctl dump wrote; - or none reads it from standard input
    pub file: Option<PathBuf>,
    /// Load into this queue instead of the one that the lines name
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<OsString>,
}
