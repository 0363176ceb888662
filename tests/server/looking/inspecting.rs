//! DQ.LEN, DQ.GET, DQ.INFO and INFO: every message and count can be read, and reading changes nothing.

use crate::support::{eventually, every_state, in_both_protocols, setting_parameters, Client, Protocol, Reply, Server};

const ALWAYS: [&str; 11] =
    ["attempt", "created", "due", "id", "lease", "next", "payload", "priority", "retries", "state", "ttl"];

const COUNTS: [&str; 46] = [
    "delayed",
    "groups",
    "blocked",
    "known",
    "batches",
    "ready",
    "inflight",
    "dead",
    "done",
    "payload-bytes",
    "next-due",
    "oldest-ready",
    "waiting-clients",
    "oldest-inflight",
    "oldest-dead",
    "newest-dead",
    "last-death",
    "last-delivery",
    "schedules",
    "consumers",
    "paused-groups",
    "paused",
    "paused-until",
    "closed",
    "closed-until",
    "next-delivery",
    "pushed",
    "duplicates",
    "delivered",
    "acked",
    "nacked",
    "given-back",
    "lease-expired",
    "died",
    "expired",
    "redriven",
    "cancelled",
    "rejected-full",
    "forward",
    "forward-error",
    "forward-failing-since",
    "deadforward",
    "deadforward-error",
    "deadforward-failing-since",
    "forwarded",
    "deadforwarded",
];

#[test]
fn len_counts_one_state_or_all_pending_messages() {
    in_both_protocols(|c| {
        let cast = every_state(c, "q");
        for (state, count) in
            [("delayed", cast.delayed), ("ready", cast.ready), ("inflight", cast.inflight), ("dead", cast.dead)]
        {
            assert_eq!(c.ask(format!("DQ.LEN q {state}")), Reply::Int(count), "{state}");
            assert_eq!(c.about("q").int(state), count, "{state}");
        }
        assert_eq!(c.len("q"), cast.delayed + cast.ready + cast.inflight);
        assert_eq!(c.len("q READY"), cast.ready, "in any case");
    });
}

#[track_caller]
fn expect_fields(c: &mut Client, id: &str, state: &str, extra: &[&str]) {
    let message = c.get("q", id);
    assert_eq!(message.text("state"), state, "{id}");
    let mut expected: Vec<&str> = ALWAYS.iter().chain(extra).copied().collect();
    expected.sort_unstable();
    assert_eq!(message.names(), expected, "{id}");
}

#[test]
fn a_message_shows_what_applies_in_its_state() {
    in_both_protocols(|c| {
        every_state(c, "q");
        expect_fields(c, "later", "delayed", &[]);
        expect_fields(c, "retried", "delayed", &["error", "errors"]);
        expect_fields(c, "replaced", "ready", &[]);
        expect_fields(c, "lapsed", "ready", &[]);
        expect_fields(c, "held", "inflight", &["deadline", "receipt"]);
        expect_fields(c, "spent", "dead", &["died", "lease-expired", "reason"]);
        expect_fields(c, "expired", "dead", &["died", "reason"]);
        expect_fields(c, "rejected", "dead", &["died", "error", "errors", "reason"]);
    });
}

#[test]
fn a_message_is_a_map_or_a_resp2_array() {
    in_both_protocols(|c| {
        c.push("q hello ID m PRIORITY -3 DELAY 600000 RETRIES 4 LEASE 5 TTL 6");
        for line in ["DQ.GET q m", "DQ.INFO q", "DQ.STATS q"] {
            let reply = c.ask(line);
            let fits = match c.protocol() {
                Protocol::Resp2 => matches!(reply, Reply::Array(_)),
                Protocol::Resp3 => matches!(reply, Reply::Map(_)),
            };
            assert!(fits, "{line}: {reply:?}");
        }
        let message = c.get("q", "m");
        for (field, text) in [("id", "m"), ("state", "delayed"), ("payload", "hello")] {
            assert_eq!(message.get(field), &Reply::bulk(text));
        }
        for (field, number) in [("priority", -3), ("attempt", 0), ("retries", 4), ("lease", 5), ("ttl", 6)] {
            assert_eq!(message.get(field), &Reply::Int(number));
        }
        assert!(message.int("created") <= c.now());
        assert_eq!(message.int("due"), message.int("created") + 600_000);
    });
}

