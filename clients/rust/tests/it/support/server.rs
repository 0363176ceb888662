//! Real servers with the module, each in a directory of its own and on a free port of the loopback interface.

use super::place::test_dir;
use super::wait::{eventually, patience};
use dq_client::blocking::Client;
use dq_client::{cmd, Value};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::Instant;

/// A running server. It ends with the test.
pub struct Server {
    child: Child,
    port: u16,
    dir: PathBuf,
    args: Vec<String>,
}

impl Server {
    /// Starts a server that saves nothing to disk.
    pub fn start() -> Server {
        Server::with(&[])
    }

    /// Starts a server with further arguments. It keeps its port over restarts.
    pub fn with(args: &[&str]) -> Server {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("client-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = test_dir().join(name);
        let args: Vec<String> = args.iter().map(|arg| (*arg).replace("DIR", &dir.to_string_lossy())).collect();
        for _ in 0..20 {
            // A server whose port was taken meanwhile has removed it.
            std::fs::create_dir_all(&dir).expect("a directory for the server");
            std::fs::write(dir.join("conf"), "").expect("a file for the configuration");
            let port = free_port();
            let child = spawn(&dir, port, &args, true);
            let mut server = Server { child, port, dir: dir.clone(), args: args.clone() };
            if server.answers() {
                return server;
            }
        }
        panic!("no port was free twenty times in a row");
    }

    /// Starts a server without the module.
    pub fn without_module() -> Server {
        let mut server = Server::with(&[]);
        server.kill();
        let (port, dir) = (server.port, server.dir.display());
        let text = format!("port {port}\nbind 127.0.0.1\ndir {dir}\nsave \"\"\nlogfile {dir}/log\n");
        std::fs::write(server.dir.join("conf"), text).expect("a file for the configuration");
        server.child = spawn(&server.dir, port, &server.args, false);
        eventually("the server answers", || server.try_ask(&["PING"]).is_ok());
        server
    }

    /// Starts a program that is no server of keys: a sentinel.
    pub fn sentinel(configuration: &str) -> Server {
        let mut server = Server::with(&[]);
        server.kill();
        let port = server.port;
        let text = format!("port {port}\nbind 127.0.0.1\ndir {}\n{configuration}", server.dir.display());
        std::fs::write(server.dir.join("conf"), text).expect("a file for the configuration");
        server.args = vec!["--sentinel".to_owned()];
        server.child = spawn(&server.dir, port, &server.args, false);
        eventually("the sentinel answers", || server.try_ask(&["PING"]).is_ok());
        // A sentinel that a slow write to a disk holds up for two seconds would do nothing for the next 30 (TILT).
        server.ask(&["SENTINEL", "DEBUG", "tilt-trigger", "600000"]);
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn client(&self) -> Client {
        Client::open(&self.url()).expect("a client")
    }

    /// Sends a command on a connection of its own.
    pub fn try_ask(&self, words: &[&str]) -> Result<Value, dq_client::Error> {
        // A server that writes to a slow disk is silent for seconds.
        let options = dq_client::Options::from_url(&self.url())?.retry_for(std::time::Duration::ZERO);
        let options = options.connect_timeout(patience()).response_timeout(patience());
        let client = Client::with(options)?;
        let server = client.servers()?.remove(0);
        let (name, rest) = words.split_first().expect("a command");
        client.call_on(&server, cmd(name).arg(rest))
    }

    #[track_caller]
    pub fn ask(&self, words: &[&str]) -> Value {
        self.try_ask(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The reply as text.
    #[track_caller]
    pub fn text(&self, words: &[&str]) -> String {
        match self.ask(words) {
            Value::BulkString(bytes) => String::from_utf8(bytes).expect("text"),
            Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
            Value::Int(number) => number.to_string(),
            Value::Okay => "OK".to_owned(),
            other => panic!("{words:?}: {other:?}"),
        }
    }

    /// A field of `INFO`.
    pub fn info(&self, section: &str, field: &str) -> String {
        let info = self.text(&["INFO", section]);
        let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {field} in {info}"))
    }

    /// Waits until this many clients are blocked in a pop.
    pub fn until_blocked(&self, clients: usize) {
        let wanted = clients.to_string();
        eventually("clients are blocked", || self.info("dq", "dq_blocked_clients") == wanted);
    }

    /// Closes the connections of all clients but the one that asks.
    pub fn cut(&self) {
        let _ = self.try_ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }

    /// Sends the server a signal, such as `STOP` or `CONT`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -s {name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Kills the server, so that it can neither save nor reply.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// Starts the server again, on the same port and directory.
    pub fn boot(&mut self) {
        let end = Instant::now() + patience();
        loop {
            self.child = spawn(&self.dir, self.port, &self.args, true);
            if self.answers() {
                return;
            }
            assert!(Instant::now() < end, "the port of the server is taken");
        }
    }

    /// False if the port was taken.
    fn answers(&mut self) -> bool {
        let end = Instant::now() + patience();
        let own = format!("process_id:{}\r\n", self.child.id());
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                let last_start = log.rfind("oO0OoO0OoO0Oo").map_or(log.as_str(), |start| &log[start..]);
                if last_start.contains("ddress already in use") || last_start.contains("Failed listening") {
                    return false;
                }
                panic!("the server ended at its start ({status}):\n{log}");
            }
            let info = self.try_ask(&["INFO", "server"]);
            let info = match &info {
                Ok(Value::BulkString(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
                Ok(Value::VerbatimString { text, .. }) => text.clone(),
                _ => String::new(),
            };
            if info.contains(&own) && self.try_ask(&["DBSIZE"]).is_ok() {
                return true;
            }
            assert!(Instant::now() < end, "the server does not answer");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{} keeps what the server left", self.dir.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Runs a test with a client of RESP2 and with one of RESP3.
pub fn in_both_protocols(test: impl Fn(Client)) {
    for protocol in [2, 3] {
        let server = Server::start();
        test(Client::open(&format!("{}?protocol={protocol}", server.url())).expect("a client"));
    }
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn spawn(dir: &Path, port: u16, args: &[String], with_module: bool) -> Child {
    let mut command = Command::new(binary());
    command.arg(dir.join("conf"));
    if with_module {
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.args(["--dir", &dir.to_string_lossy(), "--logfile", &dir.join("log").to_string_lossy()]);
        command.args(["--repl-diskless-sync-delay", "0", "--loadmodule", &module().to_string_lossy()]);
        if args.iter().any(|arg| arg == "--cluster-enabled") {
            command.args(["--cluster-port", &free_port().to_string()]);
        }
    }
    let out = std::fs::File::create(dir.join("stdout")).expect("a file for the output");
    command.args(args).stdin(Stdio::null()).stdout(out.try_clone().expect("the file")).stderr(out);
    command.spawn().unwrap_or_else(|error| panic!("{} does not start: {error}", binary()))
}

/// The server under test: `DQ_SERVER`, or the one in the PATH.
fn binary() -> String {
    let from_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = |name: &&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        ["redis-server", "valkey-server"].into_iter().find(found).unwrap_or("redis-server").to_owned()
    };
    std::env::var("DQ_SERVER").unwrap_or_else(|_| from_path())
}

/// The module under test: `DQ_MODULE`, or the one that cargo builds here, which takes a moment if it is up to date.
fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        // The tests of dqctl include this file too, and its folder is less deep.
        let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let root = above.find(|dir| dir.join("Cargo.lock").is_file()).expect("the workspace");
        if let Some(named) = std::env::var_os("DQ_MODULE") {
            return root.join(named);
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--locked", "--lib", "--package", "dq", "--quiet"]).current_dir(root);
        assert!(build.status().expect("cargo").success(), "the module does not build");
        // .../target/tmp
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
        let name = format!("libdq.{}", if cfg!(target_os = "macos") { "dylib" } else { "so" });
        target.join("debug").join(name)
    })
}
