//! Each event in each state, as the table in `docs/semantics.md` says, called directly, in MULTI and in scripts.

use crate::support::{eventually, Client, Fields, Protocol, Reply, Server};

/// The state of the message `m` before the event, and how it got there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    Delayed,
    /// Delayed by a nack: it has been delivered, and that delivery was given back.
    Nacked,
    Ready,
    /// Ready because its lease ran out.
    Lapsed,
    Flying,
    /// In flight, with no retries left.
    LastFlight,
    /// Dead by a nack.
    Rejected,
    /// Dead because its last lease ran out.
    Spent,
    /// Dead because its time to live ended while it waited.
    Expired,
    Absent,
}
use Start::*;

/// The reply of a command.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Number(i64),
    Word(&'static str),
    /// An array of one word
    Words(&'static str),
    /// A null, or an array of one
    Nothing,
    /// An instant this many ms after now
    Ahead(i64),
    /// This error
    Refused(&'static str),
}
use Answer::*;

/// The error of a push whose id belongs to a dead message.
const DEAD_ID: &str = "DEADID message m is dead: REPLACE it, or DQ.REDRIVE or DQ.CANCEL it first";

/// A cell of the table: the state before, the command (`{r}` is the receipt of the last delivery), the reply, the state
/// after, and how many acks of that receipt then still count.
type Cell = (Start, &'static str, Answer, &'static str, i64);

const TABLE: &[Cell] = &[
    // ACK
    (Delayed, "DQ.ACK q m", Number(0), "delayed", 0),
    (Nacked, "DQ.ACK q m", Number(0), "delayed", 0),
    (Nacked, "DQ.ACK q {r}", Number(0), "delayed", 0),
    (Ready, "DQ.ACK q m", Number(0), "ready", 0),
    (Lapsed, "DQ.ACK q m", Number(1), "absent", 0),
    (Lapsed, "DQ.ACK q {r}", Number(1), "absent", 0),
    (Flying, "DQ.ACK q m", Number(1), "absent", 0),
    (Flying, "DQ.ACK q {r}", Number(1), "absent", 0),
    (Flying, "DQ.ACK q {r} m {r}", Number(1), "absent", 0),
    (LastFlight, "DQ.ACK q {r}", Number(1), "absent", 0),
    (Rejected, "DQ.ACK q m", Number(0), "dead", 0),
    (Rejected, "DQ.ACK q {r}", Number(0), "dead", 0),
    (Spent, "DQ.ACK q m", Number(1), "absent", 0),
    (Spent, "DQ.ACK q {r}", Number(1), "absent", 0),
    (Expired, "DQ.ACK q m", Number(0), "dead", 0),
    (Absent, "DQ.ACK q m", Number(0), "absent", 0),
    // NACK
    (Delayed, "DQ.NACK q m", Nothing, "delayed", 0),
    (Nacked, "DQ.NACK q {r} DEAD", Nothing, "delayed", 0),
    (Ready, "DQ.NACK q m DELAY 0", Nothing, "ready", 0),
    (Lapsed, "DQ.NACK q m", Nothing, "ready", 1),
    (Lapsed, "DQ.NACK q {r} DEAD", Nothing, "ready", 1),
    (Flying, "DQ.NACK q m", Word("delayed"), "delayed", 0),
    (Flying, "DQ.NACK q {r} DELAY 600000", Word("delayed"), "delayed", 0),
    (Flying, "DQ.NACK q {r} DELAY 0", Word("ready"), "ready", 0),
    (Flying, "DQ.NACK q m DELAY 600000 DEAD", Word("dead"), "dead", 0),
    (Flying, "DQ.NACK q {r} NOCOUNT", Word("ready"), "ready", 0),
    (Flying, "DQ.NACK q m NOCOUNT DELAY 600000", Word("delayed"), "delayed", 0),
    (LastFlight, "DQ.NACK q {r} NOCOUNT", Word("ready"), "ready", 0),
    (Lapsed, "DQ.NACK q {r} NOCOUNT", Nothing, "ready", 1),
    (Nacked, "DQ.NACK q {r} NOCOUNT", Nothing, "delayed", 0),
    (Spent, "DQ.NACK q m NOCOUNT", Nothing, "dead", 1),
    (LastFlight, "DQ.NACK q {r} DELAY 0", Word("dead"), "dead", 0),
    (Rejected, "DQ.NACK q m", Nothing, "dead", 0),
    (Spent, "DQ.NACK q {r}", Nothing, "dead", 1),
    (Expired, "DQ.NACK q m", Nothing, "dead", 0),
    (Absent, "DQ.NACK q m", Nothing, "absent", 0),
    // EXTEND
    (Delayed, "DQ.EXTEND q m", Nothing, "delayed", 0),
    (Nacked, "DQ.EXTEND q {r}", Nothing, "delayed", 0),
    (Ready, "DQ.EXTEND q m", Nothing, "ready", 0),
    (Lapsed, "DQ.EXTEND q m LEASE 600000", Nothing, "ready", 1),
    (Lapsed, "DQ.EXTEND q {r}", Nothing, "ready", 1),
    (Flying, "DQ.EXTEND q m", Ahead(30_000), "inflight", 1),
    (Flying, "DQ.EXTEND q {r} LEASE 700000", Ahead(700_000), "inflight", 1),
    (LastFlight, "DQ.EXTEND q {r} LEASE 700000", Ahead(700_000), "inflight", 1),
    (Rejected, "DQ.EXTEND q m", Nothing, "dead", 0),
    (Spent, "DQ.EXTEND q {r}", Nothing, "dead", 1),
    (Expired, "DQ.EXTEND q m", Nothing, "dead", 0),
    (Absent, "DQ.EXTEND q m", Nothing, "absent", 0),
    // CANCEL
    (Delayed, "DQ.CANCEL q m", Words("delayed"), "absent", 0),
    (Nacked, "DQ.CANCEL q m", Words("delayed"), "absent", 0),
    (Ready, "DQ.CANCEL q m", Words("ready"), "absent", 0),
    (Lapsed, "DQ.CANCEL q m", Words("ready"), "absent", 0),
    (Flying, "DQ.CANCEL q m", Words("inflight"), "absent", 0),
    (LastFlight, "DQ.CANCEL q m", Words("inflight"), "absent", 0),
    (Rejected, "DQ.CANCEL q m", Words("dead"), "absent", 0),
    (Spent, "DQ.CANCEL q m", Words("dead"), "absent", 0),
    (Expired, "DQ.CANCEL q m", Words("dead"), "absent", 0),
    (Absent, "DQ.CANCEL q m", Nothing, "absent", 0),
    // RESCHEDULE
    (Delayed, "DQ.RESCHEDULE q m DELAY 0", Number(1), "ready", 0),
    (Delayed, "DQ.RESCHEDULE q m AT 8000000000000", Number(1), "delayed", 0),
    (Nacked, "DQ.RESCHEDULE q m DELAY 0", Number(1), "ready", 0),
    (Ready, "DQ.RESCHEDULE q m DELAY 600000", Number(1), "delayed", 0),
    (Ready, "DQ.RESCHEDULE q m DELAY 0", Number(1), "ready", 0),
    (Lapsed, "DQ.RESCHEDULE q m DELAY 600000", Number(1), "delayed", 0),
    (Lapsed, "DQ.RESCHEDULE q m DELAY 0", Number(1), "ready", 0),
    (Delayed, "DQ.RESCHEDULE q m PRIORITY 5", Number(1), "delayed", 0),
    (Nacked, "DQ.RESCHEDULE q m PRIORITY 5 DELAY 0", Number(1), "ready", 0),
    (Ready, "DQ.RESCHEDULE q m PRIORITY 5", Number(1), "ready", 0),
    (Ready, "DQ.RESCHEDULE q m AT 8000000000000 PRIORITY -5", Number(1), "delayed", 0),
    (Lapsed, "DQ.RESCHEDULE q m PRIORITY 5", Number(1), "ready", 0),
    (Flying, "DQ.RESCHEDULE q m PRIORITY 5", Number(0), "inflight", 1),
    (Rejected, "DQ.RESCHEDULE q m PRIORITY 5", Number(0), "dead", 0),
    (Spent, "DQ.RESCHEDULE q m PRIORITY 5", Number(0), "dead", 1),
    (Absent, "DQ.RESCHEDULE q m PRIORITY 5", Number(0), "absent", 0),
    (Flying, "DQ.RESCHEDULE q m DELAY 600000", Number(0), "inflight", 1),
    (LastFlight, "DQ.RESCHEDULE q m DELAY 0", Number(0), "inflight", 1),
    (Rejected, "DQ.RESCHEDULE q m DELAY 0", Number(0), "dead", 0),
    (Spent, "DQ.RESCHEDULE q m DELAY 0", Number(0), "dead", 1),
    (Expired, "DQ.RESCHEDULE q m DELAY 600000", Number(0), "dead", 0),
    (Absent, "DQ.RESCHEDULE q m DELAY 0", Number(0), "absent", 0),
    // BURY
    (Delayed, "DQ.BURY q m", Word("delayed"), "dead", 0),
    (Nacked, "DQ.BURY q m ERROR oh", Word("delayed"), "dead", 0),
    (Ready, "DQ.BURY q m", Word("ready"), "dead", 0),
    (Lapsed, "DQ.BURY q m", Word("ready"), "dead", 0),
    (Flying, "DQ.BURY q m", Word("inflight"), "dead", 0),
    (LastFlight, "DQ.BURY q m ERROR oh", Word("inflight"), "dead", 0),
    (Rejected, "DQ.BURY q m ERROR other", Nothing, "dead", 0),
    (Spent, "DQ.BURY q m", Nothing, "dead", 1),
    (Expired, "DQ.BURY q m", Nothing, "dead", 0),
    (Absent, "DQ.BURY q m", Nothing, "absent", 0),
    // PROMOTE
    (Delayed, "DQ.PROMOTE q", Number(1), "ready", 0),
    (Nacked, "DQ.PROMOTE q COUNT 1", Number(1), "ready", 0),
    (Ready, "DQ.PROMOTE q", Number(0), "ready", 0),
    (Lapsed, "DQ.PROMOTE q", Number(0), "ready", 1),
    (Flying, "DQ.PROMOTE q COUNT 9", Number(0), "inflight", 1),
    (Rejected, "DQ.PROMOTE q", Number(0), "dead", 0),
    (Spent, "DQ.PROMOTE q", Number(0), "dead", 1),
    (Expired, "DQ.PROMOTE q", Number(0), "dead", 0),
    (Absent, "DQ.PROMOTE q", Number(0), "absent", 0),
    // REPLACE
    (Delayed, "DQ.PUSH q new ID m REPLACE", Word("m"), "ready", 0),
    (Nacked, "DQ.PUSH q new ID m REPLACE", Word("m"), "ready", 0),
    (Ready, "DQ.PUSH q new ID m REPLACE DELAY 600000", Word("m"), "delayed", 0),
    (Lapsed, "DQ.PUSH q new ID m REPLACE", Word("m"), "ready", 0),
    (Flying, "DQ.PUSH q new ID m REPLACE", Word("m"), "ready", 0),
    (Flying, "DQ.MPUSH q 1 new IDS m REPLACE", Words("m"), "ready", 0),
    (LastFlight, "DQ.PUSH q new ID m REPLACE DELAY 600000", Word("m"), "delayed", 0),
    (Rejected, "DQ.PUSH q new ID m REPLACE", Word("m"), "ready", 0),
    (Spent, "DQ.PUSH q new ID m REPLACE", Word("m"), "ready", 0),
    (Expired, "DQ.MPUSH q 1 new IDS m REPLACE", Words("m"), "ready", 0),
    (Absent, "DQ.PUSH q new ID m REPLACE", Word("m"), "ready", 0),
    // A push of the same name without it.
    (Delayed, "DQ.PUSH q new ID m", Nothing, "delayed", 0),
    (Ready, "DQ.PUSH q new ID m", Nothing, "ready", 0),
    (Lapsed, "DQ.MPUSH q 1 new IDS m", Nothing, "ready", 1),
    (Flying, "DQ.PUSH q new ID m DELAY 5", Nothing, "inflight", 1),
    (Rejected, "DQ.PUSH q new ID m", Refused(DEAD_ID), "dead", 0),
    (Spent, "DQ.PUSH q new ID m", Refused(DEAD_ID), "dead", 1),
    (Expired, "DQ.PUSH q new ID m DELAY 5", Refused(DEAD_ID), "dead", 0),
    // REDRIVE
    (Delayed, "DQ.REDRIVE q", Number(0), "delayed", 0),
    (Ready, "DQ.REDRIVE q IDS 1 m", Number(0), "ready", 0),
    (Lapsed, "DQ.REDRIVE q", Number(0), "ready", 1),
    (Flying, "DQ.REDRIVE q IDS 1 m", Number(0), "inflight", 1),
    (Rejected, "DQ.REDRIVE q", Number(1), "ready", 0),
    (Rejected, "DQ.REDRIVE q DELAY 600000", Number(1), "delayed", 0),
    (Spent, "DQ.REDRIVE q IDS 2 m m", Number(1), "ready", 0),
    (Expired, "DQ.REDRIVE q COUNT 1 DELAY 600000", Number(1), "delayed", 0),
    (Absent, "DQ.REDRIVE q IDS 1 m", Number(0), "absent", 0),
    // PURGE
    (Delayed, "DQ.PURGE q delayed", Number(1), "absent", 0),
    (Delayed, "DQ.PURGE q ready inflight dead", Number(0), "delayed", 0),
    (Nacked, "DQ.PURGE q delayed", Number(1), "absent", 0),
    (Ready, "DQ.PURGE q ready", Number(1), "absent", 0),
    (Ready, "DQ.PURGE q delayed inflight dead", Number(0), "ready", 0),
    (Lapsed, "DQ.PURGE q inflight", Number(0), "ready", 1),
    (Lapsed, "DQ.PURGE q ready", Number(1), "absent", 0),
    (Flying, "DQ.PURGE q inflight", Number(1), "absent", 0),
    (Flying, "DQ.PURGE q delayed ready dead", Number(0), "inflight", 1),
    (Rejected, "DQ.PURGE q dead", Number(1), "absent", 0),
    (Spent, "DQ.PURGE q dead", Number(1), "absent", 0),
    (Spent, "DQ.PURGE q delayed ready inflight", Number(0), "dead", 1),
    (Expired, "DQ.PURGE q", Number(1), "absent", 0),
    (Lapsed, "DQ.PURGE q delayed ready COUNT 5", Number(1), "absent", 0),
    (Flying, "DQ.PURGE q ready COUNT 1", Number(0), "inflight", 1),
    (Spent, "DQ.PURGE q COUNT 1", Number(1), "absent", 0),
    (Absent, "DQ.PURGE q", Number(0), "absent", 0),
    // POP, which takes ready messages only.
    (Delayed, "DQ.POP q", Nothing, "delayed", 0),
    (Flying, "DQ.POP q NOACK", Nothing, "inflight", 1),
    (Rejected, "DQ.MPOP 1 q", Nothing, "dead", 0),
    (Spent, "DQ.POP q", Nothing, "dead", 1),
    (Absent, "DQ.POP q", Nothing, "absent", 0),
];

impl Start {
    /// Makes a queue `q` with `m` in this state. Returns the receipt of its last delivery.
    fn reach(self, c: &mut Client) -> String {
        c.ask("DEL q");
        // The queue exists; missing queues have tests of their own.
        c.create("q BACKOFF 600000 600000");
        let mut deliver = |retries: &str, lease: &str| {
            c.push(format!("q old ID m {retries}"));
            c.pop_one(format!("q LEASE {lease}")).receipt().to_owned()
        };
        match self {
            Nacked | Flying | Rejected => {
                let receipt = deliver("", "600000");
                match self {
                    Nacked => assert_eq!(c.nack("q m DELAY 600000"), "delayed"),
                    Rejected => assert_eq!(c.nack("q m DEAD"), "dead"),
                    _ => (),
                }
                return receipt;
            }
            LastFlight => return deliver("RETRIES 0", "600000"),
            Lapsed => {
                let receipt = deliver("", "1");
                c.until_state("q", "m", "ready");
                return receipt;
            }
            Spent => {
                let receipt = deliver("RETRIES 0", "1");
                c.until_state("q", "m", "dead");
                return receipt;
            }
            Delayed => drop(c.push("q old ID m DELAY 600000")),
            Ready => drop(c.push("q old ID m")),
            Expired => {
                c.push("q old ID m TTL 1");
                c.until_state("q", "m", "dead");
            }
            Absent => (),
        }
        "m#1".to_owned()
    }
}

impl Answer {
    fn fits(self, reply: &Reply, now: std::ops::RangeInclusive<i64>) -> bool {
        match self {
            Number(number) => reply == &Reply::Int(number),
            Word(word) => reply == &Reply::bulk(word),
            Words(word) => reply == &Reply::Array(vec![Reply::bulk(word)]),
            Nothing => {
                reply.is_null()
                    || matches!(reply, Reply::Array(items) if matches!(items.as_slice(), [one] if one.is_null()))
            }
            // A script appends the place where the error was raised.
            Refused(text) => matches!(reply, Reply::Error(error) if error.starts_with(text)),
            Ahead(ms) => matches!(reply, Reply::Int(instant) if now.contains(&(instant - ms))),
        }
    }

    fn is_nothing(self) -> bool {
        matches!(self, Nothing | Number(0) | Refused(_))
    }
}

/// How a command is sent to the server.
type Way = fn(&mut Client, &str) -> Reply;

const ALONE: Way = |c, line| c.ask(line);
const IN_A_TRANSACTION: Way = |c, line| c.multi(&["PING", line, "PING"]).remove(1);
const IN_A_SCRIPT: Way = |c, line| c.script(line);

/// Runs the whole table.
fn expect_table(protocol: Protocol, way: Way) {
    let server = Server::start();
    let mut c = server.client_with(protocol);
    for (from, line, answer, then, late_acks) in TABLE {
        let receipt = from.reach(&mut c);
        let place = format!("{from:?}: {line}");
        let said = line.replace("{r}", &receipt);
        let before = (c.digest("q"), c.changes(), c.info("replication", "master_repl_offset"));
        let known = c.ask("DQ.GET q m");
        let start = c.now();
        let reply = way(&mut c, &said);
        let end = c.now();
        assert!(answer.fits(&reply, start..=end), "{place}: {reply:?} is not {answer:?}");
        assert_eq!(c.state("q", "m"), *then, "{place}");
        if answer.is_nothing() {
            let after = (c.digest("q"), c.changes(), c.info("replication", "master_repl_offset"));
            // A duplicate counts as one, and a count is part of what the queue holds.
            let duplicate = line.contains("PUSH");
            assert!(after == before || duplicate, "{place} changed something");
            assert_eq!(c.ask("DQ.GET q m"), known, "{place}");
        }
        assert_eq!(c.ack(format!("q {receipt}")), *late_acks, "{place}, then an ack");
    }
}

#[test]
fn every_command_does_in_every_state_what_the_table_says() {
    expect_table(Protocol::Resp2, ALONE);
    expect_table(Protocol::Resp3, ALONE);
}

#[test]
fn in_a_transaction_too() {
    expect_table(Protocol::Resp2, IN_A_TRANSACTION);
    expect_table(Protocol::Resp3, IN_A_TRANSACTION);
}

#[test]
fn in_a_script_too() {
    expect_table(Protocol::Resp2, IN_A_SCRIPT);
    expect_table(Protocol::Resp3, IN_A_SCRIPT);
}

/// A change that time makes: the commands before it, sent in one transaction, and the state of `m` after it.
struct Event {
    commands: &'static [&'static str],
    /// The state at first
    from: &'static str,
    then: &'static str,
    /// The reason of its death
    reason: Option<&'static str>,
    /// Whether the previous delivery can still be acked
    late_acks: i64,
}

const fn event(
    commands: &'static [&'static str],
    from: &'static str,
    then: &'static str,
    reason: Option<&'static str>,
    late_acks: i64,
) -> Event {
    Event { commands, from, then, reason, late_acks }
}

