//! Which server, and how to connect to it: the options that every command takes.

use crate::server::failure::Failure;
use crate::server::reply::text;
use clap::Args;
use dq_client::{blocking::Client, cmd, Options};
use std::path::PathBuf;
use std::time::Duration;

/// The server that is used if none is named.
const LOCAL: &str = "redis://127.0.0.1:6379";

/// The options of the connection, before or after the name of the command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// The server: redis://, rediss:// (TLS), unix://, redis+sentinel:// or redis+cluster:// [default:
    /// redis://127.0.0.1:6379]
    #[arg(short, long, global = true, env = "DQ_URL", hide_env_values = true, value_name = "URL")]
    url: Option<String>,
    /// The URL names a node of a cluster, which is needed only if the user may not read INFO
    #[arg(long, global = true)]
    cluster: bool,
    /// With TLS: a file (PEM) with the authorities that sign certificates of servers [default: those that the system
    /// trusts]
    #[arg(long, global = true, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// With TLS: a file (PEM) with the certificate of the client
    #[arg(long, global = true, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// With TLS: a file (PEM) with the key of that certificate
    #[arg(long, global = true, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Connection {
    /// A client that repeats a command for this long if the server cannot be reached. `url` is that of the server
    /// unless the command line or the environment names one.
    pub fn client(&self, url: Option<&str>, patience: Duration) -> Result<Client, Failure> {
        let url = self.url.as_deref().or(url).unwrap_or(LOCAL);
        let options = Options::from_url(url).map_err(Failure::url)?.retry_for(patience).name("dqctl");
        let options = options.certificate_files(self.cacert.as_deref(), self.cert.as_deref(), self.key.as_deref())?;
        let options = if self.cluster { options.cluster()? } else { options };
        let client = Client::with(options.clone())?;
        match options.cluster() {
            // One node knows only a part of the queues.
            Ok(options) if !client.is_cluster() && is_node(&client) => Ok(Client::with(options)?),
            _ => Ok(client),
        }
    }
}

/// Whether the server is a node of a cluster. If it does not answer, the command that follows reports that.
fn is_node(client: &Client) -> bool {
    let servers = client.servers().unwrap_or_default();
    let info = servers.first().and_then(|server| client.call_on(server, cmd("INFO").arg("cluster")).ok());
    info.as_ref().and_then(text).is_some_and(|info| info.contains("cluster_enabled:1"))
}
