//! Errors are one line that says what to do, and exit codes tell them apart.

use crate::dqctl::{command, dqctl, ok, on_terminal, run, without_server};
use crate::support::{free_port, Server, Tls};
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn the_server_is_named_before_or_after_the_command() {
    let server = Server::start();
    let url = server.url();
    for args in [["--url", &url, "push", "q", "x"], ["push", "q", "x", "-u", &url], ["push", "-u", &url, "q", "x"]] {
        assert_eq!(run(without_server(&args)).code, 0, "{args:?}");
    }
    assert_eq!(server.text(&["DQ.LEN", "q"]), "3");
}

#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let url = format!("redis://user:secret@127.0.0.1:{}", free_port());
    let ran = run(without_server(&["-u", &url, "ls"]));
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
    assert!(ran.err.contains("127.0.0.1") && ran.err.contains("--url") && !ran.err.contains("secret"), "{ran:?}");
}

#[test]
fn no_command_panics_if_nothing_can_be_written() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let look = ["ls", "info q", "info none", "stats q", "peek q", "get q none", "find none", "consumers q", "groups q"];
    let dead = ["dead q", "dead --by-error", "redrive q none", "bury q none", "purge q"];
    let change = ["push q x --id m", "cancel q none", "cancel q m", "promote q none", "nack q none", "release q none"];
    let times = ["reschedule q none --in 1m", "await q none", "batch q none", "schedule q m x --every 1m"];
    let moving = ["dump q", "load q", "import list none q", "import list none q --dry-run"];
    let queues = ["create q", "pause q", "resume q", "delete none --yes"];
    let rest = ["doctor", "export --listen 256.0.0.1:1", "work -q q", "completions bash", "man", "--help", "--version"];
    let all: [&[&str]; 8] = [&look, &dead, &change, &times, &moving, &queues, &rest, &["nonsense"]];
    for line in all.concat() {
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = command(&server, &line.split(' ').collect::<Vec<_>>());
        let status = command.stdout(full()).stderr(full()).status().unwrap();
        assert!(status.code().is_some_and(|code| code <= 3), "{line}: {status}");
    }
}

#[test]
fn a_wrong_command_line_is_one_line() {
    let wrong: [&[&str]; 9] = [
        &["peek", "q", "foo"],
        &["nonsense"],
        &["push"],
        &["push", "q", "x", "--in", "15"],
        &["push", "q", "x", "--at", "tomorrow"],
        &["push", "q", "x", "--in", "1m", "--at", "2096-12-01T09:00Z"],
        &["reschedule", "q", "m"],
        &["schedule", "q", "m", "x"],
        &["-u", "http://127.0.0.1", "ls"],
    ];
    for args in wrong {
        let ran = run(without_server(args));
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (2, "", 1), "{args:?}: {ran:?}");
        assert!(ran.err.starts_with("dqctl: "), "{ran:?}");
    }
    let unit = run(without_server(&["push", "q", "x", "--in", "15"]));
    assert!(unit.err.contains("15m"), "{unit:?}");
}

#[test]
fn options_that_would_be_ignored_are_refused() {
    let wrong: [&[&str]; 9] = [
        &["batch", "q", "b", "--cancel", "--id", "m"],
        &["schedule", "q", "s", "x", "--every", "1h", "--tz", "Europe/Berlin"],
        &["schedule", "q", "s", "x", "--cron", "0 9 * * *", "--offset", "5m"],
        &["schedule", "q", "--priority", "1"],
        &["work", "-q", "q", "--header", "a: b", "--", "true"],
        &["work", "-q", "q", "--pause-on-429", "--", "true"],
        &["web", "--json"],
        &["--json", "get", "q", "m", "--payload"],
        &["--json", "await", "q", "m", "--result"],
    ];
    for args in wrong {
        let ran = run(without_server(args));
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (2, "", 1), "{args:?}: {ran:?}");
    }
}

