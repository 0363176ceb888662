//! Runs `dqctl` as a shell would.

use crate::support::Server;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

/// What a run of `dqctl` left.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A command on a server, with the URL in `DQ_URL`.
pub fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = without_server(args);
    command.env("DQ_URL", server.url());
    command
}

pub fn without_server(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dqctl"));
    command.args(args).env_remove("DQ_URL").env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

pub fn run(mut command: Command) -> Ran {
    ran(&command.output().expect("dqctl runs"))
}

pub fn dqctl(server: &Server, args: &[&str]) -> Ran {
    run(command(server, args))
}

/// The output of a run that ends with 0 and reports nothing.
#[track_caller]
pub fn ok(server: &Server, args: &[&str]) -> String {
    let ran = dqctl(server, args);
    assert!(ran.code == 0 && ran.err.is_empty(), "{args:?}: {ran:?}");
    ran.out
}

/// The output as JSON objects, one per line.
#[track_caller]
pub fn json(server: &Server, args: &[&str]) -> Vec<serde_json::Value> {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    ok(server, &args).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A field of a message.
#[track_caller]
pub fn field(server: &Server, queue: &str, id: &str, name: &str) -> serde_json::Value {
    json(server, &["get", queue, id]).remove(0)[name].take()
}

pub fn with_input(server: &Server, args: &[&str], input: &[u8]) -> Ran {
    let mut command = command(server, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("dqctl runs");
    child.stdin.take().expect("its input").write_all(input).expect("it reads");
    ran(&child.wait_with_output().expect("it ends"))
}

/// Runs it on a terminal, with `script`, and returns what the terminal got.
pub fn on_terminal(server: &Server, args: &str, no_color: bool) -> String {
    answering(server, args, no_color, "")
}

/// The same with what somebody types.
pub fn answering(server: &Server, args: &str, no_color: bool, typed: &str) -> String {
    let mut child = terminal(server, args, no_color).spawn().expect("script, of util-linux");
    // What ends without a question does not read it.
    let _ = child.stdin.take().expect("its input").write_all(typed.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("text").replace("\r\n", "\n")
}

/// A command that runs on a terminal of 80 columns and 24 lines.
pub fn terminal(server: &Server, args: &str, no_color: bool) -> Command {
    // Who runs tests in the background lets them ignore Ctrl-C and the end of the terminal, and they would pass that
    // on.
    let line = format!("env --default-signal=INT,HUP '{}' {args}", env!("CARGO_BIN_EXE_dqctl"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("DQ_URL", server.url()).env("TERM", "xterm").env_remove("NO_COLOR");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Runs it on a terminal, and agrees to its question after `meanwhile`.
pub fn agreeing(server: &Server, args: &str, meanwhile: impl FnOnce()) -> String {
    let mut child = terminal(server, args, true).spawn().expect("script, of util-linux");
    let (mut shown, mut out) = (Vec::new(), child.stdout.take().expect("its output"));
    while !shown.ends_with(b"[y/N] ") {
        let mut byte = [0];
        out.read_exact(&mut byte).expect("a question");
        shown.extend(byte);
    }
    meanwhile();
    child.stdin.take().expect("its input").write_all(b"y\n").expect("it asks");
    out.read_to_end(&mut shown).expect("its output");
    child.wait().expect("it ends");
    String::from_utf8(shown).expect("text").replace("\r\n", "\n")
}

fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
