//! The progress of long commands, and what is reported if one is interrupted.

use crate::dqctl::{ok, on_terminal};
use crate::support::Server;
use std::io::Read;
use std::process::{Command, Stdio};

/// A queue with so many messages that a dump is longer than what a pipe holds.
fn large_queue(server: &Server) {
    let payload = "x".repeat(1_000);
    for _ in 0..5 {
        let words = ["DQ.MPUSH", "q", "1000"].into_iter().chain(std::iter::repeat_n(payload.as_str(), 1_000));
        server.ask(&words.collect::<Vec<_>>());
    }
}

#[test]
fn a_terminal_shows_how_far_a_long_command_is() {
    let server = Server::start();
    large_queue(&server);
    let shown = on_terminal(&server, "dump q | (sleep 2; cat > /dev/null)", true);
    assert!(shown.contains(" of 5,000 (") && shown.contains(" left"), "{shown:?}");
    let quick = on_terminal(&server, "purge q --all --yes", true);
    assert!(!quick.contains(" left") && quick.ends_with("5,000 purged\n"), "{quick:?}");
}

#[test]
fn a_command_that_is_interrupted_reports_how_far_it_came() {
    let server = Server::start();
    large_queue(&server);
    // Tests that run in the background ignore the signal, and would pass that on.
    let mut dump = Command::new("env");
    dump.args(["--default-signal=INT", env!("CARGO_BIN_EXE_dqctl"), "dump", "q"]).env("DQ_URL", server.url());
    let mut dump = dump.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It has begun, and cannot end while nobody reads the rest.
    dump.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    assert!(Command::new("kill").args(["-INT", &dump.id().to_string()]).status().unwrap().success());
    let mut err = String::new();
    dump.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(dump.wait().unwrap().code(), Some(130), "{err}");
    assert!(err.starts_with("dqctl: interrupted after at least ") && err.contains("messages were read"), "{err}");
    assert!(err.contains("can be repeated") && err.lines().count() == 1, "{err}");
    assert_eq!(ok(&server, &["purge", "q", "--all"]), "5000\n");
}
