//! Names of queues and ids of messages, which may be any bytes, as a person reads and types them.

use crate::text::{is_unsafe, is_unseen};
use base64::prelude::{Engine, BASE64_STANDARD};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};
use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;

/// The name of a queue.
pub type QueueName = Typed<OfQueue>;
/// The id of a message, or a receipt.
pub type MessageId = Typed<OfMessage>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OfQueue;
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OfMessage;

/// Any bytes on the command line. Its `Display` is the form that the command line takes. `Kind` keeps names and ids
/// apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Typed<Kind> {
    bytes: Vec<u8>,
    kind: PhantomData<Kind>,
}

impl<Kind> Typed<Kind> {
    fn new(bytes: Vec<u8>) -> Typed<Kind> {
        Typed { bytes, kind: PhantomData }
    }

    /// Reads the escapes that [`shown`] writes, such as `\xff` for the byte 255, and all other bytes as they are.
    pub fn read(typed: &[u8]) -> Typed<Kind> {
        let (mut name, mut rest) = (Vec::with_capacity(typed.len()), typed);
        while let Some((first, after)) = rest.split_first() {
            let (byte, after) = escaped(rest).unwrap_or((*first, after));
            name.push(byte);
            rest = after;
        }
        Typed::new(name)
    }

    /// The bytes as they are.
    pub fn from_bytes(bytes: &[u8]) -> Typed<Kind> {
        Typed::new(bytes.to_vec())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl MessageId {
    /// The id in a receipt; an id as it is, because it has no #.
    pub fn id(&self) -> MessageId {
        Typed::from_bytes(self.bytes.split(|byte| *byte == b'#').next().unwrap_or_default())
    }
}

impl<Kind> AsRef<[u8]> for Typed<Kind> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A program reads the name that it gave.
impl<Kind> Serialize for Typed<Kind> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = std::str::from_utf8(&self.bytes).map_or_else(|_| shown(&self.bytes), str::to_owned);
        serializer.serialize_str(&text)
    }
}

impl<Kind> Display for Typed<Kind> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&shown(&self.bytes))
    }
}

/// Reads a name as it is typed.
impl<Kind> From<OsString> for Typed<Kind> {
    fn from(typed: OsString) -> Typed<Kind> {
        Typed::read(typed.as_bytes())
    }
}

/// A name as text: bytes that are not UTF-8, and characters that nobody sees, are written as `\xff`, and so is a `\`
/// that would otherwise be read as the beginning of one.
pub fn shown(name: &[u8]) -> String {
    written(name, |c, rest| is_unseen(c) || escaped(rest).is_some())
}

/// A text of any bytes, such as an error: bytes that are not UTF-8 and control characters are written as in [`shown`],
/// but for tabs and the ends of lines.
pub fn readable(text: &[u8]) -> String {
    written(text, |c, _| is_unsafe(c) && !matches!(c, '\t' | '\n' | '\r'))
}

/// Bytes as text. Escapes bytes that are not UTF-8, and the characters that `is_escaped` chooses, given the character
/// and the bytes from it on.
fn written(bytes: &[u8], is_escaped: impl Fn(char, &[u8]) -> bool) -> String {
    let (mut text, mut rest) = (String::with_capacity(bytes.len()), bytes);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let (bytes, after) = rest.split_at(c.len_utf8());
            if is_escaped(c, rest) {
                escape(&mut text, bytes);
            } else {
                text.push(c);
            }
            rest = after;
        }
        escape(&mut text, chunk.invalid());
        rest = rest.get(chunk.invalid().len()..).unwrap_or_default();
    }
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
}

/// The byte that the beginning of a text stands for, and what follows: `\xff` and the rest. `\x41` stands for itself,
/// because an `A` is never written so: ids that hold it are typed as `--json` prints them.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = text.strip_prefix(b"\\x")?.split_at_checked(2)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (byte == b'\\' || !matches!(byte, b' '..=b'~')).then_some((byte, after))
}

/// Adds a name to an object: what can be read of it, and all of its bytes under `NAME-base64` if it is not UTF-8.
pub fn put(object: &mut Map<String, Json>, field: &str, name: &[u8]) {
    object.insert(field.to_owned(), String::from_utf8_lossy(name).into());
    if std::str::from_utf8(name).is_err() {
        object.insert(format!("{field}-base64"), BASE64_STANDARD.encode(name).into());
    }
}

#[cfg(test)]
mod tests {
    use super::{shown, MessageId};

    #[test]
    fn a_name_that_is_shown_is_read_as_the_same_name() {
        for (name, text) in [
            (&b"mail"[..], "mail"),
            (b"images:\xff\xfe", r"images:\xff\xfe"),
            (b"a\tb\n", r"a\x09b\x0a"),
            (br"a\xffb", r"a\x5cxffb"),
            (br"back\slash \x \xg", r"back\slash \x \xg"),
            (br"a\x41", r"a\x41"),
            (br"a\x5cx41", r"a\x5cx5cx41"),
            ("ü\u{85}\u{1f600}".as_bytes(), "ü\\xc2\\x85\u{1f600}"),
            (b"\xe2\x82", r"\xe2\x82"),
            ("a\u{200b}\u{61c}\u{2028}".as_bytes(), r"a\xe2\x80\x8b\xd8\x9c\xe2\x80\xa8"),
            ("\u{feff}a\u{200d}\u{ad}".as_bytes(), r"\xef\xbb\xbfa\xe2\x80\x8d\xc2\xad"),
        ] {
            assert_eq!(shown(name), text);
            assert_eq!(MessageId::read(text.as_bytes()).as_bytes(), name, "{text}");
            assert_eq!(MessageId::read(name).as_bytes() == name, !text.contains("x5c"), "{text}");
        }
    }
}
