//! Commands that run on while nobody reads what they say.

use crate::dqctl::{command, field};
use crate::http::get;
use crate::support::{eventually, free_port, Process, Server};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// An output that takes not a single byte, and its other end.
fn full() -> (Stdio, UnixStream) {
    let (mut output, reader) = UnixStream::pair().unwrap();
    output.set_nonblocking(true).unwrap();
    while output.write(&[0; 1024]).is_ok() {}
    while output.write(&[0]).is_ok() {}
    output.set_nonblocking(false).unwrap();
    (Stdio::from(OwnedFd::from(output)), reader)
}

/// Starts a command whose standard error nobody reads.
fn unread(server: &Server, args: &[&str]) -> (Process, UnixStream) {
    let (errors, reader) = full();
    let mut command = command(server, args);
    command.stdout(Stdio::null()).stderr(errors);
    (Process(command.spawn().unwrap()), reader)
}

#[test]
fn results_are_kept_while_nobody_reads_the_output() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETAIN", "3600000"]);
    for number in 0..150 {
        server.ask(&["DQ.PUSH", "q", "x", "ID", &format!("m{number}")]);
    }
    let (output, _reader) = full();
    let mut command =
        command(&server, &["work", "-q", "q=2", "--", "sh", "-c", "head -c 10000 /dev/zero | tr '\\0' x"]);
    command.stdout(output).stderr(Stdio::null());
    let mut work = Process(command.spawn().unwrap());
    eventually("all are done", || server.text(&["DQ.LEN", "q", "done"]) == "150");
    for number in [0, 75, 149] {
        let result = field(&server, "q", &format!("m{number}"), "result");
        assert_eq!(result.as_str().map(str::len), Some(10_000), "{number}");
    }
    let threads = std::fs::read_dir(format!("/proc/{}/task", work.0.id())).unwrap().count();
    assert!(threads < 50, "{threads} threads");
    work.0.kill().unwrap();
}

#[test]
fn nothing_waits_for_a_reader_of_the_log() {
    let server = Server::start();
    let (metrics, page) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let _export = unread(&server, &["export", "--listen", &metrics]);
    let _web = unread(&server, &["web", "--listen", &page]);
    let (mut work, _reader) = unread(&server, &["work", "-q", "q", "--", "sh", "-c", "echo handled >&2"]);
    server.ask(&["DQ.PUSH", "q", "x"]);
    eventually("the message is handled", || server.text(&["DQ.LEN", "q"]) == "0");
    eventually("the metrics are there", || get(&metrics, "/metrics").is_some_and(|(status, _)| status == 200));
    eventually("the page answers", || get(&page, "/").is_some());
    let killed = Command::new("kill").arg(work.0.id().to_string()).status().unwrap();
    assert!(killed.success());
    eventually("the worker has ended", || work.0.try_wait().unwrap().is_some_and(|status| status.code() == Some(0)));
}
