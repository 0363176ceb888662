//! Jitter: messages that failed together do not all return at the same time.

use crate::support::{Client, Reply, Server};
use std::collections::BTreeSet;

const MESSAGES: usize = 60;

/// Nacks many messages of a new queue at one instant. Returns how long each of them waits.
fn waits(c: &mut Client, settings: &str) -> Vec<i64> {
    c.ask("DEL q");
    c.create(format!("q {settings}"));
    let ids: Vec<String> = (0..MESSAGES).map(|n| format!("m{n}")).collect();
    c.push_many(format!("q {MESSAGES} {}IDS {}", "x ".repeat(MESSAGES), ids.join(" ")));
    assert_eq!(c.pop_ids(format!("q COUNT {MESSAGES} LEASE 600000")).len(), MESSAGES);
    let mut lines = vec!["TIME".to_owned()];
    lines.extend(ids.iter().map(|id| format!("DQ.NACK q {id}")));
    // One transaction has one time.
    let replies = c.multi(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(replies[1..].iter().all(|reply| reply == &Reply::bulk("delayed")), "{replies:?}");
    let part = |n: usize| replies[0].items()[n].text().parse::<i64>().expect("a number");
    let now = part(0) * 1_000 + part(1) / 1_000;
    ids.iter().map(|id| c.get("q", id).int("due") - now).collect()
}

#[test]
fn jitter_shortens_a_backoff_by_its_share_at_most() {
    let server = Server::start();
    let mut c = server.client();
    // The time that may pass between the look at the clock and the nacks.
    let slack = 0..=5_000;
    for (jitter, shortest) in [(0, 600_000), (40, 360_000), (100, 0)] {
        let waits = waits(&mut c, &format!("BACKOFF 600000 600000 JITTER {jitter}"));
        for wait in &waits {
            assert!((shortest..=600_000 + slack.end()).contains(wait), "JITTER {jitter}: {wait}");
        }
        let different: BTreeSet<&i64> = waits.iter().collect();
        let spread = waits.iter().max().unwrap() - waits.iter().min().unwrap();
        if jitter == 0 {
            assert!(slack.contains(&spread), "{spread}");
        } else {
            assert!(different.len() > MESSAGES / 2 && spread > (600_000 - shortest) / 2, "JITTER {jitter}: {waits:?}");
        }
    }
}

#[test]
fn a_delay_that_is_given_has_no_jitter() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q BACKOFF 600000 600000 JITTER 100");
    c.push("q x ID m");
    c.pop_one("q");
    c.expect_ms_from_now(300_000, |c| {
        assert_eq!(c.nack("q m DELAY 300000"), "delayed");
        c.get("q", "m").int("due")
    });
}

#[test]
fn a_backoff_without_jitter_keeps_that_of_the_queue() {
    let server = Server::start();
    let mut c = server.client();
    let jitter = |c: &mut Client, key: &str| c.about(key).int("backoff-jitter");
    c.create("q BACKOFF 10 20 JITTER 30");
    c.alter("q BACKOFF 50 60");
    assert_eq!(jitter(&mut c, "q"), 30);
    let about = c.about("q");
    assert_eq!((about.int("backoff-base"), about.int("backoff-max")), (50, 60));
    c.alter("q LEASE 5");
    assert_eq!(jitter(&mut c, "q"), 30);
    c.alter("q backoff 50 60 jitter 0");
    assert_eq!(jitter(&mut c, "q"), 0);
    c.configure("dq.default-backoff-jitter", 15);
    c.create("made BACKOFF 1 2");
    c.push("pushed x");
    for key in ["made", "pushed"] {
        assert_eq!(jitter(&mut c, key), 15, "{key}");
    }
    assert_eq!(jitter(&mut c, "q"), 0, "a queue that is there keeps its own");
}

#[test]
fn replicas_and_a_replay_have_the_same_times() {
    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &["--dq.default-backoff-jitter", "77"]);
    let (mut c, mut r) = (master.client(), replica.client());
    waits(&mut c, "BACKOFF 600000 600000 JITTER 100");
    let digest = c.digest("q");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(r.digest("q"), digest);
    master.restart_from_aof();
    assert_eq!(master.client().digest("q"), digest);
}