#[test]
fn a_message_in_flight_shows_its_receipt_and_its_deadline() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
        let deadline = c.extend("q m LEASE 700000");
        let message = c.get("q", "m");
        assert_eq!(message.get("receipt"), &Reply::bulk(&receipt));
        assert_eq!(message.get("deadline"), &Reply::Int(deadline));
        assert_eq!(message.int("attempt"), 1);
        assert!(c.ask(format!("DQ.GET q {receipt}")).error().starts_with("ERR a receipt is not an id"));
    });
}

#[test]
fn a_generated_id_is_looked_up_like_a_name() {
    let server = Server::start();
    let mut c = server.client();
    let ids: Vec<String> = c.pipeline((0..500).map(|n| format!("DQ.PUSH q p{n}"))).iter().map(Reply::text).collect();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(c.get("q", id).text("payload"), format!("p{n}"));
    }
}

#[test]
fn a_queue_shows_all_that_is_documented() {
    in_both_protocols(|c| {
        c.push("q x");
        let settings = setting_parameters();
        let mut expected: Vec<&str> = settings.iter().map(|setting| setting.field.as_str()).chain(COUNTS).collect();
        expected.sort_unstable();
        assert_eq!(c.about("q").names(), expected);
    });
}

#[test]
fn an_empty_queue_shows_nothing_due_and_nothing_ready() {
    in_both_protocols(|c| {
        c.push("q x");
        c.pop_one("q NOACK");
        let about = c.about("q");
        assert_eq!(about.get("next-due"), &c.null());
        assert_eq!(about.get("oldest-ready"), &c.null());
        assert_eq!(about.int("payload-bytes"), 0);
        assert_eq!(about.int("paused"), 0);
    });
}

#[test]
fn a_queue_shows_its_next_due_and_oldest_ready() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q 12345 ID late DELAY 700000");
    c.push("q 123 ID soon DELAY 600000 PRIORITY -9");
    let about = c.about("q");
    assert_eq!(about.int("next-due"), c.get("q", "soon").int("due"));
    assert_eq!(about.int("payload-bytes"), 8);
    assert!(about.get("oldest-ready").is_null());
    let due = c.now() - 50_000;
    c.push(format!("q x ID ready AT {due}"));
    c.push("q x ID newer PRIORITY 9");
    let before = c.now();
    let oldest = c.about("q").int("oldest-ready");
    let after = c.now();
    assert!(before - due <= oldest && oldest <= after - due, "{oldest}");
}

#[test]
fn a_queue_shows_the_age_of_its_oldest_running_delivery() {
    let server = Server::start();
    let mut c = server.client();
    ["a", "b", "c"].into_iter().for_each(|id| drop(c.push(format!("q x ID {id}"))));
    assert!(c.about("q").get("oldest-inflight").is_null());
    let mut began = Vec::new();
    for id in ["a", "b", "c"] {
        let before = c.now();
        assert_eq!(c.pop_ids("q LEASE 600000"), [id]);
        began.push((before, c.now()));
        let now = c.now();
        c.until_after(now);
    }
    let expect_since = |c: &mut Client, (after, by): (i64, i64)| {
        let asked = c.now();
        let age = c.about("q").int("oldest-inflight");
        let answered = c.now();
        assert!(asked - by <= age && age <= answered - after, "{age}");
    };
    expect_since(&mut c, began[0]);
    c.extend("q a LEASE 700000");
    expect_since(&mut c, began[0]);
    c.nack("q a DELAY 600000");
    expect_since(&mut c, began[1]);
    c.ask("DEBUG RELOAD").ok();
    expect_since(&mut c, began[1]);
    c.ack("q b");
    expect_since(&mut c, began[2]);
    c.purge("q inflight");
    assert!(c.about("q").get("oldest-inflight").is_null());
}

