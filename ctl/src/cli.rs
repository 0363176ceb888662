//! The commands and their options.

mod dead;
pub mod doctor;
mod done;
pub mod generate;
mod moving;
pub mod top;

pub use dead::{DeadArgs, SelectArgs};
pub use done::{AwaitArgs, CompleteArgs};
pub use moving::{DumpArgs, End, ImportArgs, Kind, LoadArgs, Unit};

use crate::connection::Connection;
use crate::time::{parse_instant, parse_span};
use crate::web::WebArgs;
use clap::{ArgGroup, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// How long an ordinary command tries to reach the server.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same for the page: long enough to reopen a connection that the server has closed.
const PAGE_PATIENCE: Duration = Duration::from_millis(500);

/// The highest concurrency of one queue: each message has a thread.
pub const MOST_CONCURRENCY: usize = 10_000;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 nothing was changed or found: a duplicate, or no such id or queue; 2 the command line is wrong; \
3 the server or the system refused, or could not be reached.";

const HANDLERS: &str = "\
The payload is the command's standard input; DQ_QUEUE, DQ_ID, DQ_ATTEMPT and DQ_RECEIPT are in its environment. \
Exit code 0 acknowledges the message, 65 rejects it, and 75, any other code or a signal retries it; \
the end of its standard error becomes the error, and its standard output the result if the queue retains.";

const FOUND: &str = "\
Exit code 1 says that something critical or a warning was found. Notes and checks that lack a right do not change it.";

/// Delay queues of Redis and Valkey: the daily commands of the module dq, and workers
#[derive(Parser, Debug)]
#[command(name = "dqctl", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub connection: Connection,
    /// Print JSON, one object per line, with the names of DQ.GET and DQ.INFO
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a command for each message, until SIGTERM
    #[command(after_help = HANDLERS)]
    Work(WorkArgs),
    /// Serve metrics of all queues for Prometheus, until SIGTERM
    Export(ExportArgs),
    /// Serve a page that shows the queues in a browser, until SIGTERM
    Web(WebArgs),
    /// Push a message and print its id
    Push(PushArgs),
    /// Declare a recurring message; without an ID, list the recurring messages
    Schedule(ScheduleArgs),
    /// Show a message with all its fields
    Get(GetArgs),
    /// List the first messages of each state, or of one state
    Peek(PeekArgs),
    /// Show the counts, settings and totals of a queue; without a QUEUE, list the queues
    Info(InfoArgs),
    /// List the queues with their counts
    Ls(LsArgs),
    /// Show how late a queue delivers, and how long its consumers take
    Stats(QueueArgs),
    /// List the groups of a queue, and how many of their messages wait
    Groups(QueueArgs),
    /// List the consumers that hold messages of a queue, and since when
    Consumers(QueueArgs),
    /// Take from a consumer that is gone the messages that it holds
    Release(ReleaseArgs),
    /// Acknowledge a message in flight, with a result
    Complete(CompleteArgs),
    /// Wait until a message is done or dead, and show it
    Await(AwaitArgs),
    /// Remove messages in any state, or the dead ones that conditions select
    Cancel(CancelArgs),
    /// Change the due time or the priority of a message
    Reschedule(RescheduleArgs),
    /// List the dead messages of a queue, or count them by their errors
    Dead(DeadArgs),
    /// Make dead messages live again: all, the oldest, the given ones, or those that conditions select
    Redrive(RedriveArgs),
    /// Suspend delivery
    Pause(PauseArgs),
    /// Resume delivery
    Resume(QueueArgs),
    /// Watch queues and their messages live in the terminal, and change them
    Top(top::TopArgs),
    /// Find what is set up in a way that loses or delays messages
    #[command(after_help = FOUND)]
    Doctor(doctor::DoctorArgs),
    /// Print a script that completes the commands and options of dqctl in a shell
    Completions(generate::CompletionsArgs),
    /// Write the manual pages of dqctl
    Man(generate::ManArgs),
    /// Write all messages of a queue, its settings and its schedules as JSON lines
    Dump(DumpArgs),
    /// Push what dqctl dump wrote
    Load(LoadArgs),
    /// Take over the messages of a sorted set, a list, a stream, or a queue of another library
    Import(ImportArgs),
}

