//! `dqctl completions` and `dqctl man`: what is made from the definitions of the command line.

use crate::cli::definition;
use crate::output::Output;
use crate::server::{Failure, Outcome};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::path::Path;

const NAME: &str = "dqctl";

pub fn completions(shell: Shell, output: &Output) -> Result<Outcome, Failure> {
    let (mut command, mut script) = (definition(), Vec::new());
    clap_complete::generate(shell, &mut command, NAME, &mut script);
    output.raw(&script)?;
    Ok(Outcome::Done)
}

/// Writes `dqctl.1` and `dqctl-COMMAND.1` into a directory, or prints the first.
pub fn man(dir: Option<&Path>, output: &Output) -> Result<Outcome, Failure> {
    // Its own page would say nothing.
    let mut command = definition().disable_help_subcommand(true);
    command.build();
    let Some(dir) = dir else {
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