const POP: &str = "DQ.POP q LEASE 400";

const BY_TIME: &[Event] = &[
    // Its due time comes.
    event(&["DQ.PUSH q x ID m DELAY 400"], "delayed", "ready", None, 0),
    event(&["DQ.PUSH q x ID m", POP, "DQ.NACK q m DELAY 400"], "delayed", "ready", None, 0),
    event(&["DQ.PUSH q x ID m", "DQ.RESCHEDULE q m DELAY 400"], "delayed", "ready", None, 0),
    event(&["DQ.PUSH q x ID m", POP, "DQ.NACK q m DEAD", "DQ.REDRIVE q DELAY 400"], "delayed", "ready", None, 0),
    // Its lease ends, with retries left and with none.
    event(&["DQ.PUSH q x ID m RETRIES 1", POP], "inflight", "ready", None, 1),
    event(&["DQ.PUSH q x ID m RETRIES -1", POP], "inflight", "ready", None, 1),
    event(&["DQ.PUSH q x ID m RETRIES 0", POP], "inflight", "dead", Some("retries"), 1),
    // Its time to live ends while it waits.
    event(&["DQ.PUSH q x ID m TTL 400"], "ready", "dead", Some("expired"), 0),
    event(&["DQ.PUSH q x ID m TTL 400", POP, "DQ.NACK q m DELAY 600000"], "delayed", "dead", Some("expired"), 0),
    event(&["DQ.PUSH q x ID m TTL 400", POP, "DQ.NACK q m DELAY 0"], "ready", "dead", Some("expired"), 0),
    // It ends in flight: nothing, until the lease ends.
    event(&["DQ.PUSH q x ID m TTL 300 RETRIES 5", POP], "inflight", "dead", Some("expired"), 1),
];

