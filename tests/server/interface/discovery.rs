//! COMMAND and ACL: the server knows the arguments, flags, keys and categories of every command.

use crate::support::{writes, Client, Kind, Protocol, Reply, Server, SAMPLES};

#[test]
fn every_command_has_a_sample() {
    let server = Server::start();
    let reply = server.client().ask("COMMAND LIST FILTERBY MODULE dq");
    let mut commands: Vec<String> = reply.items().iter().map(|name| name.text().to_lowercase()).collect();
    commands.retain(|name| name != "dq.e");
    commands.sort_unstable();
    let mut samples: Vec<String> = SAMPLES.iter().map(|sample| sample.name()).collect();
    samples.sort_unstable();
    assert_eq!(samples, commands, "tests/server/support/commands.rs has a sample of every command");
}

#[test]
fn the_server_shows_the_version_of_the_package() {
    let part = |text: &str| text.parse::<i64>().unwrap();
    let version = part(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + part(env!("CARGO_PKG_VERSION_PATCH"));
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    let modules = c.ask("MODULE LIST");
    let dq = modules.items().iter().map(Reply::fields).find(|module| module.text("name") == "dq").unwrap();
    assert_eq!(dq.int("ver"), version);
}

#[test]
fn every_command_is_documented() {
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    for name in SAMPLES.iter().map(|sample| sample.name()) {
        let reply = c.ask(format!("COMMAND DOCS {name}")).fields();
        let docs = reply.0[0].1.fields();
        for field in ["summary", "complexity"] {
            assert!(docs.text(field).len() > 3, "{name}: {field}");
        }
        assert!(docs.text("since").starts_with("0."), "{name}");
        // The keys come first, or directly after their number.
        let place = usize::from(name == "dq.mpop");
        let key = docs.get("arguments").items()[place].fields();
        assert_eq!((key.text("name"), key.text("type")), ("key".into(), "key".into()), "{name}");
    }
}

#[test]
fn every_command_tells_what_it_does_in_its_flags() {
    let server = Server::start();
    let mut c = server.client();
    for sample in SAMPLES {
        let (with, without): (&[&str], &[&str]) = match sample.kind {
            Kind::Grows => (&["write", "denyoom"], &["readonly", "blocking"]),
            Kind::Changes => (&["write"], &["readonly", "denyoom"]),
            Kind::Configures => (&["write"], &["readonly", "blocking"]),
            Kind::Reads if sample.line.contains(" BLOCK ") => (&["readonly", "blocking"], &["write", "denyoom"]),
            Kind::Reads => (&["readonly"], &["write", "denyoom", "blocking"]),
        };
        let name = sample.name();
        let reply = c.ask(format!("COMMAND INFO {name}"));
        let flags: Vec<String> = reply.items()[0].items()[2].items().iter().map(Reply::text).collect();
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
    for line in SAMPLES.iter().map(|sample| sample.line) {
        assert_eq!(c.ask(format!("COMMAND GETKEYS {line}")), Reply::Array(vec![Reply::bulk("q")]), "{line}");
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
    for line in ["DQ.PUSH other x", "DQ.LEN other", "DQ.POP mine:q", "DQ.E mine:q x", "DEL mine:q"] {
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
    for line in writes() {
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
    for line in SAMPLES.iter().map(|sample| sample.line) {
        let reply = c.ask(line.replace(" BLOCK 0", ""));
        assert!(!matches!(&reply, Reply::Error(text) if text.starts_with("NOPERM")), "{line}: {reply:?}");
    }
}

#[test]
fn a_pop_is_known_to_block() {
    let server = Server::start();
    for name in ["dq.pop", "dq.mpop", "dq.ackpop"] {
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
            // An invalidation arrives before the reply to the client's next command.
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
