//! Loading the module: what the log says if a server cannot load it.

use crate::support::{eventually, module, server_binary, Server};
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts a server that cannot start, and returns its log.
fn log_of_a_failed_start(args: &[&str]) -> String {
    let server = Server::start(); // only its directory is used
    let log = server.dir().join("failed");
    let socket = Path::new("/tmp").join(format!("dq-loading-{}-{}.sock", std::process::id(), server.port()));
    let mut child = Command::new(server_binary())
        .args(["--port", "0", "--save", "", "--logfile", &log.to_string_lossy()])
        .args(["--unixsocket", &socket.to_string_lossy()])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the server gives up", || child.try_wait().unwrap().is_some());
    assert!(!child.wait().unwrap().success());
    std::fs::read_to_string(log).unwrap()
}

#[test]
fn a_second_load_says_that_dq_is_loaded_already() {
    let path = module().to_string_lossy().into_owned();
    let log = log_of_a_failed_start(&["--loadmodule", &path, "--loadmodule", &path]);
    assert!(log.contains("dq is loaded already: remove one of the two loadmodule lines"), "{log}");

    let server = Server::with(&["--enable-module-command", "yes"]);
    let mut c = server.client();
    assert!(c.ask(format!("MODULE LOAD {path}")).is_error());
    assert!(server.log().contains("dq is loaded already"), "{}", server.log());
    c.push("q payload");
    assert_eq!(c.pop("q").len(), 1, "the loaded module works on");
}

#[test]
fn an_argument_of_the_module_is_refused_with_what_to_write() {
    let path = module().to_string_lossy().into_owned();
    let log = log_of_a_failed_start(&["--loadmodule", &path, "lease", "5"]);
    assert!(log.contains("dq cannot be loaded: it takes no arguments; its settings are the dq.* lines"), "{log}");
}

#[test]
fn a_bad_setting_is_refused_with_its_name() {
    let path = module().to_string_lossy().into_owned();
    for value in ["0", "soon"] {
        let log = log_of_a_failed_start(&["--loadmodule", &path, "--dq.default-lease", value]);
        assert!(log.contains("dq.default-lease"), "{value}: {log}");
    }
    // Redis 7.0 does not name the setting that it does not know.
    let log = log_of_a_failed_start(&["--loadmodule", &path, "--dq.default-leas", "5"]);
    assert!(log.contains("Module Configuration detected without loadmodule directive"), "{log}");
}

#[test]
fn a_dump_that_an_empty_aof_would_hide_is_named_in_the_log() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q payload ID m");
    c.ask("SAVE").ok();
    let dir = server.dir().to_string_lossy().into_owned();
    let beside = |args: &[&str]| Server::with(&[&["--dir", &dir], args].concat());
    let warning = "the server does not load dump.rdb, and its next save overwrites it";
    let loaded = beside(&["--appendonly", "no"]);
    assert_eq!(loaded.client().len("q"), 1);
    assert!(!loaded.log().contains(warning), "{}", loaded.log());
    let empty = beside(&["--appendonly", "yes"]);
    assert_eq!(empty.client().ask("DBSIZE").int(), 0);
    assert!(empty.log().contains(warning), "{}", empty.log());
    // Now there is an AOF, which is loaded.
    let again = beside(&["--appendonly", "yes"]);
    assert!(!again.log().contains(warning), "{}", again.log());
}

#[test]
fn a_server_that_decides_nothing_by_time_warns_in_its_log() {
    let warning = "# <dq> dq.allow-effects is yes: until it is no again, this server decides nothing by time";
    let left_on = Server::with(&["--dq.allow-effects", "yes"]);
    assert!(left_on.log().contains(warning), "{}", left_on.log());
    let server = Server::start();
    assert!(!server.log().contains(warning));
    server.client().configure("dq.allow-effects", "yes");
    assert!(server.log().contains(warning), "{}", server.log());
}