#[test]
fn what_a_server_refuses_is_one_line_with_advice() {
    let server = Server::start();
    server.ask(&["SET", "text", "x"]);
    server.ask(&["DQ.CREATE", "full", "MAXLEN", "1"]);
    ok(&server, &["push", "full", "x"]);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    ok(&server, &["bury", "q", "m"]);
    ok(&server, &["create", "closed queue"]);
    ok(&server, &["pause", "closed queue", "in"]);
    for (code, args, advice) in [
        (3, &["push", "text", "x"][..], "dqctl ls"),
        (3, &["push", "full", "x"], "dqctl alter full --maxlen"),
        (3, &["push", "q", "x", "--id", "m"], "dqctl redrive q m"),
        (3, &["push", "closed queue", "x"], "dqctl resume 'closed queue' in"),
        (1, &["pause", "nope"], "there is no queue nope;"),
        // A value that is wrong on any queue is wrong on the command line, whoever finds it.
        (2, &["alter", "q", "--deadforward", "dead"], "DEADFORWARD"),
        (2, &["alter", "q", "--errors", "99"], "must be a whole number from 0 to 64"),
        (2, &["push", "q", "x", "--group", ""], "must be 1 to 255 bytes"),
        (2, &["schedule", "q", "s", "x", "--cron", "99 * * * *"], "invalid minute"),
        (2, &["bury", "q", "m#1"], "a receipt is not an id"),
        // A refusal with a code of its own is about the queue.
        (3, &["create", "full", "--maxlen", "2"], "queue exists with other settings"),
    ] {
        let ran = dqctl(&server, args);
        assert_eq!((ran.code, ran.err.lines().count()), (code, 1), "{args:?}: {ran:?}");
        assert!(ran.err.contains(advice), "{args:?}: {ran:?}");
    }
}

#[test]
fn certificates_are_options_or_in_the_url() {
    let tls = Tls::start();
    let (url, ca) = (tls.url(), tls.file("ca.pem"));
    let (cert, key) = (tls.file("server.pem"), tls.file("server.key"));
    let ran = run(without_server(&["-u", &url, "--cacert", &ca, "--cert", &cert, "--key", &key, "push", "q", "x"]));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let in_url = format!("{url}?cacert={ca}&cert={cert}&key={key}");
    assert!(run(without_server(&["-u", &in_url, "ls"])).out.starts_with("q\t1\t"));
    let mut by_environment = without_server(&["-u", &url, "ls", "--cert", &cert, "--key", &key]);
    by_environment.env("SSL_CERT_FILE", &ca);
    assert_eq!(run(by_environment).code, 0);
    for (args, code, text) in [
        (&["--cert", cert.as_str(), "--key", &key][..], 3, "give cacert"),
        (&["--cacert", &ca], 3, "give cert and key"),
        (&["--cacert", &ca, "--cert", &cert, "--key", &tls.file("other.key")], 2, "do not belong together"),
        (&["--cacert", &ca, "--cert", &cert], 2, "both cert and key"),
        (&["--cacert", "nothing.pem"], 2, "nothing.pem"),
    ] {
        let ran = run(without_server(&[&["-u", &url, "ls"][..], args].concat()));
        assert_eq!((ran.code, ran.err.lines().count()), (code, 1), "{args:?}: {ran:?}");
        assert!(ran.err.contains(text) && !ran.err.contains("start the server"), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_scheme_that_the_server_does_not_speak_is_named() {
    let (server, tls) = (Server::start(), Tls::start());
    for (url, advice) in [
        (server.url().replace("redis://", "rediss://"), "name it as redis://"),
        (tls.url().replace("rediss://", "redis://"), "name it as rediss://"),
    ] {
        let ran = run(without_server(&["-u", &url, "ls"]));
        assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
        assert!(ran.err.contains(advice) && !ran.err.contains("--cacert"), "{ran:?}");
    }
}

#[test]
fn the_help_lists_no_option_that_the_command_refuses() {
    for command in ["work", "export", "web", "top", "completions", "man"] {
        let help = run(without_server(&[command, "--help"])).out;
        assert!(!help.contains("--json") && !help.contains("--heading"), "{command}: {help}");
        assert_eq!(help.contains("--url"), !["completions", "man"].contains(&command), "{command}");
    }
    assert!(run(without_server(&["ls", "--help"])).out.contains("--json"));
    let server = Server::start();
    let help = on_terminal(&server, "help", true);
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
}

#[test]
fn a_password_is_never_printed() {
    for url in ["redis://user:pa#secret@h", "redis://user:secret/x@h", "redis://user:secret", "redis://user:secret@h:x"]
    {
        let ran = run(without_server(&["-u", url, "ls"]));
        assert!(ran.code == 2 && !ran.err.contains("secret"), "{ran:?}");
    }
    assert!(run(without_server(&["-u", "redis://user:pa#secret@h", "ls"])).err.contains("%23"));
    let ran = run(without_server(&["work", "-q", "q", "--post", "ftp://user:secret@h/?token=secret"]));
    assert!(ran.code == 2 && !ran.err.contains("secret"), "{ran:?}");
}

/// The URL of a server that accepts connections, and closes them when it gets a command.
fn forgetful() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut bytes) = (stream.unwrap(), [0; 4096]);
            // HELLO, and the command.
            let _ = stream.read(&mut bytes);
            let _ = stream.write_all(b"%2\r\n$2\r\nid\r\n:1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n");
            let _ = stream.read(&mut bytes);
        }
    });
    url
}

