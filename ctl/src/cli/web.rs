//! The options of `dqctl web`.

use crate::http::parse_listen;
use clap::Args;

#[derive(Args, Debug)]
pub struct WebArgs {
    /// Where to serve the page; an address beyond loopback needs --token
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8480", value_parser = parse_listen)]
    pub listen: String,
    /// Allow changes, and log each on standard error; without it the page only reads
    #[arg(long)]
    pub allow_writes: bool,
    /// What every request to /api/ must bear, as 'Authorization: Bearer TOKEN'; the page asks for it
    #[arg(long, value_name = "TOKEN", env = "DQ_WEB_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// A host name under which the page is reached, besides localhost and the addresses; can be repeated
    #[arg(long = "host", value_name = "NAME", value_parser = parse_host)]
    pub hosts: Vec<String>,
}

/// A host name alone: a port in it would never match, because that of a request is not compared.
fn parse_host(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains([':', '/', ' ', '[']) {
        return Err("give the name alone, such as queues.example.com, without a scheme or a port".to_owned());
    }
    Ok(text.to_owned())
}
