//! `dqctl work`: commands that handle messages.

use crate::dqctl::{command, field, ok, run, Ran};
use crate::http::get;
use crate::support::{eventually, free_port, Process, Server};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A worker that runs. It is killed if the test fails.
pub struct Work {
    child: Process,
}

impl Work {
    /// Starts `dqctl work` with these options and a shell script as its handler.
    pub fn start(server: &Server, options: &[&str], script: &str) -> Work {
        Work::with(server, &[options, &["--", "sh", "-c", script]].concat())
    }

    /// Starts `dqctl work` with these arguments.
    pub fn with(server: &Server, args: &[&str]) -> Work {
        let args = [&["work"], args].concat();
        let mut command = command(server, &args);
        command.env("DIR", server.dir());
        Work::of(command)
    }

    pub fn of(mut command: Command) -> Work {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Work { child: Process(command.spawn().unwrap()) }
    }

    /// The same, and what it writes to standard error goes to the file `log`.
    pub fn logged(server: &Server, args: &[&str]) -> Work {
        let args = [&["work"], args].concat();
        let mut command = command(server, &args);
        let log = std::fs::File::create(server.dir().join("log.dqctl")).unwrap();
        command.env("DIR", server.dir()).stdout(Stdio::null()).stderr(log);
        Work { child: Process(command.spawn().unwrap()) }
    }

    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Waits until it has ended with 0.
    pub fn until_ended(mut self) {
        assert_eq!(self.child.0.wait().unwrap().code(), Some(0));
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.0.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Asks it to stop, waits until it has, and returns its exit code.
    pub fn stopped(mut self) -> i32 {
        self.signal("TERM");
        self.child.0.wait().unwrap().code().expect("an exit code")
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(self) -> Ran {
        self.signal("TERM");
        self.ended()
    }

    fn ended(mut self) -> Ran {
        let (mut out, mut err) = (String::new(), String::new());
        let mut errors = self.child.0.stderr.take().unwrap();
        self.child.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        errors.read_to_string(&mut err).unwrap();
        let code = self.child.0.wait().unwrap().code().expect("an exit code");
        Ran { code, out, err }
    }
}

pub fn written(server: &Server, name: &str) -> String {
    std::fs::read_to_string(server.dir().join(name)).unwrap_or_default()
}

fn dir(server: &Server) -> PathBuf {
    server.dir().to_owned()
}

/// Whether a process runs.
pub fn is_alive(pid: &str) -> bool {
    // A process that has ended but was not awaited yet is a zombie.
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[test]
fn a_handler_gets_the_payload_and_what_it_must_know() {
    let server = Server::start();
    // A payload that a shell would not leave as it is, and one that no pipe takes at once.
    let payload = "$(touch $DIR/shell) `x` 'y' \"z\"\n";
    let script = "cat > $DIR/$DQ_ID.tmp; echo \"$DQ_QUEUE $DQ_ATTEMPT $DQ_RECEIPT\" > $DIR/$DQ_ID.env; \
                  mv $DIR/$DQ_ID.tmp $DIR/$DQ_ID";
    let work = Work::start(&server, &["-q", "mail=2", "-q", "other"], script);
    server.until_blocked(2);
    ok(&server, &["push", "mail", payload, "--id", "small"]);
    let large = "x".repeat(1_000_000);
    server.ask(&["DQ.PUSH", "other", &large, "ID", "large"]);
    eventually("both are acknowledged", || {
        server.text(&["DQ.LEN", "mail"]) == "0" && server.text(&["DQ.LEN", "other"]) == "0"
    });
    assert_eq!((written(&server, "small"), written(&server, "large").len()), (payload.to_owned(), large.len()));
    let environment = written(&server, "small.env");
    assert!(environment.starts_with("mail 1 small#"), "{environment}");
    assert!(!dir(&server).join("shell").exists());
    let ran = work.stop();
    assert_eq!((ran.code, ran.err.lines().count()), (0, 3), "{ran:?}");
}

#[test]
fn exit_codes_ack_retry_and_reject() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "BACKOFF", "3600000", "3600000"]);
    for (id, code) in [("fine", "0"), ("later", "75"), ("never", "65"), ("crash", "1")] {
        ok(&server, &["push", "q", code, "--id", id]);
    }
    let script = "code=$(cat); echo out; echo \"first\" >&2; echo \"no such user $DQ_ID\" >&2; exit $code";
    let work = Work::start(&server, &["-q", "q=4"], script);
    eventually("all are handled", || {
        server.text(&["DQ.LEN", "q", "ready"]) == "0" && server.text(&["DQ.LEN", "q", "inflight"]) == "0"
    });
    assert_eq!(crate::dqctl::dqctl(&server, &["get", "q", "fine"]).code, 1);
    for (id, state) in [("later", "delayed"), ("never", "dead"), ("crash", "delayed")] {
        assert_eq!(field(&server, "q", id, "state"), state, "{id}");
        assert_eq!(field(&server, "q", id, "error"), format!("first\nno such user {id}"));
    }
    assert_eq!(field(&server, "q", "never", "reason"), "rejected");
    let ran = work.stop();
    assert_eq!((ran.code, ran.out.as_str()), (0, "out\nout\nout\nout\n"), "{ran:?}");
    assert!(ran.err.contains("no such user never") && ran.err.contains("now dead"), "{ran:?}");
}

