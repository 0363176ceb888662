//! Three sentinels that watch a master.

use super::client::{Client, Protocol};
use super::preload::preloading;
use super::reply::Reply;
use super::roaming::Roamer;
use super::server::{free_port, server_binary, Server};
use super::wait::eventually;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The name by which the sentinels know the master.
const WATCHED: &str = "watched";

/// How long, in ms, a sentinel may be held up. After two seconds, a slow write of its configuration for instance, it
/// would do nothing for 30 seconds (TILT), as a test cannot wait for such a pause of each sentinel after each write.
const TILT_TRIGGER_MS: u32 = 600_000;

/// Three sentinels, which are stopped on drop.
pub struct Sentinels {
    children: Vec<(Child, u16)>,
    dir: PathBuf,
}

impl Sentinels {
    /// Starts three sentinels for a master, and waits until they know each other and its replica. They consider the
    /// master down after `down_after_ms` of silence.
    pub fn watch(master: &Server, down_after_ms: u32) -> Sentinels {
        Sentinels::watch_at(master, master.port(), 1, down_after_ms)
    }

    /// The same for a master that is reached at another port and has this many replicas.
    pub fn watch_at(master: &Server, port: u16, replicas: usize, down_after_ms: u32) -> Sentinels {
        let dir = master.dir().with_extension("sentinels");
        std::fs::create_dir_all(&dir).expect("a directory for the sentinels");
        let mut sentinels = Sentinels { children: Vec::new(), dir };
        while sentinels.children.len() < 3 {
            sentinels.start(port, down_after_ms);
        }
        let replicas = replicas.to_string();
        for (_, port) in &sentinels.children {
            let mut c = Client::connect(*port, Protocol::Resp2).expect("a connection");
            eventually("they know of the others and of the replicas", || {
                let known = c.ask(format!("SENTINEL MASTER {WATCHED}")).fields();
                known.text("num-other-sentinels") == "2" && known.text("num-slaves") == replicas
            });
            // A replica counts as useless if its master was silent for long before a sentinel called that master down,
            // which none does in TILT: it may have begun with the first write of its configuration.
            eventually("no sentinel is in TILT", || c.info("sentinel", "sentinel_tilt") == "0");
            eventually("they know how the replicas are", || {
                c.ask(format!("SENTINEL REPLICAS {WATCHED}")).items().iter().all(|replica| {
                    let replica = replica.fields();
                    replica.text("flags") == "slave" && replica.text("master-link-status") == "ok"
                })
            });
        }
        sentinels
    }

    /// The address of the master, according to the first sentinel that replies.
    pub fn master(&self) -> Option<u16> {
        master_by(&self.ports())
    }

    /// Makes the sentinels replace the master now, as when it has been silent for too long. Returns the port of the new
    /// one when all sentinels know it.
    pub fn replace_master(&self) -> u16 {
        let (ports, old) = (self.ports(), self.master());
        let mut leader = Client::connect(ports[0], Protocol::Resp2).expect("a connection");
        // It refuses while an earlier failover goes on, and until it has heard from a replica.
        eventually("a sentinel begins", || !leader.ask(format!("SENTINEL FAILOVER {WATCHED}")).is_error());
        let known = |port: &u16| master_by(&[*port]).filter(|master| Some(*master) != old);
        eventually("all sentinels know the new master", || ports.iter().all(|port| known(port).is_some()));
        known(&ports[0]).expect("the new master")
    }

    /// A client that asks the sentinels where the master is.
    pub fn roamer(&self) -> Roamer {
        let ports = self.ports();
        Roamer::new(move || master_by(&ports))
    }

    fn ports(&self) -> Vec<u16> {
        self.children.iter().map(|(_, port)| *port).collect()
    }

    fn start(&mut self, master: u16, down_after_ms: u32) {
        let port = free_port();
        let conf = self.dir.join(format!("{port}.conf"));
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nlogfile {port}.log\n\
             sentinel monitor {WATCHED} 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds {WATCHED} {down_after_ms}\n\
             sentinel failover-timeout {WATCHED} 10000\n",
            self.dir.display()
        );
        std::fs::write(&conf, text).expect("a file for the configuration");
        let mut child = Command::new(server_binary())
            .arg(&conf)
            .arg("--sentinel")
            .envs(preloading(&[]))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a sentinel starts");
        let own = format!("process_id:{}\r\n", child.id());
        let mut ended = false;
        eventually("the sentinel answers", || {
            // The sentinel exits if another process took its port in the meantime.
            ended = child.try_wait().expect("its status").is_some();
            let info = Client::connect(port, Protocol::Resp2).and_then(|mut c| c.try_ask("INFO server"));
            ended || info.is_ok_and(|info| matches!(&info, Reply::Bulk(_)) && info.text().contains(&own))
        });
        if !ended {
            let mut c = Client::connect(port, Protocol::Resp2).expect("a connection");
            c.ask(format!("SENTINEL DEBUG tilt-trigger {TILT_TRIGGER_MS}")).ok();
            self.children.push((child, port));
        }
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("{} keeps what the sentinels left", self.dir.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

fn master_by(sentinels: &[u16]) -> Option<u16> {
    let ask = |port: &u16| {
        let mut c = Client::connect(*port, Protocol::Resp2).ok()?;
        match c.try_ask(format!("SENTINEL GET-MASTER-ADDR-BY-NAME {WATCHED}")).ok()? {
            Reply::Array(address) => address[1].text().parse().ok(),
            _ => None,
        }
    };
    sentinels.iter().find_map(ask)
}