#[test]
fn a_queue_shows_when_messages_died_and_were_delivered_last() {
    let server = Server::start();
    let mut c = server.client();
    let fields = ["oldest-dead", "newest-dead", "last-death", "last-delivery"];
    // When each field says that something happened, as an instant by the clock of the server.
    let instants = |c: &mut Client| {
        let (asked, about, answered) = (c.now(), c.about("q"), c.now());
        fields
            .map(|field| (!about.get(field).is_null()).then(|| (asked - about.int(field), answered - about.int(field))))
    };
    let is_at = |shown: Option<(i64, i64)>, (from, to): (i64, i64)| shown.is_some_and(|(a, b)| a <= to && from <= b);
    c.push_many("q 3 x x x IDS a b c");
    assert_eq!(instants(&mut c), [None; 4]);
    let mut died = Vec::new();
    for id in ["a", "b"] {
        let before = c.now();
        c.ask(format!("DQ.BURY q {id}"));
        died.push((before, c.now()));
        let now = c.now();
        c.until_after(now);
    }
    let shown = instants(&mut c);
    assert!(is_at(shown[0], died[0]) && is_at(shown[1], died[1]) && is_at(shown[2], died[1]), "{shown:?} {died:?}");
    c.ask("DQ.REDRIVE q IDS 1 b");
    let shown = instants(&mut c);
    assert!(is_at(shown[1], died[0]) && is_at(shown[2], died[1]), "who is redriven has died: {shown:?}");
    assert_eq!(shown[3], None);
    let before = c.now();
    c.pop("q NOACK");
    let delivered = (before, c.now());
    assert!(is_at(instants(&mut c)[3], delivered));
    c.purge("q");
    let shown = instants(&mut c);
    assert!(shown[0].is_none() && is_at(shown[2], died[1]) && is_at(shown[3], delivered), "{shown:?}");
    // A TTL and spent retries are deaths, too, before the timer has looked.
    let before = c.now();
    let replies = c.pipeline(["DQ.PUSH q x TTL 1", "DEBUG SLEEP 0.01", "DQ.INFO q"]);
    let age = replies[2].fields().int("last-death");
    assert!(0 <= age && age <= c.now() - before, "{age}");
    c.ask("DEBUG RELOAD").ok();
    let shown = instants(&mut c);
    assert!(shown[0].is_some() && shown[3].is_none(), "a server that has loaded it has delivered nothing: {shown:?}");
}

#[test]
fn schedules_consumers_and_paused_groups_are_counted() {
    let server = Server::start();
    let mut c = server.client();
    let counts = |c: &mut Client| {
        let about = c.about("q");
        let sums = ["schedules", "consumers", "paused_groups"].map(|name| c.info("dq", &format!("dq_{name}")));
        let counts = ["schedules", "consumers", "paused-groups"].map(|field| about.int(field));
        assert_eq!(counts.map(|count| count.to_string()), sums, "one queue is the sum");
        counts
    };
    c.create("q");
    assert_eq!(counts(&mut c), [0, 0, 0]);
    c.ask("DQ.SCHEDULE q s x EVERY 600000");
    c.push_many("q 3 x x x GROUP g");
    c.ask("DQ.ALTER q GROUPINFLIGHT 0");
    c.pop("q COUNT 2 LEASE 600000 AS one");
    c.pop("q LEASE 600000 AS two");
    c.ask("DQ.PAUSE q GROUP g");
    c.ask("DQ.PAUSE q GROUP h FOR 20");
    assert_eq!(counts(&mut c)[..2], [1, 2]);
    eventually("one pause has ended", || counts(&mut c) == [1, 2, 1]);
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(counts(&mut c), [1, 2, 1]);
    c.ask("DQ.RELEASE q two");
    c.ask("DQ.CANCEL q s");
    c.ask("DQ.RESUME q GROUP g");
    assert_eq!(counts(&mut c), [0, 1, 0]);
    c.purge("q");
    assert_eq!(counts(&mut c), [0, 0, 0]);
}

