//! Replies as the server sent them: maps of RESP3 and lists of pairs of RESP2, read alike, and as JSON.
//!
//! Output is made from these and not from the types of the client library, so that a field of a newer server is printed
//! as well.

use crate::server::failure::Failure;
use crate::text::QueueName;
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::Value;
use serde_json::{json, Map, Value as Json};

/// The fields of a reply, in the order of the server.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fields(pub Vec<(String, Value)>);

impl Fields {
    /// `None` if the reply is null.
    pub fn read(reply: Value) -> Result<Option<Fields>, Failure> {
        if reply == Value::Nil {
            return Ok(None);
        }
        let pairs = pairs(reply)?;
        let named = |(name, value): (Value, Value)| {
            let name = text(&name).ok_or_else(|| unexpected(&name))?;
            // In RESP2 it cannot be told from a list.
            let value = if name == "headers" { Value::Map(self::pairs(value)?) } else { value };
            Ok::<_, Failure>((name, value))
        };
        Ok(Some(Fields(pairs.into_iter().map(named).collect::<Result<_, _>>()?)))
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// A number; `None` if it is null or missing.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(int)
    }

    /// A count; zero if it is null or missing.
    pub fn number(&self, name: &str) -> u64 {
        self.int(name).and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }

    /// A text; empty if it is null or missing.
    pub fn text(&self, name: &str) -> String {
        self.get(name).and_then(text).unwrap_or_default()
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        match self.get(name) {
            Some(Value::BulkString(bytes)) => bytes,
            _ => &[],
        }
    }

    /// An object with the server's names. Bytes that are not UTF-8 are under `NAME-base64`. If an error of a past
    /// attempt is not, all of them are under `errors-base64` as well.
    pub fn json(&self) -> Map<String, Json> {
        let field = |(name, value): &(String, Value)| match value {
            value if !is_utf8(value) => (format!("{name}-base64"), as_base64(value)),
            value => (name.clone(), as_json(value)),
        };
        let lists = self.0.iter().filter(|(_, value)| matches!(value, Value::Array(_)) && !is_utf8(value));
        self.0.iter().map(field).chain(lists.map(|(name, value)| (name.clone(), as_json(value)))).collect()
    }
}

pub fn no_such_queue(queue: &QueueName) -> String {
    format!("there is no queue {queue}; dqctl ls lists the queues")
}

/// The pairs of a map, or in RESP2 of the list that stands for one.
pub fn pairs(reply: Value) -> Result<Vec<(Value, Value)>, Failure> {
    match reply {
        Value::Map(pairs) => Ok(pairs),
        Value::Array(items) => {
            let mut items = items.into_iter();
            Ok(std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect())
        }
        other => Err(unexpected(&other)),
    }
}

/// The items of a list.
pub fn list(reply: Value) -> Result<Vec<Value>, Failure> {
    match reply {
        Value::Array(items) | Value::Set(items) => Ok(items),
        Value::Nil => Ok(Vec::new()),
        other => Err(unexpected(&other)),
    }
}

pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Okay => Some("OK".to_owned()),
        _ => None,
    }
}

pub fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn as_json(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Int(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::Boolean(flag) => json!(flag),
        Value::Array(items) | Value::Set(items) => items.iter().map(as_json).collect(),
        Value::Map(pairs) => {
            let pair = |(name, value): &(Value, Value)| Some((text(name)?, as_json(value)));
            Json::Object(pairs.iter().filter_map(pair).collect())
        }
        other => text(other).map_or(Json::Null, Json::from),
    }
}

fn is_utf8(value: &Value) -> bool {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).is_ok(),
        Value::Array(items) => items.iter().all(is_utf8),
        _ => true,
    }
}

fn as_base64(value: &Value) -> Json {
    match value {
        Value::BulkString(bytes) => BASE64_STANDARD.encode(bytes).into(),
        Value::Array(items) => items.iter().map(as_base64).collect(),
        other => as_json(other),
    }
}

pub fn unexpected(value: &Value) -> Failure {
    Failure::failed(format!("the server sent a reply that this version of dqctl does not understand: {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use dq_client::Value;

    #[test]
    fn lists_of_pairs_are_read_as_maps() {
        let (name, value) = (Value::BulkString(b"ready".to_vec()), Value::Int(3));
        let flat = Fields::read(Value::Array(vec![name.clone(), value.clone()])).unwrap().unwrap();
        let map = Fields::read(Value::Map(vec![(name, value)])).unwrap().unwrap();
        assert_eq!((flat.int("ready"), map.int("ready")), (Some(3), Some(3)));
        assert!(Fields::read(Value::Nil).unwrap().is_none());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_base64_in_json() {
        let field = |bytes: &[u8]| Fields(vec![("payload".to_owned(), Value::BulkString(bytes.to_vec()))]).json();
        assert_eq!(serde_json::to_string(&field(b"hello")).unwrap(), r#"{"payload":"hello"}"#);
        assert_eq!(serde_json::to_string(&field(&[255])).unwrap(), r#"{"payload-base64":"/w=="}"#);
    }
}
