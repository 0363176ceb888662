//! The lines of a dump, written and read: JSON objects, one per line.
//!
//! Each names its queue. A line with `settings` describes the queue, one with `every` or `cron` a schedule, and any
//! other one a message. Payloads are base64. Names, ids, groups, checkpoints and errors are text; if they are not
//! UTF-8, the key ends with `-base64` instead. Headers are an object of text, and those that are not UTF-8 another one
//! of base64.

use super::field::{bytes, number};
use super::pause::Pause;
use super::push::{Headers, NewMessage, Rule};
use crate::server::{reply, Fields, Message};
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::Value;
use serde_json::{Map, Value as Json};

/// The fields of a schedule that DQ.SCHEDULE takes as options, and the options.
pub const RULE: [(&str, &str); 6] = [
    ("every", "EVERY"),
    ("offset", "OFFSET"),
    ("cron", "CRON"),
    ("tz", "TZ"),
    ("until", "UNTIL"),
    ("times-left", "TIMES"),
];

/// The fields of a message that are options of a push.
const OPTIONS: [(&str, &str); 8] = [
    ("priority", "PRIORITY"),
    ("retries", "RETRIES"),
    ("lease", "LEASE"),
    ("ttl", "TTL"),
    ("retain", "RETAIN"),
    ("group", "GROUP"),
    ("checkpoint", "CHECKPOINT"),
    ("error", "ERROR"),
];

/// One line that was read.
#[derive(Debug)]
pub struct Line {
    pub queue: Vec<u8>,
    pub what: What,
}

#[derive(Debug)]
pub enum What {
    Queue(QueueLine),
    Message(NewMessage),
    /// A recurring message, with the options of its rule.
    Schedule(NewMessage, Rule),
}

/// The settings of a queue, as options of DQ.CREATE, and its pauses.
#[derive(Debug, Default)]
pub struct QueueLine {
    pub settings: Vec<Vec<u8>>,
    pub pauses: Vec<Pause>,
}

/// The fields of a message that a line has, besides its payload and headers.
#[rustfmt::skip]
const KEPT: [&str; 15] = [
    "id", "state", "priority", "created", "due", "attempt", "retries", "lease", "ttl", "retain", "group", "checkpoint",
    "error", "reason", "died",
];

/// A line with fields of a reply: bytes that are not UTF-8 are base64 under `NAME-base64`, and fields that are null are
/// left out.
fn line(queue: &[u8], fields: Vec<(String, Value)>, more: Vec<(&str, Json)>) -> String {
    let mut fields = Fields(fields);
    fields.0.insert(0, ("queue".to_owned(), Value::BulkString(queue.to_vec())));
    let mut object = fields.json();
    object.retain(|_, value| !value.is_null());
    object.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    format!("{}\n", Json::Object(object))
}

/// The line of a queue, from its DQ.INFO, with its pauses: the settings are the fields from `lease` to `forward`, and
/// `deadforward`.
pub fn queue_line(queue: &[u8], info: &Fields, pauses: Vec<Pause>) -> String {
    let mut settings: Vec<_> = info.0.iter().skip_while(|(name, _)| name != "lease").cloned().collect();
    let last = settings.iter().position(|(name, _)| name == "forward").map_or(0, |last| last + 1);
    let deadforward = settings.iter().find(|(name, _)| name == "deadforward").cloned();
    settings.truncate(last);
    settings.extend(deadforward);
    let mut more = vec![("settings", Json::Object(Fields(settings).json()))];
    more.extend(Pause::fields(pauses));
    line(queue, Vec::new(), more)
}

/// The line of a message, from a page of DQ.SCAN. Its lease is written only if it is not the queue's.
pub fn message_line(queue: &[u8], message: &Message, queue_lease: Option<i64>) -> String {
    let is_kept = |(name, value): &&(String, Value)| {
        let is_known = KEPT.contains(&name.as_str()) || RULE.iter().any(|(field, _)| field == name);
        is_known && (name != "lease" || reply::int(value) != queue_lease)
    };
    let fields = message.0.iter().filter(is_kept).cloned().collect();
    let mut more = vec![("payload", BASE64_STANDARD.encode(message.payload()).into())];
    more.extend(headers_of(message).into_iter().map(|(name, headers)| (name, Json::Object(headers))));
    line(queue, fields, more)
}

/// The headers as up to two objects, with their keys: of those that are text, and of those that are not.
fn headers_of(message: &Message) -> Vec<(&'static str, Map<String, Json>)> {
    let (mut texts, mut others) = (Map::new(), Map::new());
    for (name, value) in message.headers() {
        match (std::str::from_utf8(name), std::str::from_utf8(value)) {
            (Ok(name), Ok(value)) => texts.insert(name.to_owned(), Json::from(value)),
            _ => others.insert(BASE64_STANDARD.encode(name), Json::from(BASE64_STANDARD.encode(value))),
        };
    }
    let all = [("headers", texts), ("headers-base64", others)];
    all.into_iter().filter(|(_, headers)| !headers.is_empty()).collect()
}

/// Reads the objects that [`headers_of`] wrote.
fn headers(object: &Map<String, Json>) -> Result<Headers, String> {
    let mut headers = Vec::new();
    for name in ["headers", "headers-base64"] {
        let pairs = match object.get(name) {
            None => continue,
            Some(Json::Object(pairs)) => pairs,
            Some(_) => return Err(format!("its {name} are not an object")),
        };
        let read = |text: &str| match name {
            "headers" => Ok(text.as_bytes().to_vec()),
            _ => BASE64_STANDARD.decode(text).map_err(|_| format!("its {name} are not base64")),
        };
        for (header, value) in pairs {
            let value = value.as_str().ok_or_else(|| format!("the value of its header {header} is not text"))?;
            headers.push((read(header)?, read(value)?));
        }
    }
    Ok(headers)
}