#[test]
fn a_silent_failure_or_a_signal_is_named_in_the_error() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "BACKOFF", "3600000", "3600000"]);
    ok(&server, &["push", "q", "exit 3", "--id", "code"]);
    ok(&server, &["push", "q", "kill -9 $$", "--id", "signal"]);
    ok(&server, &["push", "q", "yes x | head -c 10000 >&2; echo end >&2; exit 1", "--id", "long"]);
    let work = Work::start(&server, &["-q", "q=3"], "eval \"$(cat)\"");
    eventually("all are retried", || server.text(&["DQ.LEN", "q", "delayed"]) == "3");
    assert_eq!(field(&server, "q", "code", "error"), "exit status: 3");
    assert!(field(&server, "q", "signal", "error").as_str().unwrap().contains("signal: 9"));
    let long = field(&server, "q", "long", "error").as_str().unwrap().to_owned();
    assert!(long.starts_with('…') && long.ends_with("x\nend") && long.len() <= 1024, "{long}");
    assert_eq!(work.stop().code, 0);
}

#[test]
fn the_time_limit_ends_the_whole_process_group() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "BACKOFF", "3600000", "3600000"]);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    // The child of the handler does not listen to SIGTERM.
    let script = "sh -c 'trap \"\" TERM; echo $$ > $DIR/child; while :; do sleep 1; done' & echo begun >&2; wait";
    let work = Work::start(&server, &["-q", "q", "--time-limit", "3s"], script);
    eventually("it is retried", || field(&server, "q", "m", "state") == "delayed");
    let child = written(&server, "child");
    assert!(!child.is_empty());
    eventually("the child has ended", || !is_alive(child.trim()));
    assert_eq!(field(&server, "q", "m", "error"), "ended at the time limit of 3s: begun");
    assert_eq!(work.stop().code, 0);
}

#[test]
fn a_handler_whose_message_was_cancelled_is_ended() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m"]);
    let work = Work::start(&server, &["-q", "q", "--lease", "1s"], "echo $$ > $DIR/child; exec sleep 3600");
    eventually("it runs", || !written(&server, "child").is_empty());
    ok(&server, &["cancel", "q", "m"]);
    eventually("the handler has ended", || !is_alive(written(&server, "child").trim()));
    assert_eq!(work.stop().code, 0);
}

#[test]
fn sigterm_lets_handlers_end_and_gives_back_the_rest() {
    let server = Server::start();
    let script = "touch $DIR/begun; while [ ! -e $DIR/go ]; do sleep 0.01; done";
    let address = format!("127.0.0.1:{}", free_port());
    let work = Work::start(&server, &["-q", "q", "--listen", &address], script);
    ok(&server, &["push", "q", "x", "--id", "first"]);
    eventually("it runs", || dir(&server).join("begun").exists());
    ok(&server, &["push", "q", "x", "--id", "second"]);
    work.signal("TERM");
    eventually("it stops", || get(&address, "/metrics").is_none_or(|(_, text)| !text.contains("dq_worker_up{")));
    std::fs::write(server.dir().join("go"), "").unwrap();
    let ran = work.ended();
    assert_eq!((ran.code, ran.err.lines().count()), (0, 3), "{ran:?}");
    assert_eq!(crate::dqctl::dqctl(&server, &["get", "q", "first"]).code, 1);
    assert_eq!(
        (field(&server, "q", "second", "state"), field(&server, "q", "second", "attempt")),
        ("ready".into(), 0.into())
    );
}

#[test]
fn a_handler_that_ignores_sigterm_is_killed() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "limit", "BACKOFF", "3600000", "3600000"]);
    server.ask(&["DQ.CREATE", "stop", "BACKOFF", "3600000", "3600000"]);
    let script = "trap '' TERM; echo $$ > $DIR/$DQ_ID; while :; do sleep 0.1; done";
    ok(&server, &["push", "limit", "x", "--id", "limited"]);
    let work = Work::start(&server, &["-q", "limit", "--time-limit", "300ms"], script);
    eventually("it is retried", || field(&server, "limit", "limited", "state") == "delayed");
    assert!(!is_alive(written(&server, "limited").trim()));
    assert_eq!(work.stop().code, 0);
    ok(&server, &["push", "stop", "x", "--id", "stopped"]);
    let work = Work::start(&server, &["-q", "stop", "--grace", "100ms"], script);
    eventually("it runs", || !written(&server, "stopped").is_empty());
    assert_eq!(work.stop().code, 0);
    assert!(!is_alive(written(&server, "stopped").trim()));
    // Its attempt does not count.
    let given_back = (field(&server, "stop", "stopped", "state"), field(&server, "stop", "stopped", "attempt"));
    assert_eq!(given_back, ("ready".into(), 0.into()));
}

