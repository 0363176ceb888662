//! A full disk: the server reports it, nothing is corrupted, and work continues when there is space again.

use crate::support::{eventually, Server};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small disk of its own, for as long as the test runs.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Returns `None` if this user may not mount one.
    fn mount(name: &str) -> Option<SmallDisk> {
        let path = std::env::temp_dir().join(format!("dq-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&path).status();
        mounted.is_ok_and(|status| status.success()).then_some(SmallDisk(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn work_goes_on_when_a_full_disk_has_room_again() {
    let Some(disk) = SmallDisk::mount("full-disk") else {
        return eprintln!("no small disk can be mounted here: not tested");
    };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 2_000_000]).expect("the disk is empty");
    let at = disk.path().to_string_lossy().into_owned();
    let mut server = Server::with_aof(&["--dir", &at, "--appendfsync", "everysec"]);
    let mut c = server.client();
    let mut pushed = Vec::new();
    let payload = "x".repeat(20_000);
    let mut refusal = String::new();
    eventually("the disk is full", || {
        let reply = c.ask(format!("DQ.PUSH q {payload}"));
        if reply.is_error() {
            refusal = reply.error().to_owned();
            return true;
        }
        pushed.push(reply.text());
        false
    });
    assert!(refusal.starts_with("MISCONF"), "{refusal}");
    // Reads work; writes are refused and change nothing.
    let digest = c.digest("q");
    assert!(c.ask("DQ.POP q").is_error());
    assert!(c.ask("DQ.PURGE q").is_error());
    assert_eq!(c.len("q"), pushed.len() as i64);
    assert_eq!(c.digest("q"), digest);

    std::fs::remove_file(&ballast).expect("there was one");
    eventually("there is room", || !c.ask("DQ.POP q COUNT 10 LEASE 600000").is_error());
    c.push("q x ID after");
    let digest = c.digest("q");
    eventually("all is on disk", || c.info("persistence", "aof_last_write_status") == "ok");
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.len("q inflight"), 10);
    for id in &pushed {
        assert_ne!(c.state("q", id), "absent");
    }
}

#[test]
fn a_snapshot_that_does_not_fit_fails_and_changes_nothing() {
    let Some(disk) = SmallDisk::mount("full-snapshot") else {
        return eprintln!("no small disk can be mounted here: not tested");
    };
    let at = disk.path().to_string_lossy().into_owned();
    let server = Server::with(&["--dir", &at, "--rdbcompression", "no"]);
    let mut c = server.client();
    for _ in 0..300 {
        c.push(format!("q {}", "x".repeat(20_000)));
    }
    let digest = c.digest("q");
    assert!(c.ask("SAVE").is_error());
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.pop("q COUNT 250 NOACK").len(), 250);
    c.ask("SAVE").ok();
}
