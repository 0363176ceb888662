//! DQ.CREATE and DQ.ALTER: settings of one queue are given when it is created and changed while it is used.

use crate::support::{effects_of, eventually, in_both_protocols, Client, Fields, Reply, Server};

/// Every setting: the words that set it, and the fields that the queue then shows.
const SETTINGS: [(&str, &[(&str, i64)]); 15] = [
    ("LEASE 7001", &[("lease", 7001)]),
    ("RETRIES 3", &[("retries", 3)]),
    ("BACKOFF 50 5000", &[("backoff-base", 50), ("backoff-max", 5000)]),
    ("BACKOFF 50 5000 JITTER 12", &[("backoff-base", 50), ("backoff-max", 5000), ("backoff-jitter", 12)]),
    ("TTL 888888", &[("ttl", 888_888)]),
    ("MAXLEN 99", &[("maxlen", 99)]),
    ("MAXINFLIGHT 9", &[("maxinflight", 9)]),
    ("DEADLEN 7", &[("deadlen", 7)]),
    ("DEADTTL 777777", &[("deadttl", 777_777)]),
    ("MAXPAYLOAD 66", &[("maxpayload", 66)]),
    ("RATE 13 1300", &[("rate", 13), ("rate-period", 1_300)]),
    ("DEDUPE 6666", &[("dedupe", 6666)]),
    ("GROUPINFLIGHT 55", &[("groupinflight", 55)]),
    ("MAXLEASE 5555", &[("maxlease", 5555)]),
    ("DELAY 4444", &[("delay", 4444)]),
];

const FIELDS: [&str; 17] = [
    "lease",
    "retries",
    "backoff-base",
    "backoff-max",
    "ttl",
    "maxlen",
    "maxinflight",
    "deadlen",
    "backoff-jitter",
    "deadttl",
    "maxpayload",
    "rate",
    "rate-period",
    "dedupe",
    "groupinflight",
    "maxlease",
    "delay",
];

/// The settings that a queue shows, in the order of `FIELDS`.
#[track_caller]
fn settings(about: &Fields) -> [i64; 17] {
    FIELDS.map(|field| about.int(field))
}

const DEFAULTS: [i64; 17] = [30_000, 16, 1_000, 3_600_000, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 1, 0, 0];

/// All settings at once, and the fields that the queue then shows.
const ALL: &str =
    "Dedupe 6666 GroupInflight 55 MAXPAYLOAD 66 DEADTTL 777777 DEADLEN 7 MAXINFLIGHT 9 MAXLEN 99 ttl 888888 \
     BACKOFF 50 5000 jitter 12 RETRIES 3 Lease 7001 rate 13 1300 maxLease 5555 Delay 4444";
const ALL_SET: [i64; 17] =
    [7_001, 3, 50, 5_000, 888_888, 99, 9, 7, 12, 777_777, 66, 13, 1_300, 6_666, 55, 5_555, 4_444];

#[test]
fn a_queue_is_made_empty_and_with_the_defaults() {
    in_both_protocols(|c| {
        c.ask("DQ.CREATE q").ok();
        assert_eq!(c.ask("TYPE q"), Reply::Simple("DQ--queue".into()));
        let about = c.about("q");
        assert_eq!(settings(&about), DEFAULTS);
        for field in ["delayed", "ready", "inflight", "dead", "pushed", "paused", "payload-bytes"] {
            assert_eq!(about.int(field), 0, "{field}");
        }
        assert!(c.pop("q").is_empty());
        c.push("q x");
        assert_eq!(c.pop("q").len(), 1);
    });
}

#[test]
fn a_queue_is_created_with_given_settings_and_defaults() {
    let server = Server::start();
    let mut c = server.client();
    for (words, fields) in SETTINGS {
        c.ask("DEL q");
        c.create(format!("q {words}"));
        let mut expected = DEFAULTS;
        for (field, value) in fields {
            let place = FIELDS.iter().position(|known| known == field).expect("a field");
            expected[place] = *value;
        }
        assert_eq!(settings(&c.about("q")), expected, "{words}");
    }
    c.create(format!("all {ALL}"));
    assert_eq!(settings(&c.about("all")), ALL_SET, "in any order and any case");
}

#[test]
fn the_rest_is_the_configuration_of_that_moment() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-lease", 111);
    c.configure("dq.default-retries", 2);
    c.configure("dq.default-deadlen", 5);
    c.create("q RETRIES 4");
    c.configure("dq.default-lease", 222);
    c.configure("dq.default-maxlen", 1);
    let about = c.about("q");
    assert_eq!(["lease", "retries", "deadlen", "maxlen"].map(|field| about.int(field)), [111, 4, 5, 0]);
}

