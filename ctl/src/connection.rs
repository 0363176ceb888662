//! Which server, and how to connect to it: the options that every command takes.

use crate::failure::Failure;
use clap::Args;
use dq_client::{Client, Options};
use std::time::Duration;

/// The options of the connection, before or after the name of the command.
#[derive(Args, Debug)]
pub struct Connection {
    /// The server: redis://, rediss:// (TLS), unix://, redis+sentinel:// or redis+cluster://
    #[arg(
        short,
        long,
        global = true,
        env = "DQ_URL",
        hide_env_values = true,
        value_name = "URL",
        default_value = "redis://127.0.0.1:6379"
    )]
    url: String,
    /// The URL names a node of a cluster
    #[arg(long, global = true)]
    cluster: bool,
}

impl Connection {
    /// A client that repeats a command for this long if the server cannot be reached.
    pub fn client(&self, patience: Duration) -> Result<Client, Failure> {
        let options = Options::from_url(&self.url)?.retry_for(patience).name("dqctl");
        let options = if self.cluster { options.cluster()? } else { options };
        Ok(options.open()?)
    }
}
