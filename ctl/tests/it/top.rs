//! `dqctl top` on a terminal: `script` makes it, and a parser of its control sequences says what it shows.

mod inside;

use crate::dqctl::{command, ok, run};
use crate::support::{eventually, patience, Server};
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

struct Top {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
    dir: PathBuf,
}

impl Top {
    fn start(server: &Server) -> Top {
        Top::with(server, (80, 24), "")
    }

    /// With options.
    fn with_options(server: &Server, options: &str) -> Top {
        Top::of(server, (80, 24), "", options)
    }

    /// On a terminal of this size, with variables such as `NO_COLOR=1`.
    fn with(server: &Server, size: (u16, u16), variables: &str) -> Top {
        Top::of(server, size, variables, "")
    }

    fn of(server: &Server, (columns, rows): (u16, u16), variables: &str, options: &str) -> Top {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("top-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let line = format!(
            "cd '{}'; stty rows {rows} cols {columns}; tty > tty; \
             {variables} sh -c 'echo $$ > pid; exec \"{}\" top {options}'; echo $? > code; stty -a > after",
            dir.display(),
            env!("CARGO_BIN_EXE_dqctl")
        );
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("DQ_URL", server.url())
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux");
        let mut out = child.stdout.take().unwrap();
        let screen = Arc::new(Mutex::new((vt100::Parser::new(size(rows), size(columns), 0), Vec::new())));
        let shared = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = out.read(&mut part) {
                let mut screen = shared.lock().unwrap();
                screen.0.process(&part[..length]);
                screen.1.extend_from_slice(&part[..length]);
            }
        });
        let keys = child.stdin.take().unwrap();
        let top = Top { child, keys, screen, dir };
        top.until("q leave");
        top
    }

    /// The lines of the screen, without the spaces at their ends.
    fn text(&self) -> String {
        let screen = self.screen.lock().unwrap().0.screen().contents();
        screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// All bytes that the terminal got.
    fn bytes(&self) -> Vec<u8> {
        self.screen.lock().unwrap().1.clone()
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    #[track_caller]
    fn until(&self, wanted: &str) {
        let end = std::time::Instant::now() + patience();
        while !self.text().contains(wanted) {
            assert!(std::time::Instant::now() < end, "no {wanted:?} in:\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Waits for a line that begins with this.
    #[track_caller]
    fn until_line(&self, start: &str) {
        eventually(start, || !self.line(start).is_empty());
    }

    #[track_caller]
    fn until_gone(&self, unwanted: &str) {
        eventually(unwanted, || !self.text().contains(unwanted));
    }

    /// The line that begins with this.
    fn line(&self, start: &str) -> String {
        self.text().lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
    }

    fn resize(&self, columns: u16, rows: u16) {
        self.screen.lock().unwrap().0.screen_mut().set_size(size(rows), size(columns));
        let tty = self.read("tty");
        let arguments = ["-F", tty.trim(), "rows", &rows.to_string(), "cols", &columns.to_string()];
        assert!(Command::new("stty").args(arguments).status().unwrap().success());
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join(name)).unwrap_or_default()
    }

    /// Waits for the end. Returns the exit code.
    #[track_caller]
    fn ended(&mut self) -> String {
        eventually("it ends", || self.child.try_wait().unwrap().is_some());
        let is_over = || self.screen.lock().unwrap().0.screen().alternate_screen();
        eventually("the screen is given back", || !is_over());
        assert!(!self.screen.lock().unwrap().0.screen().hide_cursor());
        let after = self.read("after");
        for mode in ["icanon", "echo", "isig"] {
            assert!(after.split([' ', ';', '\n']).any(|word| word == mode), "{mode}: {after}");
        }
        self.read("code").trim().to_owned()
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let pid = self.read("pid");
        if matches!(self.child.try_wait(), Ok(None)) && !pid.is_empty() {
            let _ = Command::new("kill").args(["-9", pid.trim()]).stderr(Stdio::null()).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn size(size: u16) -> NonZero<u16> {
    NonZero::new(size).unwrap()
}

fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().unwrap().success());
}

const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const DOWN: &str = "\x1b[B";
const TAB: &str = "\t";

#[test]
fn queues_are_shown_live() {
    let server = Server::start();
    let top = Top::start(&server);
    top.until("There are no queues");
    ok(&server, &["push", "mail", "x"]);
    eventually("it is counted", || top.line("mail").split_whitespace().nth(1) == Some("1"));
    ok(&server, &["push", "mail", "x"]);
    ok(&server, &["pause", "mail"]);
    eventually("it is counted again", || top.line("mail").split_whitespace().nth(1) == Some("2"));
    top.until("paused");
}

#[test]
fn the_server_is_read_as_often_as_was_asked() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let calls = || {
        let line = server.info("commandstats", "cmdstat_DQ.INFO");
        line.split(['=', ',']).nth(1).and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0)
    };
    let top = Top::with_options(&server, "--every 1h");
    top.until_line("q ");
    top.until("q leave");
    let before = calls();
    let often = Top::with_options(&server, "--every 100ms");
    eventually("it is read", || calls() > before + 20);
    assert!(!often.text().contains("Waiting") && !top.text().contains("Waiting"));
    let ran = run(command(&server, &["top", "--every", "1ms"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("it takes from 100ms to 1h"), "{ran:?}");
}

#[test]
fn a_queue_shows_its_messages_and_one_in_full() {
    let server = Server::start();
    ok(&server, &["push", "q", "line one\nline two", "--id", "first"]);
    ok(&server, &["push", "q", "second", "--id", "other", "--in", "1h"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until("line one\\nline two");
    top.press(TAB);
    top.until("There are no inflight messages");
    top.press("\x1b[Z\x1b[Z");
    top.until("second");
    assert!(top.line("other").contains("in 59m"), "{}", top.text());
    top.press(TAB);
    top.until("line one");
    top.press(ENTER);
    top.until("payload, 17 bytes\nline one\nline two");
    assert!(top.line("state").contains("ready"), "{}", top.text());
    ok(&server, &["cancel", "q", "first"]);
    top.until("no longer exists");
    top.press(ESCAPE);
    top.until("There are no ready messages");
    top.press(ESCAPE);
    top.until("QUEUE");
}

#[test]
fn payloads_and_names_cannot_control_the_terminal() {
    let server = Server::start();
    let evil = "\x1b]0;evil\x07\x1b[31;1mred\u{9b}2J\u{202e}";
    server.ask(&["DQ.PUSH", &format!("q{evil}"), &format!("p{evil}"), "ID", &format!("i{evil}")]);
    server.ask(&["DQ.BURY", &format!("q{evil}"), &format!("i{evil}"), "ERROR", &format!("e{evil}")]);
    let mut top = Top::with(&server, (200, 24), "");
    top.until(r"q\x1b]0;evil");
    // Its numbers are read after its name, and say which messages are shown first.
    top.until("messages die");
    top.press(ENTER);
    top.until("p\\u{1b}]0;evil");
    top.press(ENTER);
    top.until("e\\x1b]0;evil");
    top.press("c");
    top.until("y: yes");
    let written = String::from_utf8(top.bytes()).unwrap();
    for raw in ["\x1b]", "\x07", "31;1m", "\u{9b}", "\u{202e}"] {
        let found = written
            .match_indices(raw)
            .find(|(at, _)| !["1b}[", "x1b["].iter().any(|escaped| written[..*at].ends_with(escaped)));
        assert!(found.is_none(), "{raw:?}");
    }
}

#[test]
fn binary_names_are_shown_as_the_command_line_takes_them() {
    let server = Server::start();
    let name = r"images:\xff\xfe";
    ok(&server, &["push", name, "x"]);
    let mut top = Top::start(&server);
    top.until_line(name);
    top.press("p");
    top.until(&format!("Pause {name}?"));
    top.press("y");
    top.until(&format!("paused {name}"));
    top.press("/\\xfe\r");
    top.until_line(name);
    assert!(ok(&server, &["info", name]).contains("paused\t1"));
}

#[test]
fn nothing_changes_without_a_yes() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m"]);
    let paused = || ok(&server, &["info", "q"]).contains("paused\t1");
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press("p");
    top.until("Pause q?");
    top.press("n");
    top.until_gone("Pause q?");
    assert!(!paused());
    top.press("p");
    top.until("Pause q?");
    top.press("y");
    top.until("paused q");
    assert!(paused());
    eventually("it is shown", || top.line("q ").contains("paused"));
    top.press("p");
    top.until("Resume q?");
    top.press("y");
    top.until("resumed q");
    assert!(!paused());
}

#[test]
fn messages_are_cancelled_redriven_and_run() {
    let server = Server::start();
    let state = |id: &str| ok(&server, &["get", "q", id, "--json"]);
    for id in ["a", "b", "c"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
    }
    let mut top = Top::start(&server);
    top.until_line("q ");
    eventually("its delayed messages are known", || top.line("q ").split_whitespace().nth(2) == Some("3"));
    top.press(ENTER);
    top.until("in 59m");
    top.press("n");
    top.until("Run a of q now?");
    top.press("y");
    top.until("due now: a");
    assert!(state("a").contains("\"ready\""));
    eventually("the list is read again", || top.line("b ").contains("in 59m") && top.line("a ").is_empty());
    top.press(DOWN);
    top.press("c");
    top.until("Cancel c of q for good?");
    top.press("y");
    top.until("cancelled c");
    server.ask(&["DQ.BURY", "q", "b"]);
    top.press("\t\t\t");
    eventually("it is dead", || top.line("b ").contains("ago"));
    top.press(ENTER);
    top.until("rejected");
    top.press("r");
    top.until("Redrive b of q?");
    top.press("y");
    top.until("redriven b");
    assert!(state("b").contains("\"ready\""));
}

#[test]
fn dead_messages_show_their_death_and_are_deleted() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m", "--in", "1h"]);
    server.ask(&["DQ.BURY", "q", "m", "ERROR", "no such user"]);
    ok(&server, &["push", "q", "x", "--id", "other", "--in", "1h"]);
    let mut top = Top::start(&server);
    eventually("it is dead", || top.line("q ").split_whitespace().nth(4) == Some("1"));
    top.press(ENTER);
    top.until("DIED");
    eventually("it died just now", || top.line("m ").contains("ago") && top.line("m ").contains("no such user"));
    top.press(ENTER);
    top.until("payload, 1 byte");
    assert_eq!(top.text().matches("no such user").count(), 1, "{}", top.text());
    top.press(ESCAPE);
    top.until("DIED");
    top.until("c delete");
    top.press("c");
    top.until("Delete m of q for good?");
    top.press("y");
    top.until("deleted m");
    top.until("There are no dead messages.");
    top.press("\x1b[Z\x1b[Z");
    top.until("There are no ready messages: the next one is due in");
}

#[test]
fn a_queue_whose_messages_die_opens_at_its_dead() {
    let server = Server::start();
    ok(&server, &["create", "q", "--lease", "1ms", "--retries", "0"]);
    ok(&server, &["push", "q", "x", "--id", "held"]);
    server.ask(&["DQ.POP", "q"]);
    eventually("its lease has expired", || server.text(&["DQ.LEN", "q", "dead"]) == "1");
    ok(&server, &["push", "q", "x", "--id", "next"]);
    let mut top = Top::start(&server);
    eventually("it is dying", || top.line("q ").contains("messages die"));
    top.press(ENTER);
    top.until("DIED");
    eventually("its cause is shown", || top.line("held ").contains("(lease expired)"));
}

#[test]
fn deaths_before_its_start_are_shown() {
    let server = Server::start();
    for (queue, id) in [("a", "m"), ("q", "m")] {
        ok(&server, &["push", queue, "x", "--id", id, "--in", "1h"]);
    }
    ok(&server, &["bury", "q", "m"]);
    let top = Top::start(&server);
    eventually("it has died", || top.line("q ").ends_with("messages die"));
    assert!(top.line("a ").ends_with("open"), "{}", top.text());
}

#[test]
fn who_holds_messages_is_shown_and_released() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m", "GROUP", "g1"]);
    server.ask(&["DQ.POP", "q", "AS", "encoder-7", "LEASE", "3600000"]);
    let mut top = Top::start(&server);
    eventually("it is in flight", || top.line("q ").split_whitespace().nth(3) == Some("1"));
    top.press(ENTER);
    top.until_line("m ");
    assert!(["encoder-7", "g1"].iter().all(|part| top.line("m ").contains(part)), "{}", top.text());
    top.until("LEASE ENDS");
    top.press("c");
    top.until("Cancel m of q for good, although encoder-7 works on it?");
    top.press("n");
    top.press("w");
    top.until("encoder-7");
    top.until("Enter messages  r release");
    top.press("r");
    top.until("Release 1 message of q from encoder-7?");
    // What it takes after the question is not meant.
    server.ask(&["DQ.PUSH", "q", "x", "ID", "later"]);
    server.ask(&["DQ.POP", "q", "AS", "encoder-7", "LEASE", "3600000"]);
    top.press("y");
    top.until("released 1 message of encoder-7");
    assert!(ok(&server, &["get", "q", "later"]).contains("inflight"));
    ok(&server, &["cancel", "q", "later"]);
    top.until("No consumer holds a message.");
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    top.until("1 in flight with consumers that have no name");
}

#[test]
fn groups_are_shown_paused_and_resumed() {
    let server = Server::start();
    for (id, group) in [("a1", "a"), ("b1", "b"), ("b2", "b"), ("c1", "c")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "GROUP", group]);
    }
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "b", "FOR", "3600000"]);
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(1) == Some("3"));
    top.press(ENTER);
    top.until("o groups");
    top.press("o");
    // What somebody has to resume comes first; then what waits longest.
    let row = |place| top.text().lines().nth(place).unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let words = |place| -> Vec<String> { row(place) };
    eventually("the paused one comes first", || words(2).last().is_some_and(|name| name == "b"));
    assert!(words(2).join(" ").contains("0 paused, ends in 59m"), "{}", top.text());
    assert!(!words(2).join(" ").contains('…'), "{}", top.text());
    assert_eq!((&words(2)[0][..], &words(3)[0][..]), ("2", "1"), "{}", top.text());
    assert!(words(3).ends_with(&["0", "open", "c"].map(str::to_owned)), "{}", top.text());
    assert_eq!(words(4), ["0", "-", "1", "at", "its", "limit", "a"], "{}", top.text());
    // The messages of one.
    top.until("Enter messages  p resume");
    top.press(ENTER);
    top.until_line("b2 ");
    assert!(top.line("c1 ").is_empty() && top.text().contains("group b"), "{}", top.text());
    top.press(TAB);
    top.until("The group has no inflight messages.");
    top.press(ESCAPE);
    top.until_line("a1 ");
    // Changes.
    top.press("o");
    top.until("p resume");
    top.press("p");
    top.until("Resume group b of q?");
    top.press("y");
    top.until("resumed group b of q");
    top.until_gone("paused, ends");
    top.press("p");
    top.until("Pause group b of q?");
    top.press("y");
    top.until("paused group b of q");
    assert!(
        ok(&server, &["groups", "q"]).contains("b\t2\t0\t") && ok(&server, &["groups", "q"]).contains("until resumed")
    );
}

