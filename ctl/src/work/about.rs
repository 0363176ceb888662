//! What handlers get of a message besides its payload: its headers, and the checkpoint of earlier work.

use dq_client::Meta;
use percent_encoding::{percent_encode, AsciiSet, CONTROLS};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The most bytes that headers and checkpoint take in a request: servers refuse requests with more than 8 KB of
/// headers.
const REQUEST: usize = 6 * 1024;
/// Headers of messages that are headers of requests under their own names: those of traces, and the type of the
/// payload. Under any other name they could change the request.
const OWN_NAME: [&str; 3] = ["traceparent", "tracestate", "content-type"];

const CHECKPOINT: &str = "DQ_CHECKPOINT";
const HEADER: &str = "DQ_HEADER_";

/// Variables of the environment: `DQ_HEADER_NAME`, and `DQ_CHECKPOINT`. What has a zero byte does not fit into one.
/// Headers that would be the same variable are left out: a command could take the one for the other.
pub fn environment(meta: &Meta) -> Vec<(String, OsString)> {
    let value = |bytes: &[u8]| (!bytes.contains(&0)).then(|| OsStr::from_bytes(bytes).to_owned());
    let headers = alone(meta.headers.iter().map(|(name, bytes)| (variable(name), bytes)).collect());
    let header = |(name, bytes): (String, &[u8])| Some((name, value(bytes)?));
    let checkpoint = meta.checkpoint.as_deref().and_then(value).map(|value| (CHECKPOINT.to_owned(), value));
    headers.into_iter().filter_map(header).chain(checkpoint).collect()
}

/// Whether a variable of the worker's own environment looks like one of a message.
pub fn is_of_message(variable: &OsStr) -> bool {
    variable == CHECKPOINT || variable.as_bytes().starts_with(HEADER.as_bytes())
}

/// Those whose names are unique.
fn alone<T>(named: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    named.iter().for_each(|(name, _)| *counts.entry(name.to_ascii_lowercase()).or_default() += 1);
    named.into_iter().filter(|(name, _)| counts.get(&name.to_ascii_lowercase()) == Some(&1)).collect()
}

/// `content-type` as `DQ_HEADER_CONTENT_TYPE`.
fn variable(name: &[u8]) -> String {
    let letter = |byte: &u8| if byte.is_ascii_alphanumeric() { char::from(byte.to_ascii_uppercase()) } else { '_' };
    HEADER.chars().chain(name.iter().map(letter)).collect()
}

/// Headers of a request: `DQ-Header-Name` and `DQ-Checkpoint`, as long as they fit.
pub fn request_headers(meta: &Meta) -> Vec<(String, String)> {
    let named = meta.headers.iter().map(|(name, value)| (format!("DQ-Header-{}", field(name)), encoded(value)));
    let mut headers: Vec<(String, String)> = alone(named.collect());
    let own = |(name, value): (&[u8], &[u8])| {
        let own = OWN_NAME.into_iter().find(|own| own.as_bytes().eq_ignore_ascii_case(name))?;
        let is_plain = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
        is_plain.then(|| (own.to_owned(), String::from_utf8_lossy(value).into_owned()))
    };
    headers.extend(alone(meta.headers.iter().filter_map(own).collect()));
    if let Some(checkpoint) = &meta.checkpoint {
        headers.push(("DQ-Checkpoint".to_owned(), encoded(checkpoint)));
    }
    let mut size = 0;
    headers.retain(|(name, value)| {
        let fits = size + name.len() + value.len() <= REQUEST;
        size += if fits { name.len() + value.len() } else { 0 };
        fits
    });
    headers
}

/// The name of a header of a message as a part of the name of a header of a request.
fn field(name: &[u8]) -> String {
    let letter =
        |byte: &u8| if byte.is_ascii_alphanumeric() || b"-_.".contains(byte) { char::from(*byte) } else { '-' };
    name.iter().map(letter).collect()
}

/// Bytes as the value of a header: all but visible ASCII is percent-encoded.
pub fn encoded(bytes: &[u8]) -> String {
    const HIDDEN: &AsciiSet = &CONTROLS.add(b' ').add(b'%');
    percent_encode(bytes, HIDDEN).to_string()
}

#[cfg(test)]
mod tests {
    use super::{alone, encoded, field, is_of_message, variable};
    use std::ffi::OsStr;

    #[test]
    fn headers_of_one_variable_are_none() {
        let names = ["user-id", "user_id", "User.Id", "trace"].map(|name| (variable(name.as_bytes()), name)).to_vec();
        assert_eq!(alone(names), [("DQ_HEADER_TRACE".to_owned(), "trace")]);
        let fields = ["a b", "A-b", "c"].map(|name| (field(name.as_bytes()), name)).to_vec();
        assert_eq!(alone(fields), [("c".to_owned(), "c")]);
    }

    #[test]
    fn what_a_message_has_is_not_inherited() {
        let found = ["DQ_CHECKPOINT", "DQ_HEADER_A", "DQ_URL", "PATH"].map(|name| is_of_message(OsStr::new(name)));
        assert_eq!(found, [true, true, false, false]);
    }

    #[test]
    fn any_name_and_any_value_can_be_passed_on() {
        assert_eq!(encoded("a b%\nü".as_bytes()), "a%20b%25%0A%C3%BC");
        assert_eq!(variable("content-type ü".as_bytes()), "DQ_HEADER_CONTENT_TYPE___");
        assert_eq!(field(b"a b:c\r\nHost"), "a-b-c--Host");
    }
}