#[test]
fn the_ends_of_every_range_are_settings() {
    let server = Server::start();
    let mut c = server.client();
    let most = 9_007_199_254_740_991_i64;
    c.create("q");
    for (words, field, value) in [
        ("LEASE 1", "lease", 1),
        ("LEASE 4398046511103", "lease", 4_398_046_511_103),
        ("RETRIES -1", "retries", -1),
        ("RETRIES 0", "retries", 0),
        ("RETRIES 2147483647", "retries", 2_147_483_647),
        ("BACKOFF 0 0", "backoff-max", 0),
        ("BACKOFF 0 4398046511103", "backoff-max", 4_398_046_511_103),
        ("BACKOFF 4398046511103 4398046511103", "backoff-base", 4_398_046_511_103),
        ("TTL 0", "ttl", 0),
        ("TTL 4398046511103", "ttl", 4_398_046_511_103),
        ("MAXLEN 0", "maxlen", 0),
        ("MAXLEN 9007199254740991", "maxlen", most),
        ("MAXINFLIGHT 0", "maxinflight", 0),
        ("MAXINFLIGHT 9007199254740991", "maxinflight", most),
        ("DEADLEN -1", "deadlen", -1),
        ("DEADLEN 0", "deadlen", 0),
        ("DEADLEN 9007199254740991", "deadlen", most),
        ("DEDUPE 0", "dedupe", 0),
        ("DEDUPE 604800000", "dedupe", 604_800_000),
        ("BACKOFF 1 2 JITTER 0", "backoff-jitter", 0),
        ("BACKOFF 1 2 JITTER 100", "backoff-jitter", 100),
        ("DEADTTL 0", "deadttl", 0),
        ("DEADTTL 4398046511103", "deadttl", 4_398_046_511_103),
        ("GROUPINFLIGHT 0", "groupinflight", 0),
        ("GROUPINFLIGHT 9007199254740991", "groupinflight", most),
        ("MAXPAYLOAD 0", "maxpayload", 0),
        ("MAXLEASE 0", "maxlease", 0),
        ("MAXLEASE 4398046511103", "maxlease", 4_398_046_511_103),
        ("DELAY 0", "delay", 0),
        ("DELAY 4398046511103", "delay", 4_398_046_511_103),
        ("MAXPAYLOAD 536870912", "maxpayload", 536_870_912),
    ] {
        c.alter(format!("q {words}"));
        assert_eq!(c.about("q").int(field), value, "{words}");
        c.ask("DEL made");
        c.create(format!("made {words}"));
        assert_eq!(c.about("made").int(field), value, "{words}");
    }
}

#[test]
fn what_exists_is_not_made_again() {
    in_both_protocols(|c| {
        c.create("empty LEASE 5000");
        c.push("full x");
        c.ask("SET text x").ok();
        for (key, same, others) in [
            ("empty", " LEASE 5000", ["", " MAXLEN 1", " LEASE 5000 MAXLEN 1"]),
            ("full", "", [" LEASE 5000", " MAXLEN 1", " BACKOFF 1000 3600000 JITTER 1"]),
        ] {
            let (digest, changes) = (c.digest(key), c.changes());
            c.create(format!("{key}{same}"));
            for words in others {
                let error = "QUEUEEXISTS queue exists with other settings: DQ.ALTER changes them";
                assert_eq!(c.ask(format!("DQ.CREATE {key}{words}")).error(), error, "{key}{words}");
            }
            assert_eq!((c.digest(key), c.changes()), (digest, changes));
        }
        let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(c.ask("DQ.CREATE text").error(), wrong);
        assert_eq!(c.ask("GET text"), Reply::bulk("x"));
    });
}

#[test]
fn only_what_is_named_changes() {
    in_both_protocols(|c| {
        c.create("q");
        c.push("q x");
        c.pause("q");
        let mut expected = DEFAULTS;
        for (words, fields) in SETTINGS {
            let before = c.about_but_time("q");
            c.ask(format!("DQ.ALTER q {words}")).ok();
            for (field, value) in fields {
                let place = FIELDS.iter().position(|known| known == field).expect("a field");
                expected[place] = *value;
            }
            assert_eq!(settings(&c.about("q")), expected, "{words}");
            assert_eq!(c.about_but_time("q").without(&FIELDS), before.without(&FIELDS), "{words}");
        }
        c.alter("q LEASE 1 DEADLEN -1");
        let about = c.about("q");
        assert_eq!((about.int("lease"), about.int("deadlen"), about.int("retries")), (1, -1, 3));
    });
}