#[test]
fn a_queue_shows_how_many_clients_are_blocked_on_it() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x DELAY 600000");
    c.push("r x DELAY 600000");
    let counts = |c: &mut Client| [c.about("q").int("waiting-clients"), c.about("r").int("waiting-clients")];
    assert_eq!(counts(&mut c), [0, 0]);
    let (mut both, mut one, mut gone) = (server.client(), server.client(), server.client());
    both.send("DQ.MPOP 3 q r q BLOCK 0");
    c.until_blocked(1);
    one.send("DQ.POP q BLOCK 0");
    c.until_blocked(2);
    gone.send("DQ.POP r BLOCK 0");
    c.until_blocked(3);
    assert_eq!(counts(&mut c), [2, 2]);
    drop(gone);
    c.until_blocked(2);
    assert_eq!(counts(&mut c), [2, 1]);
    c.push("r x");
    assert_eq!(both.served_from_any().0, "r");
    assert_eq!(counts(&mut c), [1, 0]);
    // Blocked clients stay with the name and the database.
    c.ask("SWAPDB 0 1").ok();
    c.push("q x DELAY 600000");
    c.push("r x DELAY 600000");
    assert_eq!(counts(&mut c), [1, 0]);
    c.ask("SELECT 1").ok();
    assert_eq!(counts(&mut c), [0, 0]);
}

#[test]
fn the_totals_tell_the_story_of_a_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxlen", 4);
    c.push("q x ID a");
    c.push("q x ID a REPLACE");
    c.ask("DQ.PUSH q x ID a");
    c.push("q x ID b");
    c.push("q x ID c TTL 5 DELAY 600000");
    c.push("q x ID d RETRIES 0");
    assert!(matches!(c.ask("DQ.PUSH q x"), Reply::Error(_)));
    assert_eq!(c.pop_ids("q COUNT 2"), ["a", "b"]);
    assert_eq!(c.ack("q a"), 1);
    assert_eq!(c.nack("q b DELAY 1"), "delayed");
    c.until_state("q", "b", "ready");
    assert_eq!(c.pop_ids("q NOACK"), ["d"]);
    assert_eq!(c.pop_ids("q"), ["b"]);
    assert_eq!(c.nack("q b DEAD"), "dead");
    c.push("q x ID e TTL 1");
    c.push("q x ID f RETRIES 0 PRIORITY 1");
    assert_eq!(c.pop_ids("q LEASE 1"), ["f"]);
    let expected = [
        ("pushed", 7),
        ("duplicates", 1),
        ("delivered", 5),
        ("acked", 1),
        ("nacked", 2),
        ("lease-expired", 1),
        ("died", 3),
        ("expired", 1),
        ("redriven", 0),
        ("cancelled", 0),
        ("rejected-full", 1),
    ];
    eventually("what time does is counted too", || {
        let about = c.about("q");
        expected.iter().all(|(name, count)| about.int(name) == *count)
    });
}

#[test]
fn looking_changes_nothing() {
    let server = Server::start();
    let mut c = server.client();
    let cast = every_state(&mut c, "q");
    let look = |c: &mut Client| {
        for id in &cast.ids {
            c.get("q", id);
        }
        for line in
            ["DQ.LEN q", "DQ.LEN q ready", "DQ.LEN q dead", "DQ.INFO q", "DQ.STATS q", "DQ.GET q nobody", "INFO dq"]
        {
            c.ask(line);
        }
    };
    let (digest, about, portraits) = (c.digest("q"), c.about_but_time("q"), cast.portraits(&mut c, "q"));
    let changes = c.info("persistence", "rdb_changes_since_last_save");
    let offset = c.info("replication", "master_repl_offset");
    let mut watcher = server.client();
    watcher.ask("WATCH q").ok();
    look(&mut c);
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())], "no watcher was touched");
    assert_eq!(c.info("persistence", "rdb_changes_since_last_save"), changes);
    assert_eq!(c.info("replication", "master_repl_offset"), offset);
    assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
    assert_eq!(cast.portraits(&mut c, "q"), portraits);
    cast.expect_alive(&mut c, "q");
}

