//! What tests draw at random has every command with every option that the server knows, or a reason why it has not: the
//! workload of tests that break servers, the histories of the model, and the clients of the checker.

use super::{drawn, history};
use crate::checker;
use crate::support::{all_calls, Client, Fields, Protocol, Random, Reply, Server};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;

/// Commands that no client sends.
const INTERNAL: [&str; 1] = ["dq.e"];

/// The words in capital letters in the syntax of a command, as `COMMAND DOCS` gives them.
fn tokens(of: &Fields) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if of.has("token") {
        found.insert(of.text("token"));
    }
    if of.has("arguments") {
        found.extend(of.get("arguments").items().iter().flat_map(|argument| tokens(&argument.fields())));
    }
    found
}

fn documented(c: &mut Client) -> Vec<(String, BTreeSet<String>)> {
    let names = c.ask("COMMAND LIST FILTERBY MODULE dq");
    let names = names.items().iter().map(|name| name.text().to_lowercase());
    let names: Vec<String> = names.filter(|name| !INTERNAL.contains(&name.as_str())).collect();
    let docs = |name: String| {
        let reply = c.ask(format!("COMMAND DOCS {name}")).fields();
        let tokens = tokens(&reply.0[0].1.fields());
        (name, tokens)
    };
    names.into_iter().map(docs).collect()
}