#[test]
fn the_cursor_stays_on_a_group_that_moves_up() {
    let server = Server::start();
    for group in ["a", "b"] {
        server.ask(&["DQ.PUSH", "q", "x", "GROUP", group]);
    }
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(1) == Some("2"));
    top.press(ENTER);
    top.until("o groups");
    top.press("o");
    let ends = |place: usize, end: &str| top.text().lines().nth(place).is_some_and(|line| line.ends_with(end));
    eventually("both are listed", || ends(2, " a") && ends(3, " b"));
    top.press(DOWN);
    top.press("p");
    top.until("Pause group b of q?");
    top.press("y");
    top.until("paused group b of q");
    let ends = |place: usize, end: &str| top.text().lines().nth(place).is_some_and(|line| line.ends_with(end));
    eventually("it comes first", || ends(2, " b"));
    top.press("p");
    top.until("Resume group b of q?");
}

#[test]
fn dead_messages_are_counted_and_redriven_by_cause() {
    let server = Server::start();
    for (id, error) in [("a", "timeout after 12ms"), ("b", "timeout after 99ms"), ("c", "no such user")] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
        ok(&server, &["bury", "q", id, "--error", error]);
    }
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").split_whitespace().nth(4) == Some("3"));
    top.press(ENTER);
    top.until_line("c ");
    top.until("e causes");
    top.press("e");
    top.until("timeout after #ms");
    top.press(ENTER);
    eventually("only those", || !top.line("a ").is_empty() && !top.line("b ").is_empty() && top.line("c ").is_empty());
    top.press("R");
    top.until("this key is for all, and only some are shown");
    // Back to all, and to the causes.
    top.press(ESCAPE);
    top.until_line("c ");
    top.press("e");
    top.until("timeout after #ms");
    // Pausing the queue has no place among the causes.
    top.press("pr");
    top.until("Redrive 2 dead messages of q with timeout after #ms?");
    top.press("y");
    top.until("redriven 2 messages of q");
    top.until_gone("timeout after #ms");
    top.until("no such user");
    assert!(ok(&server, &["get", "q", "c", "--json"]).contains("\"dead\""));
}