/// Reads a line. The error says what is wrong with it.
pub fn read(line: &[u8]) -> Result<Line, String> {
    let json: Json = serde_json::from_slice(line).map_err(|error| format!("it is no JSON: {error}"))?;
    let Json::Object(object) = json else { return Err("it is no JSON object".to_owned()) };
    let queue = bytes(&object, "queue")?.ok_or("it has no queue")?;
    let what = match object.get("settings") {
        Some(Json::Object(settings)) => {
            What::Queue(QueueLine { settings: create_words(settings)?, pauses: Pause::read(&object)? })
        }
        Some(_) => return Err("its settings are not an object".to_owned()),
        None => read_message(&object)?,
    };
    Ok(Line { queue, what })
}

fn read_message(object: &Map<String, Json>) -> Result<What, String> {
    let payload = object.get("payload").and_then(Json::as_str).ok_or("it has no payload")?;
    let state = object.get("state").map_or(Ok("ready"), |state| state.as_str().ok_or("its state is not text"))?;
    let mut message = NewMessage {
        id: bytes(object, "id")?.ok_or("it has no id")?,
        payload: BASE64_STANDARD.decode(payload).map_err(|_| "its payload is not base64")?,
        due: number(object, "due")?,
        headers: headers(object)?,
        attempt: number(object, "attempt")?.filter(|attempt| *attempt > 0),
        dead: None,
        options: words(object, &OPTIONS)?,
    };
    let rule = words(object, &RULE)?;
    match state {
        "dead" => {
            message.dead = Some(bytes(object, "reason")?.unwrap_or_else(|| b"rejected".to_vec()));
            Ok(What::Message(message))
        }
        "delayed" | "ready" | "inflight" if rule.is_empty() => Ok(What::Message(message)),
        "delayed" | "ready" | "inflight" => Ok(What::Schedule(message, rule)),
        other => Err(format!("its state {other} is none of delayed, ready, inflight and dead")),
    }
}

/// The options of some fields, with their values.
fn words(object: &Map<String, Json>, names: &[(&str, &'static str)]) -> Result<Rule, String> {
    let word = |(name, option): &(&str, &'static str)| Ok(bytes(object, name)?.map(|value| (*option, value)));
    names.iter().map(word).filter_map(Result::transpose).collect()
}

/// The settings as options of DQ.CREATE: a field has the name of the option, except for options with several values.
fn create_words(settings: &Map<String, Json>) -> Result<Vec<Vec<u8>>, String> {
    let mut words = Vec::new();
    for name in settings.keys() {
        let (option, values): (&str, Vec<&str>) = match name.as_str() {
            "backoff-base" => ("BACKOFF", vec!["backoff-base", "backoff-max"]),
            "rate" => ("RATE", vec!["rate", "rate-period"]),
            "grouprate" => ("GROUPRATE", vec!["grouprate", "grouprate-period"]),
            "backoff-max" | "rate-period" | "grouprate-period" | "backoff-jitter" => continue,
            "forward" | "forward-base64" | "deadforward" | "deadforward-base64" => continue,
            other => (other, vec![other]),
        };
        words.push(option.to_ascii_uppercase().into_bytes());
        for value in values {
            words.push(bytes(settings, value)?.ok_or_else(|| format!("its setting {value} is missing"))?);
        }
        if let ("BACKOFF", Some(jitter)) = (option, bytes(settings, "backoff-jitter")?) {
            words.extend([b"JITTER".to_vec(), jitter]);
        }
    }
    for (name, option) in [("forward", "FORWARD"), ("deadforward", "DEADFORWARD")] {
        if let Some(target) = bytes(settings, name)?.filter(|target| target != b"NONE") {
            words.push(option.into());
            words.extend(target.split(|byte| *byte == b' ').map(<[u8]>::to_vec));
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::{read, What};
    use serde_json::json;

    #[test]
    fn a_line_that_is_wrong_says_what() {
        for (line, expected) in [
            ("{", "it is no JSON"),
            ("[]", "it is no JSON object"),
            ("{}", "it has no queue"),
            (r#"{"queue":"q"}"#, "it has no payload"),
            (r#"{"queue":"q","payload":"!!"}"#, "it has no id"),
            (r#"{"queue":"q","id":"m","payload":"!!"}"#, "its payload is not base64"),
            (r#"{"queue":"q","id":"m","payload":"","due":"x"}"#, "its due is not a whole number"),
            (r#"{"queue":"q","id":"m","payload":"","state":"odd"}"#, "its state odd"),
            (r#"{"queue":"q","id":"m","payload":"","headers":[]}"#, "its headers are not an object"),
            (r#"{"queue":"q","id":"m","payload":"","headers":{"a":1}}"#, "the value of its header a is not text"),
            (r#"{"queue":"q","settings":{"rate":1}}"#, "its setting rate-period is missing"),
        ] {
            let error = read(line.as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }

    #[test]
    fn settings_are_read_as_options() {
        let settings = json!({
            "lease": 5, "backoff-base": 1, "backoff-max": 2, "backoff-jitter": 3,
            "forward": "LIST l LEFT", "deadforward": "QUEUE d",
        });
        let line = json!({ "queue": "q", "settings": settings }).to_string();
        let What::Queue(queue) = read(line.as_bytes()).unwrap().what else { panic!() };
        let words: Vec<String> = queue.settings.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        assert_eq!(words.join(" "), "BACKOFF 1 2 JITTER 3 LEASE 5 FORWARD LIST l LEFT DEADFORWARD QUEUE d");
    }
}
