//! What a queue shows of its groups.

use super::delivering::push_each;
use crate::support::{in_both_protocols, Client, Reply, Server};
use std::collections::BTreeSet;

/// A group as it is shown: name, waiting, occupied, oldest due time.
type Shown = (String, i64, i64, Option<i64>);

/// The cursor and the groups that one call shows.
fn shown(c: &mut Client, line: &str) -> (String, Vec<Shown>) {
    let reply = c.ask(format!("DQ.GROUPS {line}"));
    let row = |group: &Reply| {
        let [name, waiting, occupied, due, ..] = group.items() else { panic!("{group:?}") };
        (name.text(), waiting.int(), occupied.int(), (!due.is_null()).then(|| due.int()))
    };
    let mut groups: Vec<_> = reply.items()[1].items().iter().map(row).collect();
    groups.sort();
    (reply.items()[0].text(), groups)
}

#[test]
fn a_queue_lists_its_groups() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2", "a3", "b1", "-1"]);
        c.push("q x ID c1 GROUP c AT 8000000000000");
        assert_eq!(c.ask("DQ.BURY q b1"), Reply::bulk("ready"));
        assert_eq!(c.pop_ids("q"), ["a1"]);
        let due = c.get("q", "a2").int("due");
        let expected = [("a".to_owned(), 2, 1, Some(due)), ("c".to_owned(), 1, 0, Some(8_000_000_000_000))];
        assert_eq!(shown(c, "q 0"), ("0".to_owned(), expected.to_vec()), "b has only a dead message");
        c.purge("q GROUP c");
        c.cancel("q a2 a3");
        assert_eq!(shown(c, "q 0").1, [("a".to_owned(), 0, 1, None)]);
        c.alter("q GROUPINFLIGHT 0");
        assert_eq!(shown(c, "q 0").1, [("a".to_owned(), 0, 0, None)], "without a limit nothing is occupied");
        assert_eq!(shown(c, "none 0"), ("0".to_owned(), Vec::new()));
    });
}

#[test]
fn a_listing_in_pages_returns_each_group_once() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..1_000).map(|nth| format!("DQ.PUSH q x GROUP group-{}", nth % 300)));
    let (mut cursor, mut names, mut pages) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let (next, groups) = shown(&mut c, &format!("q {cursor} COUNT 7"));
        assert!(groups.len() <= 7);
        names.extend(groups.into_iter().map(|(name, ..)| name));
        pages += 1;
        // Groups that come and go meanwhile do not matter.
        c.push(format!("q x GROUP new-{pages}"));
        cursor = next;
        if cursor == "0" {
            break;
        }
    }
    let old: Vec<&String> = names.iter().filter(|name| name.starts_with("group-")).collect();
    assert_eq!((old.len(), old.iter().collect::<BTreeSet<_>>().len()), (300, 300));
    assert!(pages > 40, "{pages}");
}

#[test]
fn a_bad_cursor_of_a_listing_is_refused() {
    in_both_protocols(|c| {
        push_each(c, &["a1"]);
        let error = "ERR invalid cursor: give 0, or the cursor that the last call returned";
        assert_eq!(c.ask("DQ.GROUPS q x").error(), error);
        assert_eq!(c.ask("DQ.GROUPS q 0 COUNT 0").error(), "ERR COUNT must be a whole number from 1 to 2147483647");
        assert!(c.ask("DQ.GROUPS q 0 MATCH x").error().starts_with("ERR syntax error, unknown option 'MATCH'"));
        c.ask("SET text x").ok();
        assert!(c.ask("DQ.GROUPS text 0").error().starts_with("WRONGTYPE"));
    });
}

#[test]
fn counts_and_peeks_can_be_of_one_group() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2", "a3", "b1", "-1"]);
        c.push("q x ID a4 GROUP a DELAY 600000");
        c.push("q x ID a5 GROUP a PRIORITY 9");
        assert_eq!(c.ask("DQ.BURY q a3"), Reply::bulk("ready"));
        assert_eq!(c.pop_ids("q LEASE 600000"), ["a1"]);
        let states = ["delayed", "ready", "inflight", "dead"];
        assert_eq!(states.map(|state| c.len(&format!("q {state} GROUP a"))), [1, 2, 1, 1]);
        assert_eq!((c.len("q GROUP a"), c.len("q GROUP none"), c.len("none GROUP a")), (4, 0, 0));
        assert_eq!(c.peek_ids("q ready COUNT 10 GROUP a"), ["a2", "a5"], "in the order of the group");
        assert_eq!(c.peek_ids("q GROUP a"), ["a2"]);
        assert_eq!(c.peek_ids("q delayed GROUP a COUNT 10"), ["a4"]);
        assert_eq!(c.peek_ids("q inflight GROUP a COUNT 10"), ["a1"]);
        assert_eq!(c.peek_ids("q dead GROUP a COUNT 10"), ["a3"]);
        assert!(c.peek_ids("q GROUP none").is_empty());
    });
}

#[test]
fn a_queue_counts_groups_and_blocked_messages() {
    in_both_protocols(|c| {
        let about = |c: &mut Client| {
            let about = c.about("q");
            (about.int("groups"), about.int("blocked"), about.int("ready"), about.text("grouporder"))
        };
        push_each(c, &["a1", "a2", "a3", "b1", "-1"]);
        assert_eq!(about(c), (2, 2, 5, "due".to_owned()), "two of a wait for the first one");
        assert_eq!(c.pop("q COUNT 10").len(), 3);
        assert_eq!(about(c), (2, 2, 2, "due".to_owned()));
        c.alter("q GROUPINFLIGHT 2 GROUPORDER TURN");
        assert_eq!(about(c), (2, 1, 2, "turn".to_owned()));
        assert_eq!(c.about("q").int("groupinflight"), 2);
        c.ask("DEL q");
        c.push("q x");
        assert_eq!(about(c), (0, 0, 1, "due".to_owned()));
    });
}

#[test]
fn the_order_of_groups_has_a_default() {
    let server = Server::with(&["--dq.default-grouporder", "turn"]);
    let mut c = server.client();
    assert_eq!(c.ask("CONFIG GET dq.default-grouporder").fields().text("dq.default-grouporder"), "turn");
    c.push("q x");
    assert_eq!(c.about("q").text("grouporder"), "turn");
    assert!(c.ask("CONFIG SET dq.default-grouporder random").is_error());
    c.configure("dq.default-grouporder", "due");
    c.ask("CONFIG REWRITE").ok();
    c.configure("dq.default-groupinflight", 5);
    c.create("new");
    let about = c.about("new");
    assert_eq!((about.text("grouporder"), about.int("groupinflight")), ("due".to_owned(), 5));
}
