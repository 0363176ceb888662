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
    /// What every request to /api/ must have, as 'Authorization: Bearer TOKEN' or 'X-DQ-Token: TOKEN'; the page asks
    /// for it
    #[arg(long, value_name = "TOKEN", env = "DQ_WEB_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// The path below which a proxy serves the page, such as /queues, if it leaves that path in its requests
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = parse_base_path)]
    pub base_path: String,
    /// A host name under which the page is reached, besides localhost and the addresses; can be repeated
    #[arg(long = "host", value_name = "NAME", value_parser = parse_host)]
    pub hosts: Vec<String>,
}

/// A path that begins with a slash, without one at its end.
fn parse_base_path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') || text.contains(['?', '#', ' ']) {
        return Err("give a path that begins with a slash, such as /queues".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A host name alone: a port in it would never match, because that of a request is not compared.
fn parse_host(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains([':', '/', ' ', '[']) {
        return Err("give the name alone, such as queues.example.com, without a scheme or a port".to_owned());
    }
    Ok(text.to_owned())
}
