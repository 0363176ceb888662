//! The client has what the server has: a new option, setting or field must not be forgotten here.

use crate::support::{eventually, Server};
use dq_client::blocking::{Client, Queue};
use dq_client::{Forward, Settings, State};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The sources of the crate, without their tests.
fn sources() -> String {
    let mut text = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let source = std::fs::read_to_string(path).unwrap();
                text.push_str(source.split("#[cfg(test)]").next().unwrap());
            }
        }
    }
    text
}

/// The words in capital letters of a syntax, such as `BLOCK`.
fn words(syntax: &str) -> BTreeSet<&str> {
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    syntax.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').filter(is_word).collect()
}

#[test]
fn every_command_and_option_of_the_pages_is_in_the_client() {
    let sources = sources();
    let has = |word: &str| sources.contains(&format!("\"{word}\""));
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(root().join("docs/commands")).unwrap() {
        let page = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let Some(syntax) = page.split("## Syntax").nth(1).and_then(|rest| rest.split("```").nth(1)) else { continue };
        let name = syntax.split_whitespace().next().unwrap();
        // Only servers send it.
        if name == "DQ.E" {
            continue;
        }
        missing.extend(
            [name].into_iter().chain(words(syntax)).filter(|word| !has(word)).map(|word| format!("{name}: {word}")),
        );
    }
    let page = std::fs::read_to_string(root().join("docs/settings.md")).unwrap();
    for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
        let option = row.split('`').next().unwrap();
        missing.extend(words(option).into_iter().filter(|word| !has(word)).map(|word| format!("settings: {word}")));
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_setting_of_the_server_is_read_and_written() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let list = Forward::list("list").left().register("set", "member");
    for forward in [Forward::stream("s").trim(9), Forward::channel("c"), list] {
        queue.declare(&Settings { forward: Some(forward.clone()), ..Settings::default() }).unwrap();
        assert_eq!(queue.info().unwrap().unwrap().settings.forward, Some(forward));
    }
    for dead_forward in [Forward::queue("dead"), Forward::none()] {
        queue.declare(&Settings { dead_forward: Some(dead_forward.clone()), ..Settings::default() }).unwrap();
        assert_eq!(queue.info().unwrap().unwrap().settings.dead_forward, Some(dead_forward));
    }
    let info = queue.info().unwrap().unwrap();
    assert!(info.other.is_empty(), "fields of DQ.INFO that the client does not know: {:?}", info.other);
    // Each setting that the server has is one of `Settings`, under the name that `DQ.INFO` and `CONFIG` give it.
    let parameters = match server.ask(&["CONFIG", "GET", "dq.default-*"]) {
        dq_client::Value::Map(pairs) => pairs,
        other => panic!("{other:?}"),
    };
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/queue/settings.rs")).unwrap();
    assert!(!parameters.is_empty());
    for (name, _) in parameters {
        let dq_client::Value::BulkString(name) = name else { panic!("{name:?}") };
        let name = String::from_utf8(name).unwrap();
        let name = name.strip_prefix("dq.default-").unwrap();
        assert!(source.contains(&format!("\"{name}\"")), "Settings does not read {name}");
    }
    // What is read back is written as it is.
    let all = Settings { max_len: Some(5), ..info.settings };
    queue.alter(&all).unwrap();
    assert_eq!(queue.info().unwrap().unwrap().settings, all);
}

#[test]
fn every_field_of_a_message_is_known() {
    for protocol in [2, 3] {
        let server = Server::start();
        let client = Client::open(&format!("{}?protocol={protocol}", server.url())).unwrap();
        let queue: Queue<u8> = client.queue("q");
        queue.push(&0).id("abandoned").retries(0).lease(Duration::from_millis(1)).send().unwrap();
        queue.pop().one().unwrap().unwrap();
        eventually("its lease has expired", || queue.get("abandoned").unwrap().unwrap().lease_expired);
        queue.push(&1).id("kept").group("g").batch("b").header("a", "1").retain(HOUR).send().unwrap();
        let popped = queue.pop().one().unwrap().unwrap();
        queue.push(&2).id("kept").group("g").replace_within(HOUR).replace_later().send().unwrap();
        assert!(queue.get("kept").unwrap().unwrap().has_next);
        queue.push(&3).id("delayed").delay(HOUR).send().unwrap();
        queue.push(&4).id("dead").send().unwrap();
        queue.bury("dead", Some("why")).unwrap();
        queue.push(&5).id("done").retain(HOUR).send().unwrap();
        let done = queue.pop().one().unwrap().unwrap();
        queue.complete(&done).result(&6_u8).send().unwrap();
        queue.schedule("every", &7).every(HOUR).offset(HOUR / 2).group("h").times(5).send().unwrap();
        queue.schedule("cron", &8).cron("0 9 * * *").zone("Europe/Berlin").send().unwrap();
        let messages: Vec<_> = queue.scan().map(Result::unwrap).collect();
        assert_eq!(messages.len(), 7);
        for state in State::ALL.into_iter().filter(|state| *state != State::Ready) {
            assert!(messages.iter().any(|message| message.state == state), "{state}");
        }
        for message in messages {
            assert!(message.other.is_empty(), "{}: {:?}", message.id, message.other);
        }
        assert!(queue.ack(&popped).unwrap());
        assert_eq!(queue.get("kept").unwrap().unwrap().payload().unwrap(), 2);
    }
}