/// Checks all changes that time makes, reading the state in the given way.
fn expect_by_time(protocol: Protocol, look: Way) {
    let server = Server::start();
    let mut c = server.client_with(protocol);
    for Event { commands, from, then, reason, late_acks } in BY_TIME {
        c.ask("DEL q");
        let mut lines = commands.to_vec();
        lines.push("DQ.GET q m");
        // In one transaction, so that the time cannot come in between on a slow machine.
        let replies = c.multi(&lines);
        let first = replies[replies.len() - 1].fields();
        assert_eq!(first.text("state"), *from, "{commands:?}");
        let receipt = replies.iter().find_map(receipt_in).unwrap_or_else(|| "m#1".to_owned());
        let fields = |c: &mut Client| look(c, "DQ.GET q m").fields();
        eventually(&format!("{commands:?}: {then}"), || fields(&mut c).text("state") == *then);
        let last = fields(&mut c);
        assert_eq!(last.int("due"), first.int("due"), "{commands:?}: its due time is unchanged");
        assert_eq!(last.int("attempt"), first.int("attempt"), "{commands:?}");
        let died_of = last.has("reason").then(|| last.text("reason"));
        assert_eq!(died_of.as_deref(), *reason, "{commands:?}");
        expect_never_early(&mut c, &first, &last);
        assert_eq!(c.ack(format!("q {receipt}")), *late_acks, "{commands:?}");
    }
}