#[test]
fn every_command_and_option_is_drawn() {
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    let calls = all_calls(&mut Random::seeded(1), &["q"]);
    let mut missing = Vec::new();
    for (name, tokens) in documented(&mut c) {
        let words = |call: &String| call.to_uppercase().split(' ').map(str::to_owned).collect::<Vec<_>>();
        let drawn: Vec<Vec<String>> = calls.iter().map(words).filter(|words| words[0].to_lowercase() == name).collect();
        if drawn.is_empty() {
            missing.push(name.clone());
        }
        let absent = tokens.into_iter().filter(|token| !drawn.iter().any(|words| words[1..].contains(token)));
        missing.extend(absent.map(|token| format!("{name} {token}")));
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_drawn_call_has_the_right_syntax() {
    let server = Server::start();
    let mut c = server.client();
    for call in all_calls(&mut Random::seeded(1), &["q", "r"]) {
        let reply = c.ask(&call);
        // Other errors depend on what the queue holds.
        if let Reply::Error(text) = reply {
            let is_wrong = ["syntax", "unknown", "must be", "wrong number"].iter().any(|word| text.contains(word));
            assert!(!is_wrong, "{call}: {text}");
        }
    }
}

/// A command, words of its syntax, and why nobody draws them. Without words, the command is never called.
type Omission = (&'static str, &'static str, &'static str);

/// Commands, each with one word of its syntax. The empty word stands for the command itself.
type Words = BTreeSet<(String, String)>;

/// All words of the commands that can change a queue.
fn changing() -> Words {
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    let all = documented(&mut c).into_iter();
    let words = all.flat_map(|(name, mut tokens)| {
        let info = c.ask(format!("COMMAND INFO {name}"));
        let is_write = info.items()[0].items()[2].items().iter().any(|flag| flag.text() == "write");
        tokens.insert(String::new());
        let words = tokens.into_iter().map(move |token| (name.clone(), token));
        words.filter(|_| is_write).collect::<Vec<_>>()
    });
    words.collect()
}

/// Checks that of the words of commands that can change a queue, all but those that are listed were drawn.
#[track_caller]
fn expect_all_but(omitted: &[Omission], changing: &Words, drawn: &Words) {
    let is_called = |name: &str| drawn.iter().any(|(command, _)| command == name);
    // A command that is never called counts as one omission.
    let missing = changing.difference(drawn).filter(|(name, word)| is_called(name) || word.is_empty());
    let missing: Vec<String> = missing.map(|(name, word)| format!("{name} {word}")).collect();
    let listed = omitted.iter().flat_map(|(name, words, _)| words.split(' ').map(move |word| format!("{name} {word}")));
    let listed: BTreeSet<String> = listed.collect();
    assert_eq!(missing, listed.into_iter().collect::<Vec<_>>(), "what is not drawn, and what is listed");
}

/// What the model of the core does not draw.
const NOT_IN_THE_MODEL: &[Omission] = &[
    ("dq.ackpop", "BLOCK META", "the server holds blocked clients, and makes replies"),
    ("dq.ackpop", "MIN LINGER", "that a consumer waits for more changes no queue; ops/gather.rs has tests of its own"),
    ("dq.pop", "BLOCK META", "as with DQ.ACKPOP"),
    ("dq.pop", "MIN LINGER", "as with DQ.ACKPOP"),
    ("dq.mpop", "", "it pops from one of several queues"),
    ("dq.alter", "MKQUEUE", "the server makes the key"),
    ("dq.create", "FORWARD DEADFORWARD STREAM TRIM LIST LEFT RIGHT REGISTER CHANNEL QUEUE NONE", "DQ.ALTER sets them"),
    ("dq.schedule", "CRON TZ", "calendars have tests of their own: cron.rs and week.rs in queue/tests/model"),
];

/// How many histories of the model are drawn here.
const HISTORIES: usize = 240;

#[test]
fn the_model_draws_every_command_and_option() {
    let (strategy, mut runner) = (history::history(1..80, 1), TestRunner::deterministic());
    let mut words = BTreeSet::new();
    for _ in 0..HISTORIES {
        let history = strategy.new_tree(&mut runner).expect("a history").current();
        for (command, options) in drawn::calls(&history) {
            words.insert((command.to_owned(), String::new()));
            words.extend(options.into_iter().map(|option| (command.to_owned(), option.to_owned())));
        }
    }
    expect_all_but(NOT_IN_THE_MODEL, &changing(), &words);
}

/// What the clients of the checker do not draw.
const NOT_IN_THE_CHECKER: &[Omission] = &[
    ("dq.ackpop", "META", "nothing more is read of what it delivers"),
    ("dq.mpop", "META", "as with DQ.ACKPOP"),
    ("dq.mpop", "NOACK", "a lost reply would be a lost message"),
    ("dq.pop", "NOACK", "as with DQ.MPOP"),
    (
        "dq.alter",
        "STREAM TRIM LIST LEFT RIGHT REGISTER CHANNEL QUEUE",
        "a queue forwards where it did when it was made",
    ),
    (
        "dq.create",
        "QUEUE CHANNEL DEADFORWARD NONE TRIM RIGHT",
        "a target that is read must keep all, and RIGHT is the default",
    ),
    (
        "dq.create",
        "LEASE JITTER TTL MAXLEN MAXINFLIGHT DEADLEN DEADTTL RETAIN DONELEN MAXPAYLOAD",
        "DQ.ALTER sets them",
    ),
    ("dq.create", "GROUPRATE ERRORS MAXLEASE DELAY", "DQ.ALTER sets them"),
    ("dq.batch", "CANCEL GROUP ID", "one message follows each batch, and a second one must have another id"),
    ("dq.mpush", "IDS REPLACE MAXWAIT LATER RETAIN AT GROUP", "it only fills batches"),
    ("dq.mpush", "ATTEMPT ERROR CHECKPOINT DEAD REASON REJECTED EXPIRED", "as with DQ.PUSH"),
    ("dq.push", "BATCH", "DQ.MPUSH fills batches"),
    (
        "dq.push",
        "ATTEMPT ERROR CHECKPOINT DEAD REASON REJECTED EXPIRED",
        "its messages are new; the model draws others",
    ),
    ("dq.push", "LATER RETAIN", "messages that are kept would occupy ids; the model draws them"),
    ("dq.pause", "IN ALL", "pushes that are refused show nothing"),
    ("dq.purge", "DELAYED READY INFLIGHT", "it does not say what it has removed"),
    ("dq.redrive", "IDS", "it takes the same messages as COUNT"),
    ("dq.schedule", "OFFSET AT CRON TZ", "runs are compared with intervals that begin at the epoch"),
];

/// How many runs of each queue may be needed to draw everything. Two or three are mostly enough.
const RUNS: u64 = 10;

#[test]
fn the_checker_draws_every_command_and_option() {
    let (changing, mut words) = (changing(), Words::new());
    let wanted = NOT_IN_THE_CHECKER.iter().map(|(_, words, _)| words.split(' ').count()).sum();
    for seed in 1..=RUNS {
        words.extend(checker::drawn(seed));
        if changing.difference(&words).count() <= wanted {
            break;
        }
    }
    expect_all_but(NOT_IN_THE_CHECKER, &changing, &words);
}
