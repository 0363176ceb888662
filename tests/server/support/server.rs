//! A real server with the module loaded, in its own directory and on its own port. On drop it is stopped and its log is
//! checked.

use super::client::{Client, Protocol};
use super::clock::Clock;
use super::limit::Limit;
use super::place::test_dir;
use super::power::Disk;
use super::preload::{library, preloading, PRELOAD};
use super::reply::Reply;
use super::wait::{eventually, patience};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::Instant;

#[path = "../../../src/module_api/alarms.rs"]
mod alarms;

/// Texts that never occur in the log of a healthy server: the alarms of the module, and those of servers.
const ALARMS: [&str; 6] = [alarms::PANIC, alarms::BUG, "panicked", "BUG REPORT", "Guru Meditation", "CRITICAL"];

/// The variable that names the place at which a debug build of the module panics.
const PLANT: &str = "DQ_PLANTED_PANIC";

/// How often a start is repeated if another process took the port in the meantime.
const PORT_ATTEMPTS: usize = 20;

/// A running server. On drop it is stopped, and the test fails if its log contains an alarm.
pub struct Server {
    child: Child,
    limit: Limit,
    port: u16,
    dir: PathBuf,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    /// The module that it loads at its next start.
    module: &'static Path,
    /// Whether the test expects an alarm in the log.
    alarm_wanted: bool,
}

impl Server {
    /// Starts a server that saves nothing to disk.
    pub fn start() -> Server {
        Server::with(&[])
    }

    /// Starts a server with further arguments.
    pub fn with(args: &[&str]) -> Server {
        Server::in_environment(Vec::new(), args)
    }

    /// Starts a server that uses `clock`.
    pub fn with_clock(clock: &Clock, args: &[&str]) -> Server {
        Server::in_environment(clock.environment(), args)
    }

    /// Starts a server on a disk whose power can be cut.
    pub fn on_disk(disk: &Disk, args: &[&str]) -> Server {
        let server = Server::in_environment(disk.environment(), args);
        disk.settle(&server);
        server
    }

    /// Starts a server whose module panics at a certain place; its log must contain an alarm at the end. Returns `None`
    /// if the module is not a debug build, which alone supports this.
    pub fn with_panic_in(place: &str, args: &[&str]) -> Option<Server> {
        // A release build does not know the variable.
        let code = std::fs::read(module()).expect("the module");
        if !code.windows(PLANT.len()).any(|bytes| bytes == PLANT.as_bytes()) {
            return None;
        }
        let mut server = Server::in_environment(vec![(PLANT.to_owned(), place.to_owned())], args);
        server.alarm_wanted = true;
        Some(server)
    }

    /// Whether the log contains an alarm already.
    pub fn is_alarmed(&self) -> bool {
        alarm_in(&read_log(&self.dir)).is_some()
    }

    /// Starts a server whose forks fail.
    pub fn without_fork(args: &[&str]) -> Server {
        let library = library("no_fork").to_string_lossy().into_owned();
        Server::in_environment(vec![(PRELOAD.to_owned(), library)], args)
    }

    /// A fresh server in which one of the calls of a precise timer fails: `timerfd_create` or `timerfd_settime`.
    pub fn without_timerfd(call: &str) -> Server {
        let library = library("no_timerfd").to_string_lossy().into_owned();
        Server::in_environment(vec![(PRELOAD.to_owned(), library), ("DQ_NO_TIMERFD".to_owned(), call.to_owned())], &[])
    }

    /// Starts a server whose module writes the next version of the format when the setting `COLOUR` is used.
    pub fn of_the_next_format(args: &[&str]) -> Server {
        let mut server = Server::with(args);
        server.kill9();
        server.change_module();
        server.boot();
        server
    }