impl Command {
    /// How long commands are repeated if the server cannot be reached.
    pub fn patience(&self) -> Duration {
        match self {
            // A page that shows that the server is down is better than one that waits for it.
            Command::Web(_) => PAGE_PATIENCE,
            _ => PATIENCE,
        }
    }

    /// Whether it changes queues: then it matters if it is unknown whether the server executed it.
    pub fn is_write(&self) -> bool {
        match self {
            Command::Push(_)
            | Command::Release(_)
            | Command::Complete(_)
            | Command::Cancel(_)
            | Command::Reschedule(_)
            | Command::Redrive(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Load(_)
            | Command::Import(_) => true,
            Command::Schedule(args) => args.id.is_some(),
            Command::Work(_)
            | Command::Export(_)
            | Command::Web(_)
            | Command::Get(_)
            | Command::Peek(_)
            | Command::Info(_)
            | Command::Ls(_)
            | Command::Stats(_)
            | Command::Groups(_)
            | Command::Consumers(_)
            | Command::Await(_)
            | Command::Dead(_)
            | Command::Top(_)
            | Command::Doctor(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Dump(_) => false,
        }
    }
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("handler").args(["post", "command", "config"]).required(true))]
pub struct WorkArgs {
    /// A queue, and how many of its messages are worked on at the same time, by default one; can be repeated
    #[arg(short = 'q', long = "queue", value_name = "QUEUE=CONCURRENCY", required_unless_present = "config", value_parser = parse_queue)]
    pub queues: Vec<QueueArg>,
    /// A command that runs for longer is ended with its whole process group, and the message is retried
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub time_limit: Option<Duration>,
    /// How long running commands may go on after SIGTERM
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub grace: Duration,
    /// How long after the death of this worker its messages are delivered again; does not limit the work
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "30s")]
    pub lease: Duration,
    /// Where to serve /metrics and /healthz, such as 127.0.0.1:9900
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Post each payload to this URL instead of running a command
    #[arg(long, value_name = "URL")]
    pub post: Option<String>,
    /// With --post: a header of each request; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "post", value_parser = header_of)]
    pub headers: Vec<(String, String)>,
    /// With --post: answers 4xx that are retried instead of rejected, such as 404,409
    #[arg(long, value_name = "STATUS", requires = "post", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(400..500))]
    pub retry_on: Vec<u16>,
    /// With --post: an answer 429 also pauses the queue for its Retry-After
    #[arg(long = "pause-on-429", requires = "post")]
    pub pause_on_429: bool,
    /// A file with the workers of many queues, which is read again at SIGHUP; contrib/workers.toml is an example
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["queues", "time_limit", "grace", "lease", "headers", "retry_on", "pause_on_429"])]
    pub config: Option<PathBuf>,
    /// The command and its arguments, which no shell reads
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Where to serve /metrics and /healthz
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9899")]
    pub listen: String,
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// The most queues
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
pub fn header_of(text: &str) -> Result<(String, String), String> {
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

/// What a message and the runs of a schedule have in common.
#[derive(Args, Debug)]
pub struct MessageArgs {
    /// -128 to 127: among ready messages, a higher one is delivered first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i8,
    /// The most redeliveries, instead of the queue's; -1: no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub retries: Option<i32>,
    /// How long a delivery may take, instead of the queue's lease
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub lease: Option<Duration>,
    /// Dead if it is not completed within this time after it was due
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub ttl: Option<Duration>,
    /// The group, whose messages are delivered in order
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// A header, which says something about the message besides its payload; can be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = parse_header)]
    pub headers: Vec<(String, String)>,
}

/// A header as it is given on the command line.
fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a header is NAME=VALUE, such as content-type=text/csv")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Args, Debug)]
pub struct PushArgs {
    /// The queue, which is created if it does not exist
    pub queue: String,
    /// The payload; - or none reads it from standard input
    pub payload: Option<String>,
    /// The message's own id: while the queue holds it, further pushes are duplicates
    #[arg(long)]
    pub id: Option<String>,
    /// Due after this time, such as 15m or 1h30m
    #[arg(long = "in", value_name = "TIME", value_parser = parse_span, conflicts_with = "at")]
    pub delay: Option<Duration>,
    /// Due at this instant, such as 2026-12-01T09:00+01:00
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    pub at: Option<SystemTime>,
    /// Take the place of the message that has the id
    #[arg(long, requires = "id")]
    pub replace: bool,
    /// With --replace: due no later than this long after the first push of the chain of replacements
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "replace")]
    pub max_wait: Option<Duration>,
    /// With --replace: a message in flight is replaced when its delivery ends, and not before
    #[arg(long, requires = "replace")]
    pub later: bool,
    /// How long the message is kept as done after its completion, instead of the queue's time
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub retain: Option<Duration>,
    #[command(flatten)]
    pub message: MessageArgs,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("rule").args(["every", "cron"]))]
