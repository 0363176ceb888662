//! Messages as they are printed.

use crate::board::dead::{cause_of, error_of};
use crate::output::Column::{Id, Name, Number, Text, Word};
use crate::output::{Column, Output, Table};
use crate::server::{reply, Failure, Fields, Message};
use crate::text::{exact, indented, instant, is_time, meaning, readable, separated, shown, visible, with_distance};
use dq_client::{State, Value};

const COLUMNS: &[Column] = &[
    Id("id"),
    Word("state"),
    Number("priority"),
    Word("due"),
    Word("died"),
    Number("attempt"),
    Text("payload"),
    Text("error"),
    Name("group"),
    Text("result"),
    Name("consumer"),
    Word("lease-ends"),
    Word("reason"),
    Name("from"),
];

/// Fields of `DQ.GET` that are instants in Unix ms, and lengths of time in ms that somebody has set.
const INSTANTS: [&str; 7] = ["created", "due", "deadline", "died", "done", "until", "last-run"];
const SPANS: [&str; 5] = ["lease", "ttl", "retain", "every", "offset"];

/// The header in which `DEADFORWARD QUEUE` notes when a message died, in Unix ms.
const DIED: &[u8] = b"dq-died";

/// How many bytes of a binary value are shown.
const SHOWN_BYTES: usize = 32;

/// Prints a list of messages; `asked` is the state that all of them have, if only that one was asked for. A terminal
/// has no room for what goes without saying.
pub fn list(messages: &[Message], asked: Option<State>, output: &Output) -> Result<(), Failure> {
    if !output.json {
        return output.table(&table(&messages.iter().collect::<Vec<_>>(), asked, output));
    }
    messages.iter().try_for_each(|message| {
        let mut object = message.json();
        if message.died().is_some() {
            object.insert("cause".to_owned(), cause_of(message).into());
        }
        output.object(&object)
    })
}

/// The same as a table.
pub fn table(messages: &[&Message], asked: Option<State>, output: &Output) -> Table {
    let row = |message: &&Message| {
        let [due, died, ends] = [message.due(), message.died(), message.deadline()].map(|at| output.instant(at));
        let (state, priority) = (message.text("state"), message.text("priority"));
        let unless = |is_known: bool, cell: String| if is_known && output.is_for_people { String::new() } else { cell };
        let mut row = vec![shown(message.id())];
        let is_due = !matches!(message.state(), Some(State::Inflight | State::Dead));
        row.extend([unless(asked.is_some(), state), unless(message.priority() == 0, priority), unless(!is_due, due)]);
        row.push(died);
        let [attempt, payload, group, result] =
            ["attempt", "payload", "group", "result"].map(|name| field(message, name, output));
        row.extend([attempt, payload, error_of(message), group, result, message.text("consumer"), ends]);
        row.extend([message.text("reason"), shown(message.origin().unwrap_or_default())]);
        row
    };
    Table::plain(COLUMNS, messages.iter().map(row))
}

/// Prints one message with all its fields.
pub fn details(message: &Message, output: &Output) -> Result<(), Failure> {
    if output.json {
        return output.object(&message.json());
    }
    let mut pairs: Vec<(String, String)> = if output.is_for_people {
        let on_lines = |text: String| indented(&text).unwrap_or_else(|| text.trim_end_matches('\n').to_owned());
        shown_fields(message).into_iter().map(|(name, text)| (name, on_lines(text))).collect()
    } else {
        message.0.iter().flat_map(|(name, value)| lines(message, name, value, &instant)).collect()
    };
    // The payload is the longest field and comes last, so that the others stay in sight.
    pairs.sort_by_key(|(name, _)| name == "payload");
    output.pairs(&pairs)
}

/// The fields of a message as a person reads them, without empty and redundant ones.
pub fn shown_fields(message: &Message) -> Vec<(String, String)> {
    // Fields that repeat another one, or report the absence of something.
    let is_redundant = |name: &str, value: &Value| match name {
        "next" => reply::int(value) == Some(0),
        "error" => is_last_of_errors(message),
        _ => name == "lease-expired" || *value == Value::Nil,
    };
    let fields = message.0.iter().filter(|(name, value)| !is_redundant(name, value));
    let shown = |(name, value): &(String, Value)| match reply::int(value).and_then(|number| meaning(name, number)) {
        Some(words) => vec![(name.clone(), words.to_owned())],
        None => lines(message, name, value, &with_distance),
    };
    fields.flat_map(shown).collect()
}

