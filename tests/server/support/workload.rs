//! A workload of every command with every option, for tests that ask only that the server survives and that its data
//! stays whole. `every_command_and_option_is_drawn` fails if a command or an option is missing here.

use super::random::Random;

/// The words of a command before its options, and its options, of which any may follow.
type Form = (&'static str, &'static [&'static str]);

const NAMES: &[&str] = &["m1", "m2", "m3"];

const SETTINGS: &[&str] = &[
    "LEASE 20",
    "RETRIES 1",
    "BACKOFF 5 50 JITTER 20",
    "TTL 5000",
    "MAXLEN 200",
    "MAXINFLIGHT 50",
    "RATE 500 20",
    "GROUPRATE 5 20",
    "DEADLEN 5",
    "DEADTTL 50",
    "RETAIN 50",
    "DONELEN 5",
    "MAXPAYLOAD 100",
    "GROUPINFLIGHT 2",
    "ERRORS 3",
    "GROUPORDER DUE",
    "GROUPORDER TURN",
    "DEDUPE 40",
    "MAXLEASE 1000",
    "DELAY 3",
    "FORWARD STREAM {other}:stream TRIM 20",
    "FORWARD LIST {other}:list LEFT REGISTER {other}:set member",
    "FORWARD LIST {other}:list RIGHT",
    "FORWARD CHANNEL channel",
    "FORWARD NONE",
    "FORWARD NONE",
    "DEADFORWARD STREAM {other}:stream TRIM 20",
    "DEADFORWARD LIST {other}:list LEFT",
    "DEADFORWARD LIST {other}:list RIGHT",
    "DEADFORWARD QUEUE {other}",
    "DEADFORWARD NONE",
    "DEADFORWARD NONE",
];

const PUSHED: &[&str] = &[
    "DELAY 5",
    "AT 1000000001000",
    "PRIORITY 9",
    "RETRIES 0",
    "LEASE 20",
    "TTL 3",
    "RETAIN 30",
    "GROUP g",
    "BATCH b",
    "HEADERS 2 a 1 b 2",
    "ATTEMPT 2",
    "ERROR oh",
    "CHECKPOINT half",
    "DEAD REASON RETRIES",
    "DEAD REASON REJECTED",
    "DEAD REASON EXPIRED",
];

/// For messages with ids of their own.
const REPLACING: &[&str] = &["REPLACE", "REPLACE LATER", "REPLACE MAXWAIT 30", "DELAY 5"];

const POPPED: &[&str] = &["COUNT 3", "LEASE 5", "BLOCK 1", "META", "AS w"];

const FORMS: &[Form] = &[
    ("DQ.PUSH {key} payload ID {id}", PUSHED),
    ("DQ.PUSH {key} payload ID {id}", REPLACING),
    ("DQ.PUSH {key} payload", PUSHED),
    ("DQ.MPUSH {key} 2 x y", PUSHED),
    ("DQ.MPUSH {key} 2 x y IDS {id} z", REPLACING),
    (
        "DQ.SCHEDULE {key} s x EVERY 30",
        &["OFFSET 7", "AT 1000000001000", "UNTIL 8000000000000", "TIMES 2", "PRIORITY 3"],
    ),
    ("DQ.SCHEDULE {key} s x EVERY 20", &["RETRIES 0", "LEASE 5", "TTL 5", "GROUP g", "HEADERS 1 a 1"]),
    ("DQ.SCHEDULE {key} c x CRON @hourly", &["TZ Asia/Tokyo"]),
    ("DQ.POP {key}", POPPED),
    ("DQ.POP {key}", &["COUNT 5", "NOACK"]),
    ("DQ.POP {key} COUNT 3 MIN 2 LINGER 1", &["BLOCK 1"]),
    ("DQ.MPOP 2 {key} {other}", POPPED),
    ("DQ.MPOP 2 {key} {other} COUNT 3 MIN 2 LINGER 1", &[]),
    ("DQ.MPOP 2 {key} {other}", &["NOACK"]),
    ("DQ.ACK {key} {id} s", &[]),
    ("DQ.ACKPOP {key} 1 {id}", POPPED),
    ("DQ.ACKPOP {key} 1 {id} COUNT 3 MIN 2 LINGER 1", &[]),
    ("DQ.COMPLETE {key} {id}", &["RESULT done", "RETAIN 30"]),
    ("DQ.NACK {key} {id}", &["DELAY 5", "ERROR oh", "CHECKPOINT half"]),
    ("DQ.NACK {key} {id} DEAD", &["ERROR bad"]),
    ("DQ.NACK {key} {id} NOCOUNT", &["DELAY 5"]),
    ("DQ.EXTEND {key} {id}", &["LEASE 30", "CHECKPOINT half"]),
    ("DQ.MEXTEND {key} 2 {id} s", &["LEASE 30"]),
    ("DQ.CANCEL {key} {id}", &[]),
    ("DQ.RESCHEDULE {key} {id} DELAY 5", &["PRIORITY 2"]),
    ("DQ.RESCHEDULE {key} {id} AT 1000000001000", &[]),
    ("DQ.PROMOTE {key}", &["COUNT 1", "UNTIL 8000000000000"]),
    ("DQ.BURY {key} {id}", &["ERROR bad"]),
    ("DQ.REDRIVE {key}", &["COUNT 1", "DELAY 5", "OLDER 5", "REASON retries"]),
    ("DQ.REDRIVE {key}", &["REASON rejected"]),
    ("DQ.REDRIVE {key} REASON expired", &[]),
    ("DQ.REDRIVE {key} IDS 1 {id}", &["DELAY 5"]),
    ("DQ.RELEASE {key} w", &["COUNT 1", "NOCOUNT"]),
    ("DQ.PURGE {key} dead done", &["COUNT 1", "OLDER 5"]),
    ("DQ.PURGE {key} delayed ready inflight", &["COUNT 1"]),
    ("DQ.PURGE {key} ready GROUP g", &[]),
    ("DQ.PURGE {key} ready RECURRING", &[]),
    ("DQ.LEN {key} delayed", &["GROUP g"]),
    ("DQ.LEN {key} ready", &[]),
    ("DQ.LEN {key} inflight", &[]),
    ("DQ.LEN {key} dead", &[]),
    ("DQ.LEN {key} done", &[]),
    ("DQ.GET {key} {id}", &[]),
    ("DQ.AWAIT {key} {id}", &["BLOCK 1"]),
    ("DQ.PEEK {key} delayed", &["COUNT 5", "GROUP g"]),
    ("DQ.PEEK {key} ready", &["COUNT 5"]),
    ("DQ.PEEK {key} inflight", &["COUNT 5"]),
    ("DQ.PEEK {key} dead", &["COUNT 5"]),
    ("DQ.PEEK {key} done", &["COUNT 5"]),
    ("DQ.SCAN {key} 0", &["STATE delayed", "COUNT 5"]),
    ("DQ.SCAN {key} 0", &["STATE ready", "COUNT 5"]),
    ("DQ.SCAN {key} 0 STATE inflight", &[]),
    ("DQ.SCAN {key} 0 STATE dead", &[]),
    ("DQ.SCAN {key} 0 STATE done", &[]),
    ("DQ.SCAN {key} 0 RECURRING", &["SEQUENCE"]),
    (
        "DQ.BATCH {key} b THEN next",
        &["ID {id}", "DELAY 5", "PRIORITY 2", "GROUP g", "RETRIES 0", "LEASE 5", "HEADERS 1 a 1"],
    ),
    ("DQ.BATCH {key} b CANCEL", &[]),
    ("DQ.BATCHINFO {key} b", &[]),
    ("DQ.GROUPS {key} 0", &["COUNT 5"]),
    ("DQ.CONSUMERS {key} 0", &["COUNT 5"]),
    ("DQ.INFO {key}", &[]),
    ("DQ.STATS {key}", &[]),
    ("DQ.CREATE {key}", SETTINGS),
    ("DQ.ALTER {key}", SETTINGS),
    ("DQ.ALTER {key} MKQUEUE", SETTINGS),
    ("DQ.PAUSE {key} IN FOR 3", &[]),
    ("DQ.PAUSE {key} OUT FOR 3", &[]),
    ("DQ.PAUSE {key} ALL", &["FOR 3"]),
    ("DQ.PAUSE {key} GROUP g", &["FOR 3"]),
    ("DQ.RESUME {key} GROUP g", &[]),
    ("DQ.RESUME {key} IN", &[]),
    ("DQ.RESUME {key} OUT", &[]),
    ("DQ.RESUME {key} ALL", &[]),
];

fn line(words: &[&str], random: &mut Random, keys: &[&str]) -> String {
    let (key, other) = (*random.one_of(keys), *random.one_of(keys));
    let id = *random.one_of(NAMES);
    words.join(" ").replace("{key}", key).replace("{other}", other).replace("{id}", id)
}

/// Draws a command on one of the queues, with up to two of its options. It may be refused: a queue may not forward to
/// itself, for example.
pub fn any_call(random: &mut Random, keys: &[&str]) -> String {
    let (words, options) = random.one_of(FORMS);
    let mut all = vec![*words];
    for _ in 0..random.below(3).min(options.len()) {
        let option = *random.one_of(options);
        if !all.contains(&option) {
            all.push(option);
        }
    }
    line(&all, random, keys)
}

/// Every command once without options, and once with each option alone.
pub fn all_calls(random: &mut Random, keys: &[&str]) -> Vec<String> {
    let mut calls = Vec::new();
    for (words, options) in FORMS {
        calls.push(line(&[words], random, keys));
        calls.extend(options.iter().map(|option| line(&[words, option], random, keys)));
    }
    calls
}