/// The receipt in the reply of a pop.
fn receipt_in(reply: &Reply) -> Option<String> {
    let Reply::Array(messages) = reply else { return None };
    let Some(Reply::Array(message)) = messages.first() else { return None };
    Some(message[3].text())
}

/// Checks that a change was seen at or after its time, by the server's clock.
#[track_caller]
fn expect_never_early(c: &mut Client, first: &Fields, last: &Fields) {
    let now = c.latest_now();
    let instant = match (last.text("state").as_str(), first.text("state").as_str()) {
        ("dead", _) => last.int("died"),
        ("ready", "inflight") => first.int("deadline"),
        ("ready", _) => last.int("due"),
        _ => return,
    };
    assert!(now >= instant, "{} ms early: {last:?}", instant - now);
}

#[test]
fn time_does_in_every_state_what_the_table_says() {
    expect_by_time(Protocol::Resp2, ALONE);
    expect_by_time(Protocol::Resp3, ALONE);
}

#[test]
fn transactions_and_scripts_see_what_time_did() {
    expect_by_time(Protocol::Resp2, IN_A_TRANSACTION);
    expect_by_time(Protocol::Resp3, IN_A_SCRIPT);
}

#[test]
fn what_leaves_flight_after_its_time_to_live_is_dead() {
    for (line, reason) in [
        ("DQ.NACK q m DELAY 0", "expired"),
        ("DQ.NACK q m DELAY 600000", "expired"),
        ("DQ.NACK q m DEAD", "rejected"),
        ("DQ.EXTEND q m LEASE 1", "expired"),
    ] {
        for way in [ALONE, IN_A_TRANSACTION, IN_A_SCRIPT] {
            let server = Server::start();
            let mut c = server.client();
            c.multi(&["DQ.PUSH q x ID m TTL 300 RETRIES -1", "DQ.POP q LEASE 600000"]);
            let end = c.get("q", "m").int("created") + 300;
            c.until_after(end);
            assert_eq!(c.state("q", "m"), "inflight");
            assert!(!way(&mut c, line).is_null(), "{line}");
            c.until_state("q", "m", "dead");
            assert_eq!(c.get("q", "m").text("reason"), reason, "{line}");
        }
    }
}

#[test]
fn a_lease_that_ends_returns_a_message_to_its_place() {
    let server = Server::start();
    let mut c = server.client();
    for (id, at, priority) in [("m", 2, 0), ("before", 1, 0), ("after", 3, 0), ("low", 0, -1)] {
        c.push(format!("q x ID {id} AT 100000000000{at} PRIORITY {priority}"));
    }
    assert_eq!(c.pop_ids("q COUNT 2 LEASE 1"), ["before", "m"]);
    c.until_state("q", "m", "ready");
    c.until_state("q", "before", "ready");
    assert_eq!(c.pop_ids("q COUNT 5"), ["before", "m", "after", "low"]);
}