/// Whether the error is shown as that of the last attempt as well.
fn is_last_of_errors(message: &Message) -> bool {
    let Some(Value::Array(errors)) = message.get("errors") else { return false };
    matches!(errors.last(), Some(Value::Array(parts)) if parts.get(2) == message.get("error"))
}

/// The lines of a field, one for each header and for each error of a past attempt, with instants as `when` writes them.
fn lines(message: &Message, name: &str, value: &Value, when: &dyn Fn(i64) -> String) -> Vec<(String, String)> {
    let shown = |value: &Value| as_text(value).unwrap_or_default();
    match (name, value) {
        ("headers", Value::Map(headers)) => {
            // The names are not our own.
            let name = |name: &Value| format!("header {}", visible(&shown(name)));
            let value = |header: &Value, value: &Value| match (header, shown(value).parse()) {
                (Value::BulkString(name), Ok(at)) if name == DIED => format!("{at} ({})", when(at)),
                _ => shown(value),
            };
            headers.iter().map(|(header, text)| (name(header), value(header, text))).collect()
        }
        ("errors", Value::Array(errors)) => errors.iter().filter_map(|error| past_error(error, when)).collect(),
        _ => vec![(name.to_owned(), field_with(message, name, when))],
    }
}

/// When it runs: `every 10s`, or the expression and its time zone.
pub fn rule(message: &Message) -> String {
    match ["every", "offset"].map(|name| message.number(name)) {
        [0, _] => format!("{} {}", message.text("cron"), message.text("tz")),
        [every, 0] => format!("every {}", exact(every)),
        [every, offset] => format!("every {} at {}", exact(every), exact(offset)),
    }
}

/// A setting of a queue as a person reads it.
pub fn setting(settings: &Fields, name: &str) -> String {
    match settings.int(name) {
        Some(number) => match meaning(name, number) {
            Some(words) => words.to_owned(),
            None if is_time(name) => exact(settings.number(name)),
            None => separated(number),
        },
        None => settings.text(name),
    }
}

/// The error of a past attempt: `attempt 2`, and when and why it failed.
fn past_error(error: &Value, when: &dyn Fn(i64) -> String) -> Option<(String, String)> {
    let Value::Array(parts) = error else { return None };
    let [attempt, at, text] = parts.as_slice() else { return None };
    let at = when(reply::int(at)?);
    let Value::BulkString(text) = text else { return None };
    Some((format!("attempt {}", reply::text(attempt)?), format!("{at}: {}", readable(text))))
}

/// A field of a message or a batch as it is printed.
pub fn field(fields: &Fields, name: &str, output: &Output) -> String {
    field_with(fields, name, &|at| output.moment(at))
}

fn field_with(fields: &Fields, name: &str, when: &dyn Fn(i64) -> String) -> String {
    match fields.int(name) {
        Some(ms) if INSTANTS.contains(&name) => when(ms),
        Some(ms) if SPANS.contains(&name) => exact(u64::try_from(ms).unwrap_or(0)),
        _ if name == "id" || name == "then-id" => shown(fields.bytes(name)),
        _ if name == "error" => readable(fields.bytes(name)),
        _ if name == "reason" => reason(fields),
        _ => fields.get(name).and_then(as_text).unwrap_or_default(),
    }
}

/// Why a message is dead: the word of the server, and what it means.
fn reason(fields: &Fields) -> String {
    let word = fields.text("reason");
    let meaning = match word.as_str() {
        "rejected" if fields.int("attempt") == Some(0) => "buried",
        "rejected" => "by its consumer, or buried",
        "retries" if fields.int("lease-expired") == Some(1) => "all are used up; the last lease expired without an ack",
        "retries" => "all are used up",
        "expired" => "its TTL has ended",
        _ => return word,
    };
    format!("{word} ({meaning})")
}

/// A value as text. Binary values are shown as their length, a hexadecimal prefix and its readable characters.
pub fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) if std::str::from_utf8(bytes).is_err() => {
            let head = bytes.get(..SHOWN_BYTES).unwrap_or(bytes);
            let more = if head.len() < bytes.len() { "…" } else { "" };
            let hex: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
            let readable = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' };
            let text: String = head.iter().map(readable).collect();
            Some(format!("{} bytes: {}{more} {text}{more}", bytes.len(), hex.join(" ")))
        }
        value => reply::text(value),
    }
}
