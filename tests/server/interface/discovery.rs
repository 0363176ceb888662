//! COMMAND and ACL: the server knows the arguments, flags, keys and categories of every command.

use crate::support::{Client, Protocol, Reply, Server};

/// What the server must know of a command.
struct Row {
    name: &'static str,
    arity: i64,
    /// Flags that it has, and flags that it must not have.
    with: &'static [&'static str],
    without: &'static [&'static str],
    /// A call whose only key is `q`.
    call: &'static str,
}

const fn grows(name: &'static str, arity: i64, call: &'static str) -> Row {
    Row { name, arity, with: &["write", "denyoom"], without: &["readonly", "blocking"], call }
}

const fn changes(name: &'static str, arity: i64, call: &'static str) -> Row {
    Row { name, arity, with: &["write"], without: &["readonly", "denyoom"], call }
}

const fn looks(name: &'static str, arity: i64, call: &'static str) -> Row {
    Row { name, arity, with: &["readonly"], without: &["write", "denyoom"], call }
}

/// A command that writes settings: whether it needs memory is its own affair.
const fn sets(name: &'static str, arity: i64, call: &'static str) -> Row {
    Row { name, arity, with: &["write"], without: &["readonly", "blocking"], call }
}

const COMMANDS: [Row; 22] = [
    grows("dq.push", -3, "DQ.PUSH q x ID m DELAY 5 REPLACE"),
    changes("dq.pop", -2, "DQ.POP q COUNT 5 BLOCK 0"),
    changes("dq.ack", -3, "DQ.ACK q m n"),
    changes("dq.nack", -3, "DQ.NACK q m DELAY 5"),
    changes("dq.extend", -3, "DQ.EXTEND q m"),
    looks("dq.len", -2, "DQ.LEN q ready"),
    looks("dq.get", 3, "DQ.GET q m"),
    looks("dq.info", 2, "DQ.INFO q"),
    grows("dq.mpush", -4, "DQ.MPUSH q 2 x y IDS m n DELAY 5 REPLACE"),
    changes("dq.mpop", -3, "DQ.MPOP 1 q COUNT 5 BLOCK 0"),
    changes("dq.cancel", -3, "DQ.CANCEL q m n"),
    changes("dq.reschedule", -4, "DQ.RESCHEDULE q m DELAY 5"),
    changes("dq.redrive", -2, "DQ.REDRIVE q IDS 2 m n DELAY 5"),
    changes("dq.purge", -2, "DQ.PURGE q dead ready"),
    changes("dq.bury", -3, "DQ.BURY q m ERROR e"),
    changes("dq.promote", -2, "DQ.PROMOTE q COUNT 5"),
    looks("dq.peek", -2, "DQ.PEEK q dead COUNT 5"),
    looks("dq.scan", -3, "DQ.SCAN q 0 STATE dead COUNT 5"),
    sets("dq.create", -2, "DQ.CREATE q LEASE 5"),
    sets("dq.alter", -2, "DQ.ALTER q LEASE 5"),
    changes("dq.pause", -2, "DQ.PAUSE q FOR 5"),
    changes("dq.resume", 2, "DQ.RESUME q"),
];

#[test]
fn every_command_is_documented() {
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    for Row { name, .. } in COMMANDS {
        let reply = c.ask(format!("COMMAND DOCS {name}")).fields();
        let docs = reply.0[0].1.fields();
        for field in ["summary", "complexity"] {
            assert!(docs.text(field).len() > 3, "{name}: {field}");
        }
        assert_eq!(docs.text("since"), "0.1.0", "{name}");
        // The keys come first, or right behind their number.
        let place = usize::from(name == "dq.mpop");
        let key = docs.get("arguments").items()[place].fields();
        assert_eq!((key.text("name"), key.text("type")), ("key".into(), "key".into()), "{name}");
    }
}

#[test]
fn every_command_tells_its_arity_and_its_flags() {
    let server = Server::start();
    let mut c = server.client();
    for Row { name, arity, with, without, .. } in COMMANDS {
        let reply = c.ask(format!("COMMAND INFO {name}"));
        let info = reply.items()[0].items();
        assert_eq!(info[1], Reply::Int(arity), "{name}");
        let flags: Vec<String> = info[2].items().iter().map(Reply::text).collect();
        for flag in with {
            assert!(flags.iter().any(|has| has == flag), "{name} lacks {flag}: {flags:?}");
        }
        for flag in without {
            assert!(!flags.iter().any(|has| has == flag), "{name} has {flag}: {flags:?}");
        }
    }
}