#[test]
fn the_server_tells_of_all_queues_together() {
    let server = Server::start();
    let mut c = server.client();
    assert_eq!(c.info("dq", "dq_queues"), "0");
    c.push("a 12345");
    c.push("a 123 DELAY 600000");
    c.push("b x");
    c.pop_one("b");
    c.push("b 12");
    c.pop_one("b");
    let dead = c.push("b 1234 ID dead");
    c.pop_one("b");
    c.nack(format!("b {dead} DEAD"));
    assert!(c.ask("INFO dq").text().starts_with("# dq\r\n"));
    let fields = ["dq_queues", "dq_delayed", "dq_ready", "dq_inflight", "dq_dead"];
    assert_eq!(fields.map(|field| c.info("dq", field)), ["2", "1", "1", "2", "1"]);
    assert_eq!(c.info("dq", "dq_payload_bytes"), "15");
    let totals = ["pushed", "delivered", "acked", "nacked", "died"];
    assert_eq!(totals.map(|total| c.info("dq", &format!("dq_total_{total}"))), ["5", "3", "0", "1", "1"]);
    assert_eq!(c.redrive("b"), 1);
    assert_eq!(c.cancel("b dead"), ["ready"]);
    assert_eq!(["redriven", "cancelled"].map(|total| c.info("dq", &format!("dq_total_{total}"))), ["1", "1"]);
    c.bury("b", &["dead"]);
    for field in ["runs", "moved", "last_us", "longest_us", "over_budget"] {
        let value = c.info("dq", &format!("dq_timer_{field}"));
        assert!(value.parse::<u64>().is_ok(), "dq_timer_{field}: {value:?}");
    }
    c.ask("DEL a");
    eventually("one is left", || fields.map(|field| c.info("dq", field)) == ["1", "0", "0", "2", "1"]);
    c.ask("FLUSHALL SYNC");
    eventually("nothing is left", || fields.iter().all(|field| c.info("dq", field) == "0"));
}

/// Ways in which queues come, change and go.
const COMINGS_AND_GOINGS: [&str; 24] = [
    "DQ.PUSH pushed 123",
    "DQ.MPUSH batch 3 a bc def",
    "DQ.MPUSH late 2 a bc DELAY 600000",
    "DQ.MPUSH batch 2 x y IDS one two",
    "DQ.MPUSH batch 2 xyz y IDS one two REPLACE",
    "DQ.POP batch COUNT 2 LEASE 600000",
    "DQ.CREATE made RETRIES 0",
    "DQ.PUSH made poison",
    "DQ.POP made LEASE 1",
    "COPY batch copy",
    "COPY batch late REPLACE",
    "RENAME copy made",
    "DQ.PURGE pushed",
    "DQ.MPUSH pushed 1 again",
    "SET late x",
    "UNLINK batch",
    "DQ.MPUSH batch 1 new",
    "MOVE batch 1",
    "DEBUG RELOAD",
    "DQ.MPUSH other 1 x",
    "SWAPDB 0 1",
    "DQ.MPUSH batch 2 x y",
    "SWAPDB 0 1",
    "FLUSHALL ASYNC",
];

#[test]
fn server_totals_are_the_sums_however_queues_come_and_go() {
    let server = Server::start();
    let replica = Server::replica_of(&server, &[]);
    let (mut c, mut r) = (server.client(), replica.client());
    let told = ["delayed", "ready", "inflight", "dead", "payload_bytes"];
    let sums = |c: &mut Client| {
        let mut sums = [0; 5];
        for db in ["0", "1"] {
            c.ask(format!("SELECT {db}")).ok();
            for key in c.ask("SCAN 0 TYPE DQ--queue COUNT 1000").items()[1].items() {
                let about = c.about(&key.text());
                told.iter().zip(&mut sums).for_each(|(field, sum)| *sum += about.int(&field.replace('_', "-")));
            }
        }
        c.ask("SELECT 0").ok();
        sums.map(|sum| sum.to_string())
    };
    for line in COMINGS_AND_GOINGS {
        assert!(!c.ask(line).is_error(), "{line}");
        // Changes by time and frees in the background take a moment.
        eventually(line, || told.map(|field| c.info("dq", &format!("dq_{field}"))) == sums(&mut c));
        assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
        eventually(line, || told.map(|field| r.info("dq", &format!("dq_{field}"))) == sums(&mut r));
    }
    let totals = ["pushed", "delivered"].map(|total| format!("dq_total_{total}"));
    assert_eq!(totals.clone().map(|total| c.info("dq", &total)), totals.map(|total| r.info("dq", &total)));
}
