//! The options of `work` and `export`.

use crate::http::parse_listen;
use crate::text::{parse_span, QueueName};
use clap::{ArgGroup, Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The highest concurrency of one queue: each message has a thread.
const MOST_CONCURRENCY: usize = 10_000;

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("handler").args(["post", "command", "config"]).required(true),
    override_usage = "dqctl work [OPTIONS] -q <QUEUE=CONCURRENCY>... -- <COMMAND>...\n       \
        dqctl work [OPTIONS] -q <QUEUE=CONCURRENCY>... --post <URL>\n       dqctl work [OPTIONS] --config <FILE>"
)]
pub struct WorkArgs {
    /// A queue, and how many of its messages are worked on at the same time, by default one; can be repeated
    #[arg(short = 'q', long = "queue", value_name = "QUEUE=CONCURRENCY", required_unless_present = "config",
        value_parser = parse_queue)]
    pub queues: Vec<QueueArg>,
    #[command(flatten)]
    pub how: HandlerArgs,
    /// Where to serve /metrics and /healthz, such as 127.0.0.1:9900
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen)]
    pub listen: Option<String>,
    /// A file with the workers of many queues, which is read again at SIGHUP; contrib/workers.toml is an example
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["queues", "time_limit", "grace", "lease", "headers", "retry_on", "pause_on_429"],
        conflicts_with = "proxy")]
    pub config: Option<PathBuf>,
    /// Log the beginning and the end of each message too
    #[arg(short, long)]
    pub verbose: bool,
    /// What the log is made of, which is written to standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub log_format: LogFormat,
}

/// What the lines of a log are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// How messages are handled: by a command, or by a post.
#[derive(Args, Clone, PartialEq, Eq, Debug)]
pub struct HandlerArgs {
    /// A command that runs for longer is ended with its whole process group, and the message is retried
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub time_limit: Option<Duration>,
    /// How long running commands may go on after SIGTERM
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub grace: Duration,
    /// How long after the death of this worker its messages are delivered again, by default what the queue says; does
    /// not limit the work
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub lease: Option<Duration>,
    /// Post each payload to this URL instead of running a command
    #[arg(long, value_name = "URL")]
    pub post: Option<String>,
    /// With --post: a header of each request; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "post", conflicts_with = "command",
        value_parser = header_of)]
    pub headers: Vec<(String, String)>,
    /// With --post: answers 4xx that are retried instead of rejected, such as 404,409
    #[arg(long, value_name = "STATUS", requires = "post", conflicts_with = "command", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(400..500))]
    pub retry_on: Vec<u16>,
    /// With --post: an answer 429 also pauses the queue for its Retry-After
    #[arg(long = "pause-on-429", requires = "post", conflicts_with = "command")]
    pub pause_on_429: bool,
    /// With --post: an HTTP proxy, through which all requests go by CONNECT; HTTPS_PROXY and the like are not read
    #[arg(long, value_name = "URL", requires = "post", conflicts_with = "command")]
    pub proxy: Option<String>,
    /// The command and its arguments, which no shell reads
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Where to serve /metrics and /healthz
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9899", value_parser = parse_listen)]
    pub listen: String,
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// This queue, with zeros while it does not exist; can be repeated. Without --match, no others
    #[arg(short = 'q', long = "queue", value_name = "QUEUE")]
    pub queues: Vec<QueueName>,
    /// The most queues, besides those of --queue
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub max_queues: usize,
    /// How often new queues are searched for, by SCAN
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub every: Duration,
}

/// A queue and its concurrency.
#[derive(Clone, Debug)]
pub struct QueueArg {
    pub name: String,
    pub concurrency: usize,
}

/// Reads `NAME: VALUE`.
fn header_of(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_valid = !name.is_empty() && name.bytes().all(is_token) && !value.contains(|c: char| c.is_control());
    if is_valid && text.contains(':') {
        Ok((name.to_owned(), value.trim().to_owned()))
    } else {
        Err("a header is a name and a value, such as 'Content-Type: application/json'".to_owned())
    }
}

fn parse_queue(text: &str) -> Result<QueueArg, String> {
    let (name, concurrency) = text.rsplit_once('=').unwrap_or((text, "1"));
    let concurrency = concurrency.parse().ok().filter(|number| (1..=MOST_CONCURRENCY).contains(number));
    match concurrency {
        Some(concurrency) if !name.is_empty() => Ok(QueueArg { name: name.to_owned(), concurrency }),
        _ => Err(format!("a queue is a name and its concurrency from 1 to {MOST_CONCURRENCY}, such as mail=8")),
    }
}
