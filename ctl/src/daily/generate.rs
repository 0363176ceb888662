//! `dqctl completions` and `dqctl man`: what is made from the definitions of the command line.

use crate::cli;
use crate::cli::generate::{CompletionsArgs, ManArgs, Shell};
use crate::output::Output;
use crate::server::failure::{Failure, Outcome};
use clap::Command;
use clap_complete::shells::{Bash, Fish, Zsh};
use clap_mangen::Man;
use std::fs;
use std::path::Path;

const NAME: &str = "dqctl";

pub fn completions(args: &CompletionsArgs, output: &Output) -> Result<Outcome, Failure> {
    let (mut command, mut script) = (cli::command(), Vec::new());
    match args.shell {
        Shell::Bash => clap_complete::generate(Bash, &mut command, NAME, &mut script),
        Shell::Zsh => clap_complete::generate(Zsh, &mut command, NAME, &mut script),
        Shell::Fish => clap_complete::generate(Fish, &mut command, NAME, &mut script),
    }
    output.raw(&script)?;
    Ok(Outcome::Done)
}

/// Writes `dqctl.1` and `dqctl-COMMAND.1` into a directory, or prints the first.
pub fn man(args: &ManArgs, output: &Output) -> Result<Outcome, Failure> {
    // Its own page would say nothing.
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        output.raw(&page(command)?)?;
        return Ok(Outcome::Done);
    };
    let write = |name: &str, page: &[u8]| {
        let path = dir.join(format!("{name}.1"));
        fs::write(&path, page).map_err(|error| cannot_write(&path, &error))
    };
    fs::create_dir_all(dir).map_err(|error| cannot_write(dir, &error))?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write(&format!("{NAME}-{}", subcommand.get_name()), &page(subcommand.clone())?)?;
    }
    write(NAME, &page(command)?)?;
    Ok(Outcome::Done)
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command).section("1").manual("dq").render(&mut page)?;
    Ok(page)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}; name another directory", path.display()))
}
