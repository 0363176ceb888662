//! `dqctl top` on a terminal: `script` makes it, and a parser of its control sequences says what it shows.

mod findings;
mod list;
mod lost;
mod messages;
mod terminal;

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

    /// On a terminal of this size, with variables such as `NO_COLOR=1`.
    fn with(server: &Server, (columns, rows): (u16, u16), variables: &str) -> Top {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("top-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let line = format!(
            "cd '{}'; stty rows {rows} cols {columns}; tty > tty; \
             {variables} sh -c 'echo $$ > pid; exec \"{}\" top'; echo $? > code; stty -a > after",
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

    fn is_alive(&self) -> bool {
        // That of a process that nobody has waited for is empty.
        let line = std::fs::read_to_string(format!("/proc/{}/cmdline", self.read("pid").trim())).unwrap_or_default();
        line.contains("dqctl")
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
        if self.is_alive() {
            let _ = Command::new("kill").args(["-9", self.read("pid").trim()]).stderr(Stdio::null()).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn size(size: u16) -> NonZero<u16> {
    NonZero::new(size).unwrap()
}

pub fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().unwrap().success());
}

const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const DOWN: &str = "\x1b[B";
const TAB: &str = "\t";
