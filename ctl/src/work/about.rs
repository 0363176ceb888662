//! What handlers are told of a message besides its payload: its headers, and the checkpoint of earlier work.

use dq_client::Meta;
use percent_encoding::{percent_encode, AsciiSet, CONTROLS};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The most bytes that headers and checkpoint take in a request: servers refuse requests with more than 8 KB of headers.
const REQUEST: usize = 6 * 1024;
/// Headers of messages that are headers of requests under their own names: those of traces, and the type of the payload.
/// Under any other name they could change the request.
const OWN_NAME: [&str; 3] = ["traceparent", "tracestate", "content-type"];

/// Variables of the environment: `DQ_HEADER_NAME`, and `DQ_CHECKPOINT`. What has a zero byte does not fit into one.
pub fn environment(meta: &Meta) -> Vec<(String, OsString)> {
    let value = |bytes: &[u8]| (!bytes.contains(&0)).then(|| OsStr::from_bytes(bytes).to_owned());
    let header = |(name, bytes): (&[u8], &[u8])| Some((variable(name), value(bytes)?));
    let checkpoint = meta.checkpoint.as_deref().and_then(value).map(|value| ("DQ_CHECKPOINT".to_owned(), value));
    meta.headers.iter().filter_map(header).chain(checkpoint).collect()
}

/// `content-type` as `DQ_HEADER_CONTENT_TYPE`.
fn variable(name: &[u8]) -> String {
    let letter = |byte: &u8| if byte.is_ascii_alphanumeric() { char::from(byte.to_ascii_uppercase()) } else { '_' };
    "DQ_HEADER_".chars().chain(name.iter().map(letter)).collect()
}

/// Headers of a request: `DQ-Header-Name` and `DQ-Checkpoint`, as long as they fit.
pub fn request_headers(meta: &Meta) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in meta.headers.iter() {
        headers.push((format!("DQ-Header-{}", field(name)), encoded(value)));
        let own = OWN_NAME.into_iter().find(|own| own.as_bytes().eq_ignore_ascii_case(name));
        if let (Some(own), true) = (own, value.iter().all(|byte| matches!(byte, b' '..=b'~'))) {
            headers.push((own.to_owned(), String::from_utf8_lossy(value).into_owned()));
        }
    }
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
    use super::{encoded, field, variable};

    #[test]
    fn any_name_and_any_value_can_be_passed_on() {
        assert_eq!(encoded("a b%\nü".as_bytes()), "a%20b%25%0A%C3%BC");
        assert_eq!(variable("content-type ü".as_bytes()), "DQ_HEADER_CONTENT_TYPE___");
        assert_eq!(field(b"a b:c\r\nHost"), "a-b-c--Host");
    }
}
