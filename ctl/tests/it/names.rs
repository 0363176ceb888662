//! Names of queues and ids that are no text.

use crate::dqctl::{command, dqctl, json, ok, on_terminal, run};
use crate::support::Server;
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_name_of_any_bytes_is_shown_as_commands_take_it() {
    let server = Server::start();
    let mut push = command(&server, &["push"]);
    push.arg(OsStr::from_bytes(b"images:\xff\xfe")).args(["x", "--id", "m"]);
    assert_eq!(run(push).out, "m\n");
    let listed = ok(&server, &["ls"]);
    let name = listed.split('\t').next().unwrap();
    assert_eq!(name, r"images:\xff\xfe");
    for args in [&["info", name][..], &["get", name, "m"], &["peek", name], &["consumers", name], &["dump", name]] {
        ok(&server, args);
    }
    let listed = json(&server, &["ls"]).remove(0);
    assert_eq!(
        (&listed["queue"], &listed["queue-base64"]),
        (&json!("images:\u{fffd}\u{fffd}"), &json!("aW1hZ2VzOv/+"))
    );
    ok(&server, &["pause", name]);
    let found = dqctl(&server, &["doctor"]).out;
    assert!(found.contains(r"queue images:\xff\xfe") && found.contains(r"dqctl resume 'images:\xff\xfe'"), "{found}");
    let missing = dqctl(&server, &["info", r"other:\xff"]);
    assert!(missing.code == 1 && missing.err.contains(r"there is no queue other:\xff"), "{missing:?}");
}

#[test]
fn an_id_of_any_bytes_is_shown_as_it_is_typed() {
    let server = Server::start();
    let id = r"m-\xff";
    let same = |args: &[&str]| assert_eq!(ok(&server, args), format!("{id}\n"), "{args:?}");
    same(&["push", "q", "x", "--id", id, "--in", "1h"]);
    // JSON has the bytes: m, -, and 255.
    assert_eq!(json(&server, &["get", "q", id])[0]["id-base64"], "bS3/");
    for args in [&["peek", "q"][..], &["get", "q", id]] {
        assert!(ok(&server, args).contains(id), "{args:?}");
    }
    ok(&server, &["find", id]);
    same(&["reschedule", "q", id, "--in", "2h"]);
    same(&["bury", "q", id]);
    assert!(ok(&server, &["dead", "q"]).starts_with(id));
    assert!(ok(&server, &["dead", "q", "--by-error"]).contains(id));
    assert_eq!(ok(&server, &["redrive", "q", id]), "1\n");
    server.ask(&["DQ.POP", "q"]);
    assert_eq!(ok(&server, &["nack", "q", id, "--in", "1h"]), "delayed\n");
    let none = dqctl(&server, &["complete", "q", id]);
    assert!(none.code == 1 && none.err.contains(&format!("the message {id} of the queue q is delayed")), "{none:?}");
    same(&["cancel", "q", id]);
}

#[test]
fn characters_that_nobody_sees_are_escaped_on_a_terminal() {
    let server = Server::start();
    let unseen = ['\u{61c}', '\u{200b}', '\u{2028}', '\u{feff}', '\u{9b}', '\u{202e}'];
    let name: String = ['a'].into_iter().chain(unseen).collect();
    for number in 0..2 {
        server.ask(&["DQ.PUSH", &name, "x", "ID", &format!("{name}{number}"), "GROUP", &name]);
    }
    server.ask(&["DQ.POP", &name, "AS", &name]);
    server.ask(&["DQ.PUSH", "died", "x", "ID", "m"]);
    server.ask(&["DQ.POP", "died"]);
    server.ask(&["DQ.NACK", "died", "m", "DEAD", "ERROR", &name]);
    let shown = ok(&server, &["ls"]).split('\t').next().unwrap().to_owned();
    let views = ["ls", "ls --json", "find --older 0", "find --older 0 --json", "consumers", "consumers --json"];
    let of_queue = ["peek", "peek --json", "groups", "groups --json", "info --json", "get"].map(|command| {
        let id = if command == "get" { format!(" '{shown}0'") } else { String::new() };
        format!("{command} '{shown}'{id}")
    });
    // What was asked for in vain, and what a program has reported.
    let refused = [format!("release died '{name}'"), format!("find '{name}9'"), "await died m".to_owned()];
    let dumped = format!("dump '{shown}'");
    for view in views.map(str::to_owned).into_iter().chain(of_queue).chain(refused).chain([dumped]) {
        let screen = on_terminal(&server, &view, true);
        assert!(screen.contains('a') && !screen.contains(unseen), "{view}: {screen:?}");
    }
    assert_eq!(json(&server, &["ls"])[0]["queue"], name, "a program reads it as it is");
}