pub struct ScheduleArgs {
    /// The queue
    pub queue: String,
    /// The id of the recurring message
    #[arg(requires = "rule")]
    pub id: Option<String>,
    /// The payload; - or none reads it from standard input
    pub payload: Option<String>,
    /// Due at each multiple of this interval since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "id")]
    pub every: Option<Duration>,
    /// With --every: later than the multiples by this time
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "every")]
    pub offset: Option<Duration>,
    /// Due at the times of this expression, such as '30 18 * * mon-fri'
    #[arg(long, value_name = "EXPRESSION", requires = "id")]
    pub cron: Option<String>,
    /// With --cron: its time zone, such as Europe/Berlin, instead of UTC
    #[arg(long, value_name = "ZONE", requires = "cron")]
    pub tz: Option<String>,
    /// The first run is due at this instant
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant, requires = "id")]
    pub at: Option<SystemTime>,
    /// No run is due after this instant
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant, requires = "id")]
    pub until: Option<SystemTime>,
    /// The series ends after this many runs
    #[arg(long, value_name = "N", requires = "id")]
    pub times: Option<u32>,
    #[command(flatten)]
    pub message: MessageArgs,
}

#[derive(Args, Debug)]
pub struct GetArgs {
    /// The queue
    pub queue: String,
    /// The id of the message
    pub id: String,
    /// Print the payload alone, byte for byte
    #[arg(long, conflicts_with = "json")]
    pub payload: bool,
}

#[derive(Args, Debug)]
pub struct PeekArgs {
    /// The queue
    pub queue: String,
    /// delayed, ready, inflight, dead or done
    pub state: Option<dq_client::State>,
    /// The most messages of each state
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Only messages of this group
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
}

#[derive(Args, Debug)]
pub struct InfoArgs {
    /// The queue
    pub queue: Option<String>,
}

#[derive(Args, Debug)]
pub struct LsArgs {
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
}

#[derive(Args, Debug)]
pub struct QueueArgs {
    /// The queue
    pub queue: String,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("which").args(["ids", "conditions", "older"]).required(true).multiple(true))]
pub struct CancelArgs {
    /// The queue
    pub queue: String,
    /// The ids of the messages
    #[arg(value_name = "ID", conflicts_with_all = ["conditions", "older", "dry_run"])]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only count the dead messages that would be removed
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("change").args(["delay", "at", "priority"]).required(true).multiple(true))]
pub struct RescheduleArgs {
    /// The queue
    pub queue: String,
    /// The id of the message
    pub id: String,
    /// Due after this time, such as 15m; 0: now
    #[arg(long = "in", value_name = "TIME", value_parser = parse_span, conflicts_with = "at")]
    pub delay: Option<Duration>,
    /// Due at this instant, such as 2026-12-01T09:00+01:00
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    pub at: Option<SystemTime>,
    /// The new priority
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i8>,
}

#[derive(Args, Debug)]
pub struct RedriveArgs {
    /// The queue
    pub queue: String,
    /// The ids of the dead messages; none: all of them
    #[arg(value_name = "ID", conflicts_with_all = ["count", "delay", "conditions", "older", "dry_run"])]
    pub ids: Vec<String>,
    /// Only the oldest ones
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["conditions", "older", "dry_run"])]
    pub count: Option<u32>,
    /// Due after this time instead of now
    #[arg(long = "in", value_name = "TIME", value_parser = parse_span)]
    pub delay: Option<Duration>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only count the messages that would be redriven
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args, Debug)]
pub struct ReleaseArgs {
    /// The queue
    pub queue: String,
    /// The name of the consumer, which it gave with AS
    pub consumer: String,
    /// Only those that were delivered first
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Do not count the attempts
    #[arg(long)]
    pub no_count: bool,
}

#[derive(Args, Debug)]
pub struct PauseArgs {
    /// The queue
    pub queue: String,
    /// Resume by itself after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    pub time: Option<Duration>,
}