#[test]
fn a_change_without_a_server_says_what_became_of_it() {
    let mut server = Server::with(&["--appendonly", "yes"]);
    ok(&server, &["create", "q"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    server.kill();
    top.until("server lost, ");
    top.press("p");
    top.until("Pause q?");
    top.press("y");
    top.until("Pause q: failed: ");
    // Also when the server is back, until a key says that it was read.
    server.boot();
    top.until_gone("server lost");
    assert!(top.text().contains("Pause q: failed: "), "{}", top.text());
    top.press("k");
    top.until("q leave");
}

#[test]
fn lateness_is_that_of_the_last_deliveries() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "AT", "1700000000000"]);
    server.ask(&["DQ.POP", "q", "NOACK"]);
    let top = Top::start(&server);
    let late = || top.line("q ").split_whitespace().nth(8).unwrap_or_default().to_owned();
    eventually("nothing was delivered since", || late() == "-");
    // What is delivered before the first look is not known to be late.
    eventually("a prompt delivery is shown", || {
        server.ask(&["DQ.PUSH", "q", "x"]);
        server.ask(&["DQ.POP", "q", "NOACK"]);
        late().ends_with('s')
    });
    assert!(!late().contains('h'), "{}", top.text());
}

#[test]
fn a_json_payload_is_indented() {
    let server = Server::start();
    ok(&server, &["push", "q", r#"{"b":1.50,"a":[2]}"#, "--id", "m"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until_line("m ");
    top.press(ENTER);
    top.until("payload, 18 bytes\n{\n  \"b\": 1.50,\n  \"a\": [\n    2\n  ]\n}");
}

#[test]
fn a_closed_queue_is_opened() {
    let server = Server::start();
    ok(&server, &["create", "q"]);
    ok(&server, &["pause", "q", "in"]);
    let mut top = Top::start(&server);
    eventually("it is closed", || top.line("q ").ends_with("closed"));
    top.until("p resume");
    top.press("p");
    top.until("Resume q?");
    top.press("y");
    top.until("resumed q");
    ok(&server, &["push", "q", "x"]);
}

#[test]
fn the_last_line_has_the_keys_that_do_something() {
    let server = Server::start();
    for id in ["a", "b"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
    }
    ok(&server, &["bury", "q", "a"]);
    let mut top = Top::start(&server);
    top.until("R redrive  N run now");
    top.press(ENTER);
    top.until("c delete  r redrive  R all  X purge  p pause  e causes  Esc  ? keys");
    top.press("n");
    top.until("only delayed messages are run now");
    top.press("\t\t");
    top.until_line("b ");
    top.press("r");
    top.until("only dead messages are redriven");
    // Some keys later, the report is gone and the keys are back.
    top.press("c");
    top.until("Cancel b of q");
    top.press("x");
    top.until("c cancel  n run now  N all  X purge  p pause");
    top.press(TAB);
    top.until("There are no ready messages");
    eventually("no message, no keys", || top.text().ends_with("Tab state  i details  p pause  Esc back  ? keys"));
}

#[test]
fn empty_lists_say_why() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    ok(&server, &["push", "later", "x", "--in", "1h"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press("\x1b[F");
    top.press(ENTER);
    top.until("There are no ready messages: nothing was pushed to this queue yet.");
    top.press("\x1b[Z\x1b[Z");
    top.until("There are no done messages: they are not kept");
    top.press(ESCAPE);
    top.until_line("later ");
    top.press("/zzz\r");
    top.until("No queue has \"zzz\" in its name.");
}

#[test]
fn a_consumer_that_polls_is_known_by_its_deliveries() {
    let server = Server::start();
    for _ in 0..3 {
        server.ask(&["DQ.PUSH", "polled", "x", "AT", "1700000000000"]);
    }
    let mut top = Top::with(&server, (100, 24), "");
    eventually("nobody waits for them", || top.line("polled ").ends_with("no consumer"));
    server.ask(&["DQ.POP", "polled", "NOACK"]);
    eventually("one was taken", || top.line("polled ").ends_with("late"));
    top.press("q");
}

#[test]
fn queues_in_trouble_say_all_of_it() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "q", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PAUSE", "q"]);
    server.ask(&["DQ.PUSH", "served", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PUSH", "unserved", "x", "AT", "1700000000000"]);
    let mut top = Top::with(&server, (100, 24), "");
    eventually("both are shown", || top.line("q ").ends_with("full, paused"));
    eventually("nobody takes it", || top.line("unserved ").ends_with("no consumer"));
    assert!(top.line("served ").ends_with("open"), "{}", top.text());
    // What refuses messages comes first, then what is stuck.
    let lines = || top.text().lines().skip(3).take(3).map(|line| line[..2].to_owned()).collect::<Vec<_>>();
    eventually("trouble comes first", || lines() == ["q ", "un", "se"]);
    top.press(ENTER);
    top.until("q  full  paused");
}

#[test]
fn sorting_goes_to_the_first_line() {
    let server = Server::start();
    for (name, count) in [("a", 1), ("b", 2), ("c", 3)] {
        (0..count).for_each(|_| drop(server.ask(&["DQ.PUSH", name, "x"])));
    }
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("c ").split_whitespace().nth(1) == Some("3"));
    top.press("ss");
    eventually("the most come first", || top.text().lines().nth(3).is_some_and(|line| line.starts_with("c ")));
    top.press(ENTER);
    top.until("ready 3");
    top.press(ESCAPE);
    top.until_line("c ");
    top.press("S");
    eventually("the fewest come first", || top.text().lines().nth(3).is_some_and(|line| line.starts_with("a ")));
    top.press(ENTER);
    top.until("ready 1");
}

#[test]
fn whole_queues_are_redriven_run_and_purged() {
    let server = Server::start();
    for number in 0..25_000 / 500 {
        let ids: Vec<String> = (0..500).map(|id| format!("m{number}-{id}")).collect();
        let mut words = vec!["DQ.MPUSH", "q", "500"];
        words.extend(ids.iter().map(String::as_str));
        words.extend(["DELAY", "3600000"]);
        server.ask(&words);
    }
    let count = |name: &str| -> u64 {
        let info = ok(&server, &["info", "q"]);
        info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
    };
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(2) == Some("25,000"));
    top.press("N");
    top.until("Run 25,000 delayed messages of q now?");
    top.press("y");
    top.until("25,000 messages of q due now");
    assert_eq!((count("delayed\t"), count("ready\t")), (0, 25_000));
    server.ask(&["DQ.PUSH", "q", "x", "ID", "dead"]);
    server.ask(&["DQ.BURY", "q", "dead"]);
    eventually("it is dead", || top.line("q ").split_whitespace().nth(4) == Some("1"));
    top.press("R");
    top.until("Redrive 1 dead message of q?");
    top.press("y");
    top.until("redriven 1 message of q");
    eventually("it is ready", || top.line("q ").split_whitespace().nth(1) == Some("25,001"));
    top.press(ENTER);
    // The list says how many are ready, too.
    top.until("X purge");
    top.press("X");
    top.until("Purge 25,001 ready messages of q for good?");
    top.press("y");
    top.until("purged 25,001 ready messages of q");
    assert_eq!(count("ready\t"), 0);
}

#[test]
fn five_thousand_queues_are_sorted_and_filtered() {
    let server = Server::start();
    let client = server.client();
    for number in 0..5_000 {
        let queue = client.queue::<dq_client::Raw>(format!("q{number:04}"));
        queue.push(&dq_client::Raw(b"x".to_vec())).id("m").send().unwrap();
    }
    server.ask(&["DQ.BURY", "q3333", "m"]);
    let mut top = Top::with(&server, (200, 50), "");
    top.until("5,000 queues");
    top.press("s");
    top.until("q0045");
    top.press("\x1b[F");
    top.until("q4999");
    top.press("\x1b[H");
    top.until("q0000");
    top.press("ssss");
    // Also those that were never on the screen have been read.
    eventually("the dead one comes first", || top.text().lines().nth(3).is_some_and(|line| line.starts_with("q3333")));
    top.press("/");
    top.until("Filter:");
    top.press("4242");
    top.until("1 with \"4242\"");
    top.press(ENTER);
    top.press(ENTER);
    top.until("payloads 1 byte");
}

#[test]
fn a_lost_server_is_shown_and_recovers() {
    let mut server = Server::start();
    ok(&server, &["push", "before", "x"]);
    let mut top = Top::start(&server);
    top.until("before");
    server.kill();
    top.until("server lost, ");
    // Keys are answered meanwhile.
    top.press("?");
    top.until("Keys");
    top.press("?");
    server.boot();
    ok(&server, &["push", "after", "x"]);
    top.until("after");
    top.until_gone("server lost");
    top.until_gone("before");
    top.press("q");
    assert_eq!(top.ended(), "0");
}

#[test]
fn what_a_silent_server_told_last_is_shown_with_its_age() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let top = Top::start(&server);
    top.until_line("q ");
    let pid = server.info("server", "process_id");
    signal("-STOP", &pid);
    top.until("Waiting for the server. All this is ");
    assert!(!top.line("q ").is_empty(), "{}", top.text());
    signal("-CONT", &pid);
    top.until_gone("All this is ");
    top.until("q leave");
}

#[test]
fn the_terminal_is_given_back() {
    let server = Server::start();
    for end in ["q", "\x03", "TERM", "HUP"] {
        let mut top = Top::start(&server);
        assert!(top.screen.lock().unwrap().0.screen().alternate_screen());
        if end.len() > 1 {
            signal(&format!("-{end}"), top.read("pid").trim());
        } else {
            top.press(end);
        }
        assert_eq!(top.ended(), "0", "{end}");
    }
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let server = Server::start();
    let mut top = Top::start(&server);
    let pid = top.read("pid");
    // Without `script`, nobody has the other end.
    top.child.kill().unwrap();
    top.child.wait().unwrap();
    let is_there = || {
        let found = Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status();
        found.unwrap().success()
    };
    eventually("it ends", || !is_there());
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let top = Top::start(&server);
    top.until("STATE");
    top.resize(40, 10);
    top.until_gone("IN/s");
    eventually("ten lines", || {
        top.text().lines().count() == 10 && top.text().contains("READY") && top.text().contains("STATE")
    });
    top.resize(120, 30);
    top.until("IN/s");
    eventually("thirty lines", || top.text().lines().count() == 30);
}

#[test]
fn no_color_means_no_colours() {
    let server = Server::start();
    // The line of the cursor is reversed, so another one has to have the colour.
    ok(&server, &["push", "a", "x"]);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    server.ask(&["DQ.BURY", "q", "m"]);
    let has_colours = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).contains("\x1b[38;5;");
    for (variables, colours) in [("NO_COLOR=", true), ("NO_COLOR=1", false)] {
        let top = Top::with(&server, (80, 24), variables);
        eventually("it is dead", || top.line("q ").split_whitespace().nth(4) == Some("1"));
        assert_eq!(has_colours(top.bytes()), colours, "{variables}");
    }
}