    fn in_environment(environment: Vec<(String, String)>, args: &[&str]) -> Server {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("server-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = test_dir().join(name);
        std::fs::create_dir_all(&dir).expect("a directory for the server");
        // The file is empty at first; `CONFIG REWRITE` writes to it.
        std::fs::write(dir.join("conf"), "").expect("a file for the configuration");
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let module = module();
        let (child, port) = launch(&dir, &args, &environment, module);
        let limit = Limit::new(child.id());
        Server { child, limit, port, dir, args, environment, module, alarm_wanted: false }
    }

    /// Starts a server with an AOF, which is synced to disk before each reply.
    pub fn with_aof(args: &[&str]) -> Server {
        let mut all = vec!["--appendonly", "yes", "--appendfsync", "always"];
        all.extend_from_slice(args);
        Server::with(&all)
    }

    /// Starts a replica of `master`, and waits until it has the data.
    pub fn replica_of(master: &Server, args: &[&str]) -> Server {
        let port = master.port.to_string();
        let mut all = vec!["--replicaof", "127.0.0.1", &port];
        all.extend_from_slice(args);
        let replica = Server::with(&all);
        let mut client = replica.client();
        eventually("the replica's link is up", || client.info("replication", "master_link_status") == "up");
        replica
    }

    /// Returns a connection in RESP2.
    pub fn client(&self) -> Client {
        self.client_with(Protocol::Resp2)
    }

    /// Returns a connection in the given protocol.
    pub fn client_with(&self, protocol: Protocol) -> Client {
        Client::connect(self.port, protocol).expect("a connection")
    }

    /// The port of the server, which changes with each start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process. `STOP` suspends it until `CONT`.
    pub fn signal(&self, name: &str) {
        // This is the kill of the shell, because the program `kill` is not installed everywhere.
        let kill = format!("kill -s {name} {}", self.process());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("a shell");
        assert!(status.success(), "{kill}: {status}");
    }

    /// The directory of the server's files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The log so far.
    pub fn log(&self) -> String {
        read_log(&self.dir)
    }

    /// Clears the log, because the test expected the alarms in it.
    pub fn forget_log(&self) {
        std::fs::write(self.dir.join("log"), "").expect("an empty log");
    }

    /// Shuts the server down with a save of an RDB file, and starts it again on the same directory.
    pub fn restart_from_rdb(&mut self) {
        self.shut_down("SHUTDOWN SAVE");
        self.boot();
    }

    /// Shuts the server down and starts it again on the same directory, so that it replays its AOF.
    pub fn restart_from_aof(&mut self) {
        self.shut_down("SHUTDOWN NOSAVE");
        self.boot();
    }

    /// Kills the server, so that it can neither save nor reply.
    pub fn kill9(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// Starts the server again after it ended.
    pub fn boot(&mut self) {
        (self.child, self.port) = launch(&self.dir, &self.args, &self.environment, self.module);
        self.limit.goes_on(self.child.id());
    }

    /// Makes the server load the module of the next format when it starts again, or the module under test if it loads
    /// that of the next format now.
    pub fn change_module(&mut self) {
        self.module = if self.module == module() { next_module() } else { module() };
    }

    /// Tries to start the server again after it ended, and waits until it has given up.
    pub fn boot_in_vain(&mut self) {
        self.child = spawn(&self.dir, free_port(), &self.args, &self.environment, self.module);
        self.limit.goes_on(self.child.id());
        self.until_it_ends();
    }

    /// Waits until the process has ended by itself.
    pub fn until_it_ends(&mut self) {
        let child = &mut self.child;
        eventually("the server ends", || child.try_wait().expect("its status").is_some());
    }

    fn shut_down(&mut self, how: &str) {
        // If the shutdown succeeds, the connection is closed without a reply.
        if let Ok(reply) = self.client().try_ask(how) {
            panic!("{how}: {reply:?}");
        }
        self.until_it_ends();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let log = read_log(&self.dir);
        let alarm = alarm_in(&log);
        if std::thread::panicking() {
            eprintln!("{} keeps what the server left; its log ends:\n{}", self.dir.display(), tail(&log));
        } else if alarm.is_some() != self.alarm_wanted {
            panic!("the log in {} says {alarm:?}:\n{}", self.dir.display(), tail(&log));
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Runs a test on a fresh server in RESP2, and on another in RESP3.
pub fn in_both_protocols(test: impl Fn(&mut Client)) {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = Server::start();
        test(&mut server.client_with(protocol));
    }
}

/// Starts a server on a free port and waits until it replies.
fn launch(dir: &Path, args: &[String], environment: &[(String, String)], module: &Path) -> (Child, u16) {
    for _ in 0..PORT_ATTEMPTS {
        let port = free_port();
        let mut child = spawn(dir, port, args, environment, module);
        if answers(&mut child, port, dir) {
            return (child, port);
        }
    }
    panic!("no port was free {PORT_ATTEMPTS} times in a row");
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// The port of a cluster node for the cluster bus. The default is 10,000 above its port, which may be too high.
fn bus_port(args: &[String]) -> Vec<String> {
    let in_cluster = args.iter().any(|arg| arg == "--cluster-enabled");
    in_cluster.then(|| ["--cluster-port".to_owned(), free_port().to_string()]).into_iter().flatten().collect()
}

fn spawn(dir: &Path, port: u16, args: &[String], environment: &[(String, String)], module: &Path) -> Child {
    let out = std::fs::File::create(dir.join("stdout")).expect("a file for the output");
    Command::new(server_binary())
        .arg(dir.join("conf"))
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--dir", &dir.to_string_lossy()])
        .args(["--logfile", &dir.join("log").to_string_lossy()])
        .args(["--save", "", "--appendonly", "no"])
        .args(["--enable-debug-command", "yes"])
        .args(["--propagation-error-behavior", "panic"])
        .args(["--repl-diskless-sync-delay", "0"])
        .args(["--loadmodule", &module.to_string_lossy()])
        .args(bus_port(args))
        .args(args)
        .envs(preloading(environment))
        .stdin(Stdio::null())
        .stdout(out.try_clone().expect("the file"))
        .stderr(out)
        .spawn()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", server_binary()))
}

/// Returns true once this process replies and has loaded its data, and false if its port was taken.
fn answers(child: &mut Child, port: u16, dir: &Path) -> bool {
    let deadline = Instant::now() + patience();
    loop {
        if let Some(status) = child.try_wait().expect("its status") {
            let log = read_log(dir);
            let last_start = log.rfind("oO0OoO0OoO0Oo").map_or(log.as_str(), |start| &log[start..]);
            if last_start.contains("ddress already in use") || last_start.contains("Failed listening") {
                return false;
            }
            let out = std::fs::read_to_string(dir.join("stdout")).unwrap_or_default();
            panic!("the server ended at its start ({status}):\n{out}\n{}", tail(&log));
        }
        if let Ok(mut client) = Client::connect(port, Protocol::Resp2) {
            // The data is loaded, and no other server has taken the port.
            let loaded = client.try_ask("PING").is_ok_and(|reply| reply == Reply::Simple("PONG".into()));
            let own = format!("process_id:{}\r\n", child.id());
            if loaded && client.try_ask("INFO server").is_ok_and(|info| info.text().contains(&own)) {
                return true;
            }
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the server does not answer:\n{}", tail(&read_log(dir)));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The server under test.
pub fn server_binary() -> String {
    let from_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = |name: &&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        ["redis-server", "valkey-server"].into_iter().find(found).unwrap_or("redis-server").to_owned()
    };
    std::env::var("DQ_SERVER").unwrap_or_else(|_| from_path())
}

/// The module under test: `DQ_MODULE`, or the one that cargo builds here, which takes a moment if it is up to date.
pub fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        let named = std::env::var_os("DQ_MODULE").map(|named| Path::new(env!("CARGO_MANIFEST_DIR")).join(named));
        named.unwrap_or_else(|| built(&["--lib"], "libdq"))
    })
}

/// A module that reads and writes the next version of the format. It is built with the features that the tests have
/// given to the crates that both use, so that only the module and the core are compiled again.
pub fn next_module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    let target = ["--workspace", "--example", "dq_next", "--features", "dq/next-format"];
    MODULE.get_or_init(|| built(&target, "examples/libdq_next"))
}

/// Builds a module. Returns the file, of which cargo makes the name without its ending.
fn built(target: &[&str], name: &str) -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--locked", "--quiet"]).args(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo").success(), "the module does not build");
    // .../target/PROFILE/deps/server-HASH
    let exe = std::env::current_exe().expect("this test's own path");
    let folder = exe.ancestors().nth(2).expect("the target directory");
    folder.join(format!("{name}.{}", if cfg!(target_os = "macos") { "dylib" } else { "so" }))
}

/// The first alarm in a log.
fn alarm_in(log: &str) -> Option<&'static str> {
    ALARMS.into_iter().find(|alarm| log.contains(alarm))
}

fn read_log(dir: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(dir.join("log")).unwrap_or_default()).into_owned()
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
