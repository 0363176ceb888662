//! Which dead messages are meant: conditions such as `error~timeout`, all of which must hold, and an age.

use super::cause::cause_of;
use crate::reply::Fields;
use crate::time::millis;
use std::str::FromStr;
use std::time::Duration;

/// The fields that conditions can name. `cause` is the error as `dqctl dead --by-error` shows it, and `from` the queue in which a
/// letter died.
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

/// Selects dead messages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Instead of the dead messages of the queue, those that died in other queues and were moved here.
    pub letters: bool,
    pub conditions: Vec<Condition>,
    /// Only messages that have been dead for at least this time.
    pub older: Option<Duration>,
    /// Of those, only so many: the ones that died first.
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
    fn holds(&self, message: &Fields) -> bool {
        let value = if self.field == "cause" { cause_of(message) } else { message.text(self.field) };
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
        self.letters || !self.conditions.is_empty() || self.older.is_some()
    }

    /// Whether a dead message is selected, however many there are. `now` is in Unix ms.
    pub fn selects(&self, message: &Fields, now: i64) -> bool {
        let is_old = self.older.is_none_or(|age| {
            let age = i64::try_from(millis(age)).unwrap_or(i64::MAX);
            message.int("died").is_some_and(|died| died <= now.saturating_sub(age))
        });
        is_old && self.conditions.iter().all(|condition| condition.holds(message))
    }
}

#[cfg(test)]
mod tests {
    use super::{Condition, Filter};
    use crate::reply::Fields;
    use dq_client::Value;
    use std::time::Duration;

    fn message() -> Fields {
        let text = |name: &str, text: &str| (name.to_owned(), Value::BulkString(text.as_bytes().to_vec()));
        let died = ("died".to_owned(), Value::Int(10_000));
        Fields(vec![text("id", "m-1"), text("error", "Timeout after 523ms"), text("reason", "retries"), died])
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
