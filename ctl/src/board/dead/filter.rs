//! Selects messages, mostly dead ones: by conditions such as `error~timeout`, all of which must hold, and by age.

use super::cause::cause_of;
use super::letters::as_it_died;
use crate::server::Message;
use crate::text::{exact, millis, shown, visible};
use dq_client::State;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The fields that conditions can name. `cause` is the error as `dqctl dead --by-error` shows it, and `from` the queue
/// in which a letter died.
const FIELDS: [&str; 7] = ["error", "cause", "reason", "id", "group", "payload", "from"];
/// What stands between the field and the text. Those of two characters come first, because they end like the others.
const TESTS: [(&str, Test); 4] =
    [("!~", Test::ContainsNot), ("!=", Test::IsNot), ("~", Test::Contains), ("=", Test::Is)];

/// Why a message can be dead.
const REASONS: [&str; 3] = ["retries", "expired", "rejected"];
const WRONG_REASON: &str = "the reason of a death is retries, expired or rejected";

const EXAMPLES: &str =
    "a condition is a field, a sign and a text, such as error~timeout or reason=expired; fields: error, \
    cause, reason, id, group, payload, from; signs: ~ contains, !~ does not contain, = is, != is not";

/// A condition on a field of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    field: &'static str,
    test: Test,
    /// In lower case if parts are searched for.
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Test {
    /// Without regard to upper and lower case.
    Contains,
    ContainsNot,
    Is,
    IsNot,
}

/// The messages of a queue from which some are selected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Among {
    State(State),
    /// Messages that died in other queues and were moved here.
    Letters,
}

impl Default for Among {
    fn default() -> Among {
        Among::State(State::Dead)
    }
}

/// Selects messages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    pub among: Among,
    pub conditions: Vec<Condition>,
    /// Only messages that have been in their state, or dead, for at least this time.
    pub older: Option<Duration>,
    /// Only the `oldest` of them: those that have been in their state for longest.
    pub oldest: Option<u32>,
}

impl FromStr for Condition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Condition, &'static str> {
        let field = FIELDS.into_iter().find_map(|field| Some((field, text.strip_prefix(field)?)));
        let (field, rest) = field.ok_or(EXAMPLES)?;
        let test = TESTS.into_iter().find_map(|(sign, test)| Some((test, rest.strip_prefix(sign)?)));
        let (test, text) = test.ok_or(EXAMPLES)?;
        if field == "reason" && matches!(test, Test::Is | Test::IsNot) && !REASONS.contains(&text) {
            return Err(WRONG_REASON);
        }
        let text = match test {
            Test::Contains | Test::ContainsNot if text.is_empty() => return Err(EXAMPLES),
            Test::Contains | Test::ContainsNot => text.to_lowercase(),
            Test::Is | Test::IsNot => text.to_owned(),
        };
        Ok(Condition { field, test, text })
    }
}

impl Condition {
    pub fn holds(&self, message: &Message) -> bool {
        let value = match self.field {
            "cause" => cause_of(message),
            "id" | "group" | "from" => shown(message.bytes(self.field)),
            field => message.text(field),
        };
        match self.test {
            Test::Contains => value.to_lowercase().contains(&self.text),
            Test::ContainsNot => !value.to_lowercase().contains(&self.text),
            Test::Is => value == self.text,
            Test::IsNot => value != self.text,
        }
    }
}

impl Filter {
    /// Whether messages must be read to see which are meant.
    pub fn has_conditions(&self) -> bool {
        self.among != Among::default() || !self.conditions.is_empty() || self.older.is_some()
    }

    /// Returns the message if it is selected; a letter as it died.
    pub fn meets(&self, message: Message, now: i64) -> Option<Message> {
        let message = match self.among {
            Among::State(state) => Some(message).filter(|message| message.state() == Some(state)),
            Among::Letters => as_it_died(message),
        };
        message.filter(|message| self.selects(message, now))
    }