#[test]
fn a_pipe_is_refused_and_says_what_to_use() {
    let server = Server::start();
    let ran = run(command(&server, &["top"]));
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
    assert!(ran.err.contains("terminal") && ran.err.contains("dqctl ls"), "{ran:?}");
    assert_eq!(run(command(&server, &["top", "--json"])).code, 2);
    let none = run(crate::dqctl::without_server(&["top", "-u", "redis://127.0.0.1:1"]));
    assert_eq!((none.code, none.err.lines().count()), (3, 1), "{none:?}");
}

#[test]
fn sigterm_ends_it_though_the_terminal_takes_no_output() {
    let server = Server::start();
    let top = Top::with(&server, (200, 60), "");
    let (pid, script) = (top.read("pid").trim().to_owned(), top.child.id().to_string());
    // The reader of the terminal stops.
    signal("-STOP", &script);
    let count = || {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
        io.lines().find(|line| line.starts_with("wchar")).unwrap_or_default().to_owned()
    };
    let mut columns = 200;
    eventually("a write is blocked", || {
        let before = count();
        columns ^= 1;
        top.resize(columns, 60);
        std::thread::sleep(std::time::Duration::from_millis(400));
        count() == before
    });
    signal("-TERM", &pid);
    eventually("it has ended", || !crate::work::is_alive(&pid));
    eventually("its exit code is known", || top.read("code").trim() == "0");
    eventually("the keys are as before", || top.read("after").contains(" icanon"));
}