#[test]
fn every_command_names_its_key() {
    let server = Server::start();
    let mut c = server.client();
    for Row { name, call, .. } in COMMANDS {
        assert_eq!(c.ask(format!("COMMAND GETKEYS {call}")), Reply::Array(vec![Reply::bulk("q")]), "{name}");
    }
}

fn logged_in(server: &Server, rights: &str) -> Client {
    let mut c = server.client();
    c.ask(format!("ACL SETUSER worker reset on nopass {rights}")).ok();
    c.ask("AUTH worker any").ok();
    c
}

#[test]
fn a_user_may_do_what_was_granted_and_no_more() {
    let server = Server::start();
    let mut c = logged_in(&server, "+dq.push +dq.len ~mine:*");
    c.push("mine:q x");
    assert_eq!(c.len("mine:q"), 1);
    for line in ["DQ.PUSH other x", "DQ.LEN other", "DQ.POP mine:q", "DQ.EFFECT mine:q x", "DEL mine:q"] {
        assert!(c.ask(line).error().starts_with("NOPERM "), "{line}");
    }
}

#[test]
fn who_may_only_read_cannot_write() {
    let server = Server::start();
    server.client().push("q x ID m");
    let mut c = logged_in(&server, "+@all %R~q");
    assert_eq!((c.len("q"), c.state("q", "m")), (1, "ready".to_owned()));
    assert_eq!(c.about("q").int("ready"), 1);
    assert_eq!((c.peek_ids("q"), c.scan_ids("q", "")), (vec!["m".to_owned()], vec!["m".to_owned()]));
    for Row { name, call, .. } in COMMANDS.iter().filter(|row| row.with.contains(&"write")) {
        assert!(c.ask(call).error().starts_with("NOPERM "), "{name}");
    }
}

#[test]
fn the_commands_are_a_category_where_the_server_can() {
    let server = Server::start();
    let mut c = server.client();
    if let Reply::Error(_) = c.ask("ACL CAT dq") {
        return eprintln!("this server has no categories of modules: users grant by name");
    }
    let mut c = logged_in(&server, "+@dq ~*");
    for Row { name, call, .. } in COMMANDS {
        let reply = c.ask(call.replace(" BLOCK 0", ""));
        assert!(!matches!(&reply, Reply::Error(text) if text.starts_with("NOPERM")), "{name}: {reply:?}");
    }
}

#[test]
fn a_pop_is_known_to_block() {
    let server = Server::start();
    for name in ["dq.pop", "dq.mpop"] {
        let reply = server.client().ask(format!("COMMAND INFO {name}"));
        let flags = reply.items()[0].items()[2].items();
        assert!(flags.iter().any(|flag| flag.text() == "blocking"), "{name}: {flags:?}");
    }
}

#[test]
fn a_caching_client_is_invalidated_by_changes_only() {
    for (line, changes) in [
        ("DQ.PUSH q x", true),
        ("DQ.MPUSH q 1 x", true),
        ("DQ.MPUSH q 1 x IDS m", false),
        ("DQ.MPOP 2 other q", true),
        ("DQ.CANCEL q m", true),
        ("DQ.CANCEL q nobody", false),
        ("DQ.RESCHEDULE q m DELAY 5", true),
        ("DQ.RESCHEDULE q nobody DELAY 5", false),
        ("DQ.REDRIVE q", true),
        ("DQ.REDRIVE q IDS 1 m", false),
        ("DQ.PURGE q delayed", false),
        ("DQ.PURGE q dead", true),
        ("DQ.CREATE q", false),
        ("DQ.ALTER q LEASE 5", true),
        ("DQ.ALTER q MAXLEN 0", false),
        ("DQ.PAUSE q", true),
        ("DQ.RESUME q", false),
        ("DQ.PEEK q", false),
        ("DQ.SCAN q 0", false),
    ] {
        for look in ["DQ.PEEK q", "DQ.SCAN q 0", "DQ.INFO q"] {
            let server = Server::start();
            let (mut c, mut cache) = (server.client(), server.client_with(Protocol::Resp3));
            c.bury("q", &["dead"]);
            c.push("q x ID m");
            cache.ask("CLIENT TRACKING ON").ok();
            cache.ask(look);
            assert!(!matches!(c.ask(line), Reply::Error(_)) || !changes, "{line}");
            // What was invalidated is said before the answer to whatever the client asks next.
            let mut invalidated = false;
            cache.send("PING");
            loop {
                match cache.receive() {
                    Reply::Push(_) => invalidated = true,
                    reply => break assert_eq!(reply, Reply::Simple("PONG".into())),
                }
            }
            assert_eq!(invalidated, changes, "{look}, then {line}");
        }
    }
}
