//! Discovery: the server can say of every command what it does, what it needs and what it touches.

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

const COMMANDS: [Row; 8] = [
    grows("dq.push", -3, "DQ.PUSH q x ID m DELAY 5 REPLACE"),
    changes("dq.pop", -2, "DQ.POP q COUNT 5 BLOCK 0"),
    changes("dq.ack", -3, "DQ.ACK q m n"),
    changes("dq.nack", -3, "DQ.NACK q m DELAY 5"),
    changes("dq.extend", -3, "DQ.EXTEND q m"),
    looks("dq.len", -2, "DQ.LEN q ready"),
    looks("dq.get", 3, "DQ.GET q m"),
    looks("dq.info", 2, "DQ.INFO q"),
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
        let first = docs.get("arguments").items()[0].fields();
        assert_eq!((first.text("name"), first.text("type")), ("key".into(), "key".into()), "{name}");
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
    let mut c = logged_in(&server, "+dq.push +dq.pop +dq.len +dq.get +dq.info %R~q");
    assert_eq!((c.len("q"), c.state("q", "m")), (1, "ready".to_owned()));
    assert_eq!(c.about("q").int("ready"), 1);
    for line in ["DQ.PUSH q x", "DQ.POP q"] {
        assert!(c.ask(line).error().starts_with("NOPERM "), "{line}");
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
    let reply = server.client().ask("COMMAND INFO dq.pop");
    let flags = reply.items()[0].items()[2].items();
    assert!(flags.iter().any(|flag| flag.text() == "blocking"), "{flags:?}");
}