#[test]
fn altering_nothing_is_fine_and_touches_nothing() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.create("q LEASE 5000 BACKOFF 5 50");
    let (digest, changes) = (c.digest("q"), c.changes());
    watcher.ask("WATCH q").ok();
    for words in ["", " LEASE 5000", " BACKOFF 5 50 MAXLEN 0 DEADLEN -1"] {
        c.alter(format!("q{words}"));
    }
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.digest("q"), c.changes()), (digest, changes));
}

#[test]
fn a_missing_queue_cannot_be_altered() {
    in_both_protocols(|c| {
        for words in ["", " LEASE 5", " MAXLEN 1 TTL 5"] {
            assert_eq!(c.ask(format!("DQ.ALTER absent{words}")).error(), "ERR no such key");
        }
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn one_bad_setting_refuses_them_all() {
    in_both_protocols(|c| {
        c.create("q");
        let digest = c.digest("q");
        for words in ["LEASE 5 RETRIES -2", "MAXLEN 5 BACKOFF 2 1", "DEADLEN 0 TTL", "LEASE 5 BOGUS 1", "TTL 1 TTL 2"] {
            assert!(c.ask(format!("DQ.ALTER q {words}")).error().starts_with("ERR "), "{words}");
            assert!(c.ask(format!("DQ.CREATE new {words}")).error().starts_with("ERR "), "{words}");
        }
        assert_eq!(c.digest("q"), digest);
        assert_eq!(c.ask("EXISTS new"), Reply::Int(0));
    });
}

#[test]
fn a_message_keeps_the_retries_and_ttl_of_its_push() {
    in_both_protocols(|c| {
        c.create("q RETRIES 5 TTL 600000");
        c.push("q x ID old");
        c.push("q x ID own RETRIES 9 TTL 900000");
        c.alter("q RETRIES 0 TTL 1");
        let of = |c: &mut Client, id: &str| {
            let message = c.get("q", id);
            (message.int("retries"), message.int("ttl"))
        };
        assert_eq!((of(c, "old"), of(c, "own")), ((5, 600_000), (9, 900_000)));
        c.push("q x ID new DELAY 600000");
        assert_eq!(of(c, "new"), (0, 1));
        c.pop_one("q");
        assert_eq!(c.nack("q old DELAY 0"), "ready", "it has retries left");
    });
}

#[test]
fn a_lease_is_taken_at_each_delivery() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q LEASE 300000");
    c.push("q x ID m");
    c.push("q x ID own LEASE 900000");
    for lease in [400_000, 500_000] {
        c.alter(format!("q LEASE {lease}"));
        assert_eq!(c.get("q", "m").int("lease"), lease, "the one in force");
        c.expect_ms_from_now(lease, |c| {
            c.pop("q COUNT 2");
            c.get("q", "m").int("deadline")
        });
        for id in ["m", "own"] {
            assert_eq!(c.nack(format!("q {id} DELAY 0")), "ready");
        }
    }
    c.expect_ms_from_now(900_000, |c| {
        c.pop("q COUNT 2");
        c.get("q", "own").int("deadline")
    });
    // A running lease keeps its deadline until it is extended.
    let deadline = c.get("q", "m").int("deadline");
    c.alter("q LEASE 5");
    assert_eq!(c.get("q", "m").int("deadline"), deadline);
    c.alter("q LEASE 700000");
    c.expect_ms_from_now(700_000, |c| c.extend("q m"));
}

#[test]
fn a_backoff_is_taken_at_each_nack() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q BACKOFF 20000 150000");
    c.push("q x ID m");
    let nacked = |c: &mut Client| {
        c.pop_one("q");
        assert_eq!(c.nack("q m"), "delayed");
        c.get("q", "m").int("due")
    };
    c.expect_ms_from_now(20_000, nacked);
    for (backoff, wait) in [("30000 600000", 60_000), ("30000 70000", 70_000)] {
        c.alter(format!("q BACKOFF {backoff}"));
        c.reschedule("q m DELAY 0");
        c.expect_ms_from_now(wait, nacked);
    }
    c.alter("q BACKOFF 0 0");
    c.reschedule("q m DELAY 0");
    c.pop_one("q");
    assert_eq!(c.nack("q m"), "ready");
}

#[test]
fn a_new_maxlen_holds_at_once_and_removes_nothing() {
    in_both_protocols(|c| {
        c.create("q");
        c.push_many("q 3 x x x IDS a b c");
        c.alter("q MAXLEN 2");
        assert_eq!(c.len("q"), 3);
        assert_eq!(c.ask("DQ.PUSH q x").error(), "QUEUEFULL queue holds 3 messages (MAXLEN)");
        c.cancel("q a");
        assert!(c.ask("DQ.PUSH q x").error().starts_with("QUEUEFULL "));
        c.cancel("q b");
        c.push("q x");
        c.alter("q MAXLEN 3");
        c.push("q x");
        c.alter("q MAXLEN 0");
        assert_eq!(c.push_many("q 5 x x x x x").len(), 5);
    });
}

#[test]
fn a_new_maxinflight_holds_at_once_and_takes_nothing_back() {
    in_both_protocols(|c| {
        c.create("q");
        c.push_many("q 5 x x x x x IDS a b c d e");
        c.pop("q COUNT 3 LEASE 600000");
        c.alter("q MAXINFLIGHT 2");
        assert_eq!(c.len("q inflight"), 3);
        for line in ["DQ.POP q", "DQ.POP q NOACK"] {
            assert_eq!(c.ask(line), c.null_array());
        }
        c.ack("q a");
        assert!(c.pop("q").is_empty());
        c.ack("q b");
        assert_eq!(c.pop_ids("q COUNT 5"), ["d"]);
        c.alter("q MAXINFLIGHT 3");
        assert_eq!(c.pop_ids("q COUNT 5"), ["e"]);
        assert_eq!(c.ack("q c d e"), 3);
    });
}

#[test]
fn a_lower_deadlen_drops_the_oldest_in_the_same_command() {
    in_both_protocols(|c| {
        let ids = ["a", "b", "c", "d", "e"];
        c.create("q");
        c.bury("q", &ids);
        let dead = |c: &mut Client| ids.map(|id| c.state("q", id) == "dead");
        let replies = c.multi(&["DQ.ALTER q DEADLEN 3", "DQ.LEN q dead"]);
        assert_eq!(replies[1], Reply::Int(3));
        assert_eq!(dead(c), [false, false, true, true, true]);
        c.alter("q DEADLEN 10");
        assert_eq!(c.len("q dead"), 3, "what was dropped does not come back");
        c.alter("q DEADLEN 1");
        assert_eq!(dead(c), [false, false, false, false, true]);
        c.alter("q DEADLEN 0");
        assert_eq!(c.len("q dead"), 0);
        let about = c.about("q");
        assert_eq!((about.int("died"), about.int("payload-bytes")), (5, 0));
        c.alter("q DEADLEN -1");
        c.bury("q", &["f", "g"]);
        assert_eq!(c.len("q dead"), 2);
    });
}

#[test]
fn the_oldest_are_dropped_before_the_timer_has_looked_too() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETRIES 0");
    c.push_many("q 3 x x x IDS a b c");
    let replies = c.pipeline([
        "DQ.POP q LEASE 300",
        "DQ.POP q LEASE 200",
        "DQ.POP q LEASE 100",
        "DEBUG SLEEP 0.35",
        "DQ.ALTER q DEADLEN 1",
        "DQ.LEN q dead",
        "DQ.PEEK q dead COUNT 5",
    ]);
    assert_eq!(replies[5], Reply::Int(1));
    assert_eq!(replies[6].items().len(), 1);
    assert_eq!(replies[6].items()[0].fields().text("id"), "a", "its lease ended last");
    assert_eq!(c.about("q").int("died"), 3);
}