#[test]
fn keys_that_find_nothing_say_so() {
    let server = Server::start();
    let mut top = Top::start(&server);
    top.press(ENTER);
    top.until("there is no queue here");
    server.ask(&["DQ.CREATE", "q"]);
    top.until_line("q ");
    top.press("r");
    top.until("open the queue first, with Enter");
    assert!(top.text().contains("STATE↓"), "{}", top.text());
    top.press("s");
    top.until("sorted by QUEUE");
    top.press("s");
    top.until("sorted by READY");
    top.until("READY↓");
    top.press("S");
    top.until("sorted by READY, reversed");
    top.until("READY↑");
    top.press("S5");
    top.until("sorted by DEAD");
    top.press("9");
    top.until("sorted by STATE");
    top.until("STATE↓");
    top.press(ENTER);
    top.until("There are no ready messages");
    // The keys of this page are shown, not what was said of the last one.
    top.until("Tab state");
    for key in ["n", "r", ENTER] {
        top.press("p");
        top.until("Pause q?");
        // No, and what the key found is said again.
        top.press("x");
        top.until_gone("Pause q?");
        top.press(key);
        top.until("there is no message here");
    }
}

#[test]
fn groups_that_hold_messages_are_no_missing_consumer() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "GROUP", "g", "AT", "1700000000000"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "g"]);
    let mut top = Top::start(&server);
    eventually("it is said", || top.line("q ").ends_with("groups held"));
    top.press(ENTER);
    top.until("q  groups held");
}

#[test]
fn a_setting_that_limits_nothing_says_so_in_a_message() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until_line("m ");
    top.press(ENTER);
    top.until("ttl");
    assert!(top.line("ttl").ends_with("no limit") && top.line("next").is_empty(), "{}", top.text());
}
