//! The keys and the channel that `FORWARD` names are keys and a channel of the command.

use super::{elements, error_of, until_forwarded};
use crate::support::{in_both_protocols, Client, Cluster, Reply, Server};

fn keys(c: &mut Client, line: &str) -> Vec<String> {
    c.ask(format!("COMMAND GETKEYS {line}")).items().iter().map(Reply::text).collect()
}

#[test]
fn the_server_is_told_the_keys_of_a_target() {
    in_both_protocols(|c| {
        for command in ["DQ.CREATE q", "DQ.ALTER q MKQUEUE"] {
            assert_eq!(keys(c, &format!("{command} LEASE 5")), ["q"]);
            assert_eq!(keys(c, &format!("{command} FORWARD NONE")), ["q"]);
            assert_eq!(keys(c, &format!("{command} FORWARD CHANNEL c")), ["q"]);
            assert_eq!(keys(c, &format!("{command} forward stream s TRIM 5 LEASE 5")), ["q", "s"]);
            assert_eq!(keys(c, &format!("{command} LEASE 5 FORWARD LIST l")), ["q", "l"]);
            assert_eq!(
                keys(c, &format!("{command} FORWARD LIST STREAM LEFT REGISTER LIST m")),
                ["q", "STREAM", "LIST"]
            );
        }
        assert_eq!(keys(c, "DQ.CREATE FORWARD FORWARD STREAM LIST"), ["FORWARD", "LIST"]);
        let spec = c.ask("COMMAND INFO DQ.CREATE").items()[0].items()[8].clone();
        let words: Vec<String> = spec.items()[1..]
            .iter()
            .map(|spec| spec.fields().get("begin_search").fields().get("spec").fields().text("keyword"))
            .collect();
        assert_eq!(words, ["STREAM", "LIST", "REGISTER", "QUEUE"]);
    });
}

#[test]
fn a_user_needs_the_right_to_write_the_target() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("ACL SETUSER limited on >secret ~q %W~own* %R~readable &news +@all").ok();
    let mut limited = server.client();
    limited.ask("AUTH limited secret").ok();
    for words in ["STREAM own", "LIST own LEFT", "LIST own REGISTER own-set m", "CHANNEL news", "NONE"] {
        limited.ask(format!("DQ.ALTER q MKQUEUE FORWARD {words}")).ok();
    }
    for words in ["STREAM s", "LIST l", "LIST own REGISTER set m", "LIST readable", "CHANNEL olds"] {
        for command in ["DQ.CREATE q", "DQ.ALTER q MKQUEUE"] {
            let refused = limited.ask(format!("{command} FORWARD {words}"));
            assert!(refused.error().starts_with("NOPERM"), "{words}: {refused:?}");
        }
    }
    assert_eq!(c.about("q").text("forward"), "NONE");
}

#[test]
fn a_user_needs_the_right_to_read_what_is_forwarded() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("ACL SETUSER writer on >secret %W~written ~own* &news +@all").ok();
    let mut writer = server.client();
    writer.ask("AUTH writer secret").ok();
    for command in ["DQ.CREATE written", "DQ.ALTER written MKQUEUE"] {
        for words in [
            "FORWARD STREAM own",
            "FORWARD LIST own",
            "FORWARD LIST own REGISTER own-set m",
            "FORWARD CHANNEL news",
            "DEADFORWARD STREAM own",
            "DEADFORWARD LIST own LEFT",
            "DEADFORWARD QUEUE own",
            "FORWARD NONE DEADFORWARD QUEUE own",
        ] {
            let refused = writer.ask(format!("{command} LEASE 5 {words}"));
            assert!(refused.error().starts_with("NOPERM"), "{words}: {refused:?}");
        }
        writer.ask(format!("{command} FORWARD NONE DEADFORWARD NONE")).ok();
    }
    assert!(writer.ask("DQ.E written x").error().starts_with("NOPERM"), "an effect may set it too");
}

#[test]
fn in_a_cluster_the_target_is_in_the_slot_of_the_queue() {
    let cluster = Cluster::of(1, 60_000);
    let mut c = cluster.client(0);
    for words in ["STREAM s", "LIST l", "LIST {q}l REGISTER set m"] {
        let refused = c.ask(format!("DQ.CREATE {{q}} FORWARD {words}"));
        assert!(refused.error().starts_with("CROSSSLOT"), "{words}: {refused:?}");
    }
    c.create("{q} FORWARD LIST l{q} REGISTER set{q} m");
    c.push("{q} x");
    until_forwarded(&mut c, "{q}", 1);
    assert_eq!(elements(&mut c, "l{q}"), ["x"]);
}

#[test]
fn a_restored_target_in_another_slot_is_a_forwarding_error() {
    let (server, cluster) = (Server::start(), Cluster::of(1, 60_000));
    let (mut c, mut node) = (server.client(), cluster.client(0));
    c.create("q FORWARD LIST l");
    c.push("q x DELAY 600000");
    let dump = c.ask("DUMP q").bytes().to_vec();
    // Redis 7.0 writes files that all others read.
    node.cmd(&[&b"RESTORE"[..], b"q", b"0", &dump]).ok();
    node.ask("DQ.PROMOTE q");
    assert!(error_of(&mut node, "q").starts_with("CROSSSLOT"));
    assert_eq!(node.about("q").int("ready"), 1);
    node.alter("q FORWARD LIST {q}l");
    until_forwarded(&mut node, "q", 1);
}