#[test]
fn altering_never_changes_the_state_of_a_dead_message() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETRIES 0");
    c.push("q x ID spent");
    let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
    c.until_state("q", "spent", "dead");
    c.push("q x ID expired TTL 1");
    c.until_state("q", "expired", "dead");
    c.bury("q", &["rejected"]);
    let ids = ["spent", "expired", "rejected"];
    let before = ids.map(|id| c.get("q", id).without(&["lease"]));
    c.alter("q RETRIES -1 TTL 0 LEASE 600000 BACKOFF 0 0 DEADLEN 3 MAXLEN 1 MAXINFLIGHT 1");
    assert_eq!(ids.map(|id| c.get("q", id).without(&["lease"])), before);
    assert_eq!(c.counts("q"), [0, 0, 0, 3]);
    assert_eq!(c.ack(format!("q {receipt}")), 1, "a late ack still counts");
}

#[test]
fn more_room_wakes_blocked_clients() {
    for words in ["MAXINFLIGHT 2", "MAXINFLIGHT 0"] {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client(), server.client());
        c.create("q MAXINFLIGHT 1");
        c.push_many("q 2 x x IDS a b");
        c.pop_one("q LEASE 600000");
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.alter("q LEASE 600000");
        c.until_blocked(1);
        c.alter(format!("q {words}"));
        assert_eq!(waiting.served().id, "b", "{words}");
    }
}

