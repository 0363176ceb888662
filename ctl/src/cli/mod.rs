//! The commands and their options.

mod act;
mod batch;
mod change;
mod dead;
pub mod doctor;
mod done;
mod moving;
mod push;
mod queue;
mod settings;
mod web;
mod work;

pub use act::Act;
pub use batch::BatchArgs;
pub use change::{
    BuryArgs, CancelArgs, ConfirmArgs, FlowArg, ManyArgs, NackArgs, PauseArgs, RedriveArgs, ReleaseArgs,
    RescheduleArgs, ResumeArgs,
};
pub use dead::{among, DeadArgs, SelectArgs};
pub use done::{AwaitArgs, CompleteArgs};
pub use moving::{DumpArgs, End, ImportArgs, Kind, LoadArgs};
pub use push::{MessageArgs, PushArgs, ScheduleArgs};
pub use queue::{AlterArgs, CreateArgs, DeleteArgs, PromoteArgs, PurgeArgs};
pub use settings::SettingsArgs;
pub use web::WebArgs;
pub use work::{ExportArgs, HandlerArgs, LogFormat, WorkArgs};

use crate::board::Sort;
use crate::output::width;
use crate::server::Connection;
use crate::text::{parse_span, MessageId, QueueName};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgGroup, ArgMatches, Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use dq_client::State;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

/// How long an ordinary command tries to reach the server.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same for the page and for `top`: long enough to reopen a connection that the server has closed.
const PAGE_PATIENCE: Duration = Duration::from_millis(500);

/// The width of a help that goes to a file: its lines are as they were written.
const WITHOUT_WRAPPING: usize = 0;

/// Above the options of what is printed, in the help.
const OUTPUT: &str = "Output";

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 nothing was changed or found: a duplicate, no such id or queue, or no message to change; \
2 the command line is wrong; 3 the server or the system refused, or could not be reached.";

const HANDLERS: &str = "\
The payload is the command's standard input; DQ_QUEUE, DQ_ID, DQ_ATTEMPT and DQ_RECEIPT are in its environment. \
Exit code 0 acknowledges the message, 65 rejects it, and 75, any other code or a signal retries it; \
the end of its standard error becomes the error, and its standard output the result if the queue retains.";

const FOUND: &str = "\
Exit code 1 says that something critical or a warning was found. Notes and checks that lack a right do not change it.";

/// Delay queues of Redis and Valkey: the daily commands of the module dq, and workers
#[derive(Parser, Debug)]
#[command(name = "dqctl", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub connection: Connection,
    /// Print JSON, one object per line, with the names of DQ.GET and DQ.INFO
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub json: bool,
    /// Above a list in a pipe, print the names of its columns
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub heading: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Show a message with all its fields
    Get(GetArgs),
    /// List the first messages of each state, or of one state
    Peek(PeekArgs),
    /// Find messages in all queues: by their id, by its beginning, or by conditions
    Find(FindArgs),
    /// Show the counts, settings and totals of a queue; without a QUEUE, list the queues
    Info {
        /// The queue
        queue: Option<QueueName>,
    },
    /// List the queues with their counts
    #[command(alias = "list")]
    Ls(LsArgs),
    /// Show how late a queue delivers, and how long its consumers take
    Stats {
        /// The queue
        queue: QueueName,
    },
    /// List the groups of a queue, and how many of their messages wait
    Groups(GroupsArgs),
    /// List the consumers that hold messages, and since when: of a queue, or of all queues
    Consumers(ConsumersArgs),
    /// Wait until a message is done or dead, and show it
    Await(AwaitArgs),
    /// List the dead messages of a queue, or count them by their errors
    Dead(DeadArgs),
    /// Watch queues and their messages live in the terminal
    Top(TopArgs),
    /// Find what is set up in a way that loses or delays messages
    #[command(after_help = FOUND)]
    Doctor(doctor::DoctorArgs),
    #[command(flatten)]
    Act(Act),
    /// Run a command for each message, until SIGTERM
    #[command(after_help = HANDLERS)]
    Work(WorkArgs),
    /// Serve metrics of all queues for Prometheus, until SIGTERM
    Export(ExportArgs),
    /// Serve a page that shows the queues in a browser, until SIGTERM
    Web(WebArgs),
    /// Write all messages of a queue, its settings and its schedules as JSON lines
    Dump(DumpArgs),
    /// Push what dqctl dump wrote
    Load(LoadArgs),
    /// Take over the messages of a sorted set, a list, a stream, or a queue of another library
    Import(ImportArgs),
    /// Print a script that completes the commands and options of dqctl in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of dqctl
    Man {
        /// Where to write dqctl.1 and a page for each command; none: print dqctl.1
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// How long commands are repeated if the server cannot be reached.
    pub fn patience(&self) -> Duration {
        // A page that shows that the server is down is better than one that waits for it.
        if matches!(self, Command::Web(_) | Command::Top(_)) {
            PAGE_PATIENCE
        } else {
            PATIENCE
        }
    }

    /// What to do instead of asking a command for JSON that prints none.
    pub fn without_json(&self) -> Option<&'static str> {
        match self {
            Command::Work(_) => Some("leave --json out; --log-format json is the format of its log"),
            Command::Export(_) | Command::Web(_) | Command::Completions { .. } | Command::Man { .. } => {
                Some("leave --json out")
            }
            Command::Top(_) => Some("use dqctl ls --json"),
            // Options that conflict with it do so only if it follows the name of the command.
            Command::Get(args) => args.payload.then_some("give --json or --payload, not both"),
            Command::Await(args) => args.result.then_some("give --json or --result, not both"),
            Command::Peek(_) | Command::Find(_) | Command::Info { .. } | Command::Ls(_) | Command::Stats { .. } => None,
            Command::Groups(_) | Command::Consumers(_) | Command::Dead(_) | Command::Doctor(_) => None,
            Command::Act(_) | Command::Dump(_) | Command::Load(_) | Command::Import(_) => None,
        }
    }

    /// Whether it changes queues: then it matters if it is unknown whether the server executed it.
    pub fn is_write(&self) -> bool {
        matches!(self, Command::Load(_) | Command::Import(_)) || matches!(self, Command::Act(act) if act.is_change())
    }
}