    /// Whether a message meets the conditions and the age, whatever `among` and `oldest` say. `now` is in Unix ms.
    pub fn selects(&self, message: &Message, now: i64) -> bool {
        self.older.is_none_or(|age| is_older(message, age, now))
            && self.conditions.iter().all(|condition| condition.holds(message))
    }
}

impl fmt::Display for Among {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Among::State(state) => f.write_str(state.as_str()),
            Among::Letters => f.write_str("dead-letter"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sign = TESTS.iter().find(|(_, test)| *test == self.test).map_or("", |(sign, _)| sign);
        write!(f, "{}{sign}{}", self.field, visible(&self.text))
    }
}

/// Describes the selection, for a question: ` with error~timeout (older than 1d)`.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (number, condition) in self.conditions.iter().enumerate() {
            write!(f, "{}{condition}", if number == 0 { " with " } else { " and " })?;
        }
        self.older.map_or(Ok(()), |age| f.write_str(&older_than(age)))
    }
}

/// For a question about messages that have been in their state for at least this time.
pub fn older_than(age: Duration) -> String {
    format!(" (older than {})", exact(millis(age)))
}

/// Whether a message has been in its state for at least this time, as `DQ.PURGE` with `OLDER` counts it. `now` is in
/// Unix ms.
pub fn is_older(message: &Message, age: Duration, now: i64) -> bool {
    let age = i64::try_from(millis(age)).unwrap_or(i64::MAX);
    since(message).is_some_and(|since| since <= now.saturating_sub(age))
}

/// When a message came into its state, in Unix ms; of a letter, when it died.
pub fn since(message: &Message) -> Option<i64> {
    if let Some(died) = message.died() {
        return Some(died);
    }
    match message.state() {
        Some(State::Delayed) => message.created(),
        Some(State::Ready) => message.due(),
        Some(State::Inflight) => message.delivered(),
        Some(State::Dead | State::Done) => message.done(),
        // A state of a newer server.
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, Filter};
    use crate::server::{Fields, Message};
    use dq_client::Value;
    use std::time::Duration;

    fn message() -> Message {
        let text = |name: &str, text: &str| (name.to_owned(), Value::BulkString(text.as_bytes().to_vec()));
        let died = ("died".to_owned(), Value::Int(10_000));
        Message::from(Fields(vec![
            text("id", "m-1"),
            text("error", "Timeout after 523ms"),
            text("reason", "retries"),
            died,
        ]))
    }

    #[test]
    fn conditions_are_read_and_hold() {
        for (text, holds) in [
            ("error~timeout", true),
            ("error~refused", false),
            ("error!~refused", true),
            ("error=Timeout after 523ms", true),
            ("error=timeout after 523ms", false),
            ("cause=Timeout after #ms", true),
            ("reason!=expired", true),
            ("id~m-", true),
            ("group=", true),
        ] {
            assert_eq!(text.parse::<Condition>().unwrap().holds(&message()), holds, "{text}");
        }
        for wrong in ["", "error", "error~", "error timeout", "colour=red", "~x", "reason=retires"] {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_that_has_left_its_state_is_not_meant() {
        let of_state = |state: &str| {
            let mut message = message();
            message.set("state", Some(Value::BulkString(state.as_bytes().to_vec())));
            Filter::default().meets(message, 0).is_some()
        };
        assert!(of_state("dead") && !of_state("ready") && !of_state("delayed"));
    }

    #[test]
    fn all_conditions_and_the_age_must_hold() {
        let filter = |older, conditions: &[&str]| Filter {
            older: Some(Duration::from_secs(older)),
            conditions: conditions.iter().map(|text| text.parse().unwrap()).collect(),
            ..Filter::default()
        };
        assert!(filter(5, &["error~timeout", "id=m-1"]).selects(&message(), 15_000));
        assert!(!filter(5, &["error~timeout", "id=m-2"]).selects(&message(), 15_000));
        assert!(!filter(5, &[]).selects(&message(), 14_999));
        assert!(Filter::default().selects(&message(), 0));
    }
}