#[test]
fn only_a_write_may_have_been_executed() {
    let url = forgetful();
    let lost = |args: &[&str]| {
        let ran = run(without_server(&[&["-u", &url][..], args].concat()));
        assert!(ran.code == 3 && ran.err.contains("the connection was lost"), "{args:?}: {ran:?}");
        ran.err
    };
    for write in
        [&["pause", "q"][..], &["reschedule", "q", "m", "--in", "1m"], &["schedule", "q", "s", "x", "--every", "1h"]]
    {
        assert!(lost(write).contains("it is unknown whether"), "{write:?}");
    }
    for read in [&["ls"][..], &["info", "q"], &["schedule", "q"], &["dump", "q"]] {
        assert!(!lost(read).contains("unknown"), "{read:?}");
    }
}

#[test]
fn a_server_without_room_for_a_client_is_not_suspected_of_tls() {
    for (server, said) in [
        (Server::start(), "max number of clients reached"),
        (Server::with(&["--cluster-enabled", "yes"]), "max number of clients + cluster connections reached"),
    ] {
        let held = server.client();
        held.ping().unwrap();
        // One connection sets it.
        server.ask(&["CONFIG", "SET", "maxclients", "1"]);
        for command in ["ls", "doctor"] {
            let ran = dqctl(&server, &[command]);
            let is_said = ran.err.contains(&format!("{said}; close connections that are not needed"));
            assert!(ran.code == 3 && is_said && !ran.err.contains("TLS"), "{ran:?}");
        }
    }
}

#[test]
fn a_server_that_hangs_is_not_to_be_started() {
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", hanging.local_addr().unwrap());
    for command in ["ls", "doctor"] {
        let ran = run(without_server(&["-u", &url, command]));
        assert!(ran.code == 3 && ran.err.contains("accepts connections, but does not answer"), "{ran:?}");
        assert!(!ran.err.contains("start the server"), "{ran:?}");
    }
}

#[test]
fn a_value_that_no_queue_takes_is_an_error_of_usage() {
    let server = Server::start();
    for args in [
        &["schedule", "q", "s", "x", "--every", "1m", "--until", "2020-01-01T00:00Z"][..],
        &["push", "q", "x", "--header", "a=1", "--header", "a=2"],
        &["schedule", "q", "s", "x", "--every", "1m", "--header", "a=1", "--header", "a=2"],
        &["create", "q", "--deadforward", "QUEUE q"],
    ] {
        let ran = dqctl(&server, args);
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{ran:?}");
    }
}
