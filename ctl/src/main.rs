//! `dqctl`: the command line of dq. Runs workers, exports metrics, and offers the daily commands.
//!
//! `cli` has the definitions of all commands. Each command ends in an [`Outcome`], which is the exit code, or in a
//! [`Failure`], which is one line on standard error and an exit code.

// The macros of the standard library panic if the output is full or closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

/// Writes a line to standard error. If that is full or closed, the work goes on without it.
macro_rules! print_error {
    ($($text:tt)*) => {
        $crate::text::print_error_line(format_args!($($text)*))
    };
}

mod acts;
mod board;
mod cli;
mod daily;
mod export;
mod findings;
mod http;
mod moving;
mod output;
mod server;
mod text;
mod top;
mod web;
mod work;

use clap::FromArgMatches;
use cli::{Act, Cli, Command, LsArgs};
use dq_client::blocking::Client;
use output::Output;
use server::{Failure, Outcome};
use std::process::ExitCode;

fn main() -> ExitCode {
    let parsed = cli::definition().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, cli::queue_of(&matches))));
    let outcome = match parsed {
        Ok((cli, queue)) => run(cli).map_err(|failure| failure.about(queue.as_deref())),
        Err(error) => {
            let command = cli::named().map_or_else(String::new, |name| format!("{name} "));
            Err(Failure::clap(&error, &format!("; see dqctl {command}--help")))
        }
    };
    let code = match outcome {
        Ok(outcome) => outcome.code(),
        Err(failure) => failure.report(),
    };
    text::finish();
    code
}

fn run(cli: Cli) -> Result<Outcome, Failure> {
    if let (true, Some(instead)) = (cli.json, cli.command.without_json()) {
        return Err(Failure::usage(format!("this command prints no JSON: {instead}")));
    }
    let output = Output::new(cli.json, cli.heading);
    // What needs no server comes first: it must not fail because of its URL.
    if let Command::Completions { shell } = &cli.command {
        return daily::generate::completions(*shell, &output);
    }
    if let Command::Man { dir } = &cli.command {
        return daily::generate::man(dir.as_deref(), &output);
    }
    let patience = cli.command.patience();
    if let Command::Work(args) = &cli.command {
        return work::work(&cli.connection, args, patience);
    }
    if matches!(cli.command, Command::Export(_) | Command::Web(_)) {
        text::in_background(|number| format!("dqctl: {number} lines were left out, because nobody read them in time"))?;
    }
    let client = cli.connection.client(None, patience)?;
    let is_write = cli.command.is_write();
    let is_from_file = matches!(cli.command, Command::Load(_) | Command::Import(_));
    execute(&client, cli.command, &output).map_err(|failure| {
        let is_unnamed = failure.lacks_module() && !failure.names_server();
        let failure = if is_unnamed { board::names::name_server(failure, &client) } else { failure };
        let failure = if is_from_file { failure } else { failure.on_command_line() };
        if is_write {
            failure.after_write()
        } else {
            failure
        }
    })
}

fn execute(client: &Client, command: Command, output: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::Work(_) | Command::Completions { .. } | Command::Man { .. } => Ok(Outcome::Done),
        Command::Export(args) => export::export(client, args),
        Command::Web(args) => web::web(client, args),
        Command::Act(Act::Schedule(args)) if args.id.is_none() => daily::schedule::list(client, &args.queue, output),
        Command::Act(Act::Batch(args)) if args.then.is_none() && !args.cancel => {
            daily::batch::batch(client, &args, output)
        }
        Command::Act(act) => daily::act(client, act, output),
        Command::Get(args) => daily::look::get(client, &args, output),
        Command::Peek(args) => daily::look::peek(client, &args, output),
        Command::Find(args) => daily::find::find(client, &args, output),
        Command::Info { queue: Some(queue) } => daily::queues::info(client, &queue, output),
        Command::Info { queue: None } => daily::ls::ls(client, &LsArgs::default(), output),
        Command::Ls(args) => daily::ls::ls(client, &args, output),
        Command::Consumers(args) => daily::consumers::consumers(client, &args, output),
        Command::Groups(args) => daily::groups::groups(client, &args, output),
        Command::Await(args) => daily::done::await_done(client, &args, output),
        Command::Stats { queue } => daily::queues::stats(client, &queue, output),
        Command::Dead(args) => daily::dead::dead(client, &args, output),
        Command::Top(args) => top::top(client, args),
        Command::Doctor(args) => findings::doctor(client, &args, output),
        Command::Dump(args) => moving::dump::dump(client, &args, output),
        Command::Load(args) => moving::load::load(client, &args, output),
        Command::Import(args) => moving::import::import(client, &args, output),
    }
}