/// Commands that print no JSON and no list.
const WITHOUT_OUTPUT: [&str; 6] = ["work", "export", "web", "top", "completions", "man"];
/// Of these, the ones that need no server.
const WITHOUT_SERVER: [&str; 2] = ["completions", "man"];

/// The definition of the command line. Its help is as wide as the terminal, and lists for each command the options that
/// it takes: of those that are defined for all commands, some refuse a few.
pub fn definition() -> clap::Command {
    let width = if io::stdout().is_terminal() { width() } else { WITHOUT_WRAPPING };
    let mut command = Cli::command().term_width(width);
    let hidden = |ids: &[&str]| -> Vec<Arg> {
        let all = command.get_arguments().filter(|arg| ids.contains(&arg.get_id().as_str()));
        all.map(|arg| arg.clone().hide(true)).collect()
    };
    let (of_output, of_server) = (hidden(&["json", "heading"]), hidden(&["url", "cluster", "cacert", "cert", "key"]));
    for name in WITHOUT_OUTPUT {
        command = command.mut_subcommand(name, |subcommand| subcommand.args(&of_output));
    }
    for name in WITHOUT_SERVER {
        command = command.mut_subcommand(name, |subcommand| subcommand.args(&of_server));
    }
    command
}

/// The command that the command line names, also if its options are wrong.
pub fn named() -> Option<String> {
    let command = definition();
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    words.find(|word| command.find_subcommand(word).is_some())
}

/// The queue that a command is about.
pub fn queue_of(matches: &ArgMatches) -> Option<String> {
    let (_, options) = matches.subcommand()?;
    options.try_get_one::<QueueName>("queue").ok().flatten().map(ToString::to_string)
}

/// The states of messages as values of options.
fn states() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::as_str)).try_map(|name| name.to_ascii_lowercase().parse::<State>())
}

#[derive(Args, Debug)]
pub struct GetArgs {
    /// The queue
    pub queue: QueueName,
    /// The id of the message, or a receipt
    pub id: MessageId,
    /// Print the payload alone, byte for byte
    #[arg(long, conflicts_with = "json")]
    pub payload: bool,
    /// Leave the payload out
    #[arg(long, conflicts_with = "payload")]
    pub no_payload: bool,
}

#[derive(Args, Debug)]
pub struct PeekArgs {
    /// The queue
    pub queue: QueueName,
    /// The state; none: all of them
    #[arg(value_parser = states(), ignore_case = true)]
    pub state: Option<State>,
    /// The most messages of each state
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Only messages of this group
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Only messages that this consumer holds, which are in flight
    #[arg(long, value_name = "NAME")]
    pub consumer: Option<String>,
    /// Leave the payloads out
    #[arg(long)]
    pub no_payload: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

impl PeekArgs {
    /// Whether the server cannot choose the messages.
    pub fn reads_all(&self) -> bool {
        self.consumer.is_some() || !self.select.conditions.is_empty() || self.select.older.is_some()
    }
}

#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("which").args(["id", "conditions", "older"]).required(true).multiple(true),
    override_usage = "dqctl find [OPTIONS] <ID>\n       \
        dqctl find [OPTIONS] [--where <CONDITION>]... [--older <TIME>]"
)]
pub struct FindArgs {
    /// The id of the message, or a receipt
    #[arg(conflicts_with_all = ["conditions", "older"])]
    pub id: Option<MessageId>,
    /// Find all messages whose ids begin with this, for which all messages are read
    #[arg(long, requires = "id")]
    pub prefix: bool,
    // Instead of an id.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only in queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
}

#[derive(Args, Debug)]
pub struct GroupsArgs {
    /// The queue
    pub queue: QueueName,
    /// Only groups with this in their names
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub contains: Option<String>,
    /// Only those that are paused
    #[arg(long)]
    pub paused: bool,
    /// The most groups
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
}

#[derive(Args, Debug)]
pub struct ConsumersArgs {
    /// The queue; none: all of them
    pub queue: Option<QueueName>,
    /// Only of queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN", conflicts_with = "queue")]
    pub pattern: Option<String>,
    /// The most consumers
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
}

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

#[derive(Args, Debug)]
pub struct TopArgs {
    /// Only queues whose name matches this glob
    #[arg(long = "match", value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// How often what is shown is read, from 100ms to 1h
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "1s")]
    pub every: Duration,
}

fn parse_every(text: &str) -> Result<Duration, String> {
    let (least, most) = (Duration::from_millis(100), Duration::from_secs(3600));
    let every = Some(parse_span(text)?).filter(|every| (least..=most).contains(every));
    every.ok_or_else(|| "it takes from 100ms to 1h".to_owned())
}
