//! A server without the module is no server without queues.

use crate::dqctl::{command, dqctl};
use crate::http::get;
use crate::support::{eventually, free_port, Process, Server};
use std::process::Stdio;

#[test]
fn every_command_says_that_the_module_is_not_loaded() {
    let server = Server::without_module();
    let commands: [&[&str]; 15] = [
        &["ls"],
        &["info"],
        &["info", "q"],
        &["push", "q", "x"],
        &["peek", "q"],
        &["stats", "q"],
        &["dead", "q"],
        &["redrive", "q", "--where", "error~x"],
        &["schedule", "q"],
        &["consumers", "q"],
        &["dump", "q"],
        &["top"],
        &["work", "-q", "q", "--", "true"],
        &["load", "-"],
        &["import", "list", "jobs", "q"],
    ];
    for args in commands {
        let ran = dqctl(&server, args);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (3, "", 1), "{args:?}: {ran:?}");
        assert!(ran.err.contains("not loaded the module") && ran.err.contains("loadmodule"), "{args:?}: {ran:?}");
        assert!(ran.err.contains(&format!("127.0.0.1:{}", server.port())), "{args:?}: {ran:?}");
    }
}

#[test]
fn metrics_without_the_module_are_down() {
    let mut server = Server::without_module();
    let address = format!("127.0.0.1:{}", free_port());
    let args = ["export", "--listen", &address];
    let _export = Process(command(&server, &args).stderr(Stdio::null()).spawn().unwrap());
    eventually("it answers", || get(&address, "/healthz").is_some());
    let (status, text) = get(&address, "/healthz").unwrap();
    assert!(status == 503 && text.contains("not loaded the module"), "{status} {text}");
    assert!(get(&address, "/metrics").unwrap().1.contains("\ndq_up 0\n"));
    server.kill();
    server.boot();
    eventually("it is up", || get(&address, "/healthz").is_some_and(|(status, _)| status == 200));
    assert!(get(&address, "/metrics").unwrap().1.contains("\ndq_up 1\n"));
}