#[test]
fn creating_an_empty_queue_keeps_its_clients_blocked() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.create("q LEASE 5000");
    c.until_blocked(1);
    c.push("q x ID m");
    assert_eq!(waiting.served().id, "m");
}

#[test]
fn settings_are_effects_only_where_they_change_something() {
    let effects = effects_of(|c| {
        c.create("q LEASE 5000");
        c.alter("q LEASE 6000 MAXLEN 5");
        c.alter("q LEASE 6000");
        c.alter("q");
        assert!(matches!(c.ask("DQ.CREATE q"), Reply::Error(_)));
        assert!(matches!(c.ask("DQ.ALTER absent LEASE 1"), Reply::Error(_)));
    });
    assert_eq!(effects.len(), 2);
}

#[test]
fn a_queue_that_was_made_survives_with_its_settings() {
    for aof in [false, true] {
        let mut server = if aof { Server::with_aof(&[]) } else { Server::start() };
        let mut c = server.client();
        c.create(format!("made {ALL}"));
        c.create("plain");
        c.push("altered x");
        c.alter(format!("altered {ALL}"));
        c.bury("altered", &["a", "b", "c"]);
        c.alter("altered DEADLEN 1");
        // The defaults at the next start must not matter.
        for (parameter, value) in [("dq.default-lease", 1), ("dq.default-retries", 0), ("dq.default-maxlen", 1)] {
            c.configure(parameter, value);
        }
        let digests = ["made", "plain", "altered"].map(|key| c.digest(key));
        if aof {
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let mut c = server.client();
        assert_eq!(["made", "plain", "altered"].map(|key| c.digest(key)), digests);
        assert_eq!(settings(&c.about("made")), ALL_SET);
        assert_eq!(settings(&c.about("plain")), DEFAULTS);
        let mut expected = ALL_SET;
        expected[7] = 1;
        assert_eq!(settings(&c.about("altered")), expected);
        assert_eq!((c.state("altered", "b"), c.state("altered", "c")), ("absent".to_owned(), "dead".to_owned()));
    }
}

#[test]
fn settings_go_with_the_key() {
    let server = Server::start();
    let mut c = server.client();
    c.create(format!("q {ALL}"));
    let dump = c.ask("DUMP q");
    c.cmd(&[b"RESTORE", b"restored".as_slice(), b"0", dump.bytes()]).ok();
    assert_eq!(c.ask("COPY q copied"), Reply::Int(1));
    c.ask("RENAME q renamed").ok();
    for key in ["restored", "copied", "renamed"] {
        assert_eq!(settings(&c.about(key)), ALL_SET, "{key}");
    }
    c.alter("copied LEASE 1");
    assert_eq!(c.about("renamed").int("lease"), 7_001, "a copy is on its own");
    c.create("q");
    assert_eq!(settings(&c.about("q")), DEFAULTS, "a queue made again is new");
}

#[test]
fn it_works_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        let replies =
            c.multi(&["DQ.CREATE q MAXLEN 1", "DQ.CREATE q", "DQ.PUSH q x", "DQ.PUSH q x", "DQ.ALTER q MAXLEN 2"]);
        replies[0].ok();
        assert!(replies[1].error().starts_with("QUEUEEXISTS ") && replies[3].error().starts_with("QUEUEFULL "));
        replies[4].ok();
        c.script("DQ.ALTER q MAXLEN 3").ok();
        c.script("DQ.CREATE other LEASE 5").ok();
        assert!(matches!(c.script("DQ.CREATE other"), Reply::Error(_)));
        assert_eq!((c.about("q").int("maxlen"), c.about("other").int("lease")), (3, 5));
    });
}

#[test]
fn a_ttl_of_a_queue_applies_to_later_pushes() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID before");
    c.alter("q TTL 1");
    c.push("q x ID after");
    c.until_state("q", "after", "dead");
    assert_eq!(c.state("q", "before"), "ready");
    eventually("it is counted", || c.about("q").int("expired") == 1);
}