#[test]
fn failing_handlers_leave_no_pipes_threads_or_processes_behind() {
    const MESSAGES: u64 = 500;
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETRIES", "0", "DEADLEN", "5"]);
    let queue: dq_client::blocking::Queue<u64> = server.client().queue("q");
    queue.push_all(&(0..MESSAGES).collect::<Vec<_>>()).once().send().unwrap();
    let work = Work::logged(&server, &["-q", "q=16", "--", "false"]);
    eventually("all have failed", || queue.info().unwrap().unwrap().totals.died == MESSAGES);
    let of_process = |name: &str| std::fs::read_dir(format!("/proc/{}/{name}", work.id())).map_or(0, Iterator::count);
    eventually("the threads of the handlers have ended", || of_process("task") < 40);
    assert!(of_process("fd") < 60, "{} open files", of_process("fd"));
    let children = format!("/proc/{0}/task/{0}/children", work.id());
    assert_eq!(std::fs::read_to_string(children).unwrap_or_default(), "");
    eventually("each failure is in the log", || written(&server, "log.dqctl").lines().count() as u64 > MESSAGES);
    // Nor does the end of a process disturb a connection.
    let log = written(&server, "log.dqctl");
    assert!(log.lines().skip(1).all(|line| line.ends_with("exit status: 1; now dead")), "{log}");
    work.signal("TERM");
    work.until_ended();
}

#[test]
fn what_cannot_be_run_is_refused_before_a_message_is_taken() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let wrong: [&[&str]; 6] = [
        &["work", "-q", "q"],
        &["work", "--", "true"],
        &["work", "-q", "q=0", "--", "true"],
        &["work", "-q", "q=many", "--", "true"],
        &["work", "-q", "q", "-q", "q=2", "--", "true"],
        &["work", "-q", "q", "--", "./no-such-program"],
    ];
    for args in wrong {
        let ran = run(command(&server, args));
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{args:?}: {ran:?}");
    }
    assert_eq!(server.text(&["DQ.LEN", "q", "ready"]), "1");
}

#[test]
fn a_worker_needs_no_more_rights_than_the_page_says() {
    let server = Server::start();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dqctl/work.md")).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("The user needs `")).unwrap();
    let rights: Vec<&str> = line.split('`').next().unwrap().split(' ').collect();
    server.ask(&[&["ACL", "SETUSER", "worker", "on", ">secret", "~q"], &rights[..]].concat());
    ok(&server, &["push", "q", "x"]);
    let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
    let work = Work::start(&server, &["-q", "q", "-u", &url], "touch $DIR/done");
    eventually("the message is acknowledged", || server.text(&["DQ.LEN", "q"]) == "0");
    server.until_blocked(1);
    let ran = work.stop();
    assert_eq!((ran.code, ran.err.lines().count()), (0, 2), "{ran:?}");
}

#[test]
fn a_descendant_that_still_writes_leaves_no_partial_result() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETAIN", "3600000"]);
    // It ends with the test, too.
    let script = "(while [ -d $DIR ] && [ ! -e $DIR/go ]; do sleep 0.01; done; echo rest) & echo part";
    let work = Work::start(&server, &["-q", "q"], script);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    ok(&server, &["push", "q", "x", "--id", "n"]);
    eventually("both are done", || server.text(&["DQ.LEN", "q"]) == "0");
    let results = ["m", "n"].map(|id| ok(&server, &["await", "q", id, "--result"]));
    std::fs::write(server.dir().join("go"), "").unwrap();
    assert_eq!(results, ["", ""]);
    let ran = work.stop();
    assert_eq!((ran.code, ran.err.matches("has no result").count()), (0, 1), "{ran:?}");
}

#[test]
fn as_process_1_it_leaves_no_zombies() {
    let namespace = ["-Urpf", "--mount-proc", "--kill-child"];
    if !Command::new("unshare").args(namespace).arg("true").status().is_ok_and(|status| status.success()) {
        return eprintln!("left out: namespaces are not permitted here");
    }
    let server = Server::start();
    // A zombie has its directory until somebody waits for it.
    let script = "(sh -c 'echo $$ > $DIR/orphan' &); \
                  until [ -s $DIR/orphan ] && [ ! -e /proc/$(cat $DIR/orphan) ]; do sleep 0.01; done";
    let mut command = Command::new("unshare");
    command.args(namespace).arg(env!("CARGO_BIN_EXE_dqctl")).args(["work", "-q", "q", "--", "sh", "-c", script]);
    command.env("DQ_URL", server.url()).env("DIR", server.dir());
    let work = Work::of(command);
    ok(&server, &["push", "q", "x"]);
    eventually("it is acknowledged", || server.text(&["DQ.LEN", "q"]) == "0");
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", work.id())).unwrap();
    assert!(Command::new("kill").arg(children.trim()).status().unwrap().success());
    let ran = work.ended();
    assert_eq!((ran.code, ran.err.lines().count()), (0, 2), "{ran:?}");
}
