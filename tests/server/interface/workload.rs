//! The workload of tests that break servers has every command with every option that the server knows.

use crate::support::{all_calls, Client, Fields, Protocol, Random, Reply, Server};
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
