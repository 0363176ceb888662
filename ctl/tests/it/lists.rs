//! `dqctl ls`: sorted, limited and in colours; and lists of any kind in pipes.

use crate::dqctl::{dqctl, json, ok, on_terminal};
use crate::support::Server;

/// Three queues: `a` has most dead messages, `b` most ready ones, and `c` is full.
fn three() -> Server {
    let server = Server::start();
    ok(&server, &["create", "c", "--maxlen", "1"]);
    for (queue, ready, dead) in [("a", 2, 3), ("b", 5, 0), ("c", 1, 1)] {
        for number in 0..dead {
            let id = format!("dead-{number}");
            ok(&server, &["push", queue, "x", "--id", &id]);
            ok(&server, &["bury", queue, &id]);
        }
        for _ in 0..ready {
            ok(&server, &["push", queue, "x"]);
        }
    }
    server
}

fn names(server: &Server, args: &[&str]) -> Vec<String> {
    ok(server, args).lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn queues_are_sorted_by_a_column_and_the_first_ones_listed() {
    let server = three();
    for (args, expected) in [
        (&["--sort", "ready"][..], &["b", "a", "c"][..]),
        (&["--sort", "DEAD", "-n", "2"], &["a", "c"]),
        (&["--sort", "dead", "--reverse"], &["b", "c", "a"]),
        (&["--sort", "state", "-n", "1"], &["c"]),
        (&["--sort", "delayed"], &["a", "b", "c"]),
        (&["--reverse"], &["c", "b", "a"]),
        (&["b*"], &["b"]),
        (&["--trouble"], &["c", "a"]),
        (&["--trouble", "--sort", "queue"], &["a", "c"]),
    ] {
        assert_eq!(names(&server, &[&["ls"], args].concat()), expected, "{args:?}");
    }
    let objects = json(&server, &["ls", "--sort", "ready", "-n", "1"]);
    assert_eq!((objects.len(), &objects[0]["queue"]), (1, &"b".into()));
    let unmeasured = dqctl(&server, &["ls", "--sort", "in/s"]);
    assert!(unmeasured.code == 2 && unmeasured.err.contains("use dqctl top"), "{unmeasured:?}");
    let unknown = dqctl(&server, &["ls", "--sort", "size"]);
    assert!(unknown.code == 2 && unknown.err.contains("queue, ready, delayed"), "{unknown:?}");
}

#[test]
fn a_terminal_shows_what_is_wrong_in_colours_unless_refused() {
    let server = three();
    let (red, amber) = ("\x1b[1m\x1b[38;5;9m", "\x1b[38;5;11m");
    for args in ["ls", "doctor"] {
        let shown = on_terminal(&server, args, false);
        assert!(shown.contains(red) && shown.contains(amber), "{shown:?}");
        for plain in [on_terminal(&server, args, true), dqctl(&server, &[args]).out] {
            assert!(!plain.contains('\x1b'), "{plain:?}");
        }
    }
}

#[test]
fn a_queue_that_may_not_be_read_is_listed_as_such() {
    let server = Server::start();
    for queue in ["bills", "mail"] {
        ok(&server, &["push", queue, "x", "--in", "1h"]);
    }
    server.ask(&["ACL", "SETUSER", "ann", "on", ">pw", "~mail", "+scan", "+dq.info", "+dq.consumers"]);
    let url = server.url().replace("redis://", "redis://ann:pw@");
    let listed = dqctl(&server, &["-u", &url, "ls"]);
    assert_eq!(listed.out, "bills\t-\t-\t-\t-\t-\t-\tno permission\nmail\t0\t1\t0\t0\t-\t0\topen\n");
    assert!(listed.code == 3 && listed.err.starts_with("dqctl: not all queues could be read: "), "{listed:?}");
    let objects = dqctl(&server, &["-u", &url, "ls", "--json"]).out;
    assert!(objects.starts_with("{\"conditions\":[],\"queue\":\"bills\",\"state\":\"no permission\"}"), "{objects}");
    assert_eq!(dqctl(&server, &["-u", &url, "ls", "mail"]).code, 0);
    server.ask(&["DQ.PUSH", "mail", "x"]);
    server.ask(&["DQ.POP", "mail", "LEASE", "600000", "AS", "w"]);
    let consumers = dqctl(&server, &["-u", &url, "consumers"]);
    assert!(consumers.code == 3 && consumers.out.starts_with("w\tmail\t1\t"), "{consumers:?}");
    assert!(consumers.err.starts_with("dqctl: not all queues could be read: "), "{consumers:?}");
}
