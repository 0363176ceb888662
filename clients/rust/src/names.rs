//! The names of queues, messages and deliveries: a type for each, so that none is taken for another.

use redis::{RedisWrite, ToRedisArgs};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Declares the type of a name, which holds its bytes.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident($bytes:ty)) => {
        $(#[$doc])*
        ///
        /// Made from text or bytes, borrowed or owned. [`Display`](fmt::Display) writes the text; of a name that is not
        /// UTF-8, ASCII with escapes such as `\xff`.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($bytes);

        impl $name {
            /// The bytes.
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }

            /// The text, or `None` if the bytes are not UTF-8.
            pub fn as_str(&self) -> Option<&str> {
                std::str::from_utf8(&self.0).ok()
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl Borrow<[u8]> for $name {
            fn borrow(&self) -> &[u8] {
                &self.0
            }
        }

        impl<B: AsRef<[u8]> + ?Sized> From<&B> for $name {
            fn from(bytes: &B) -> $name {
                $name(bytes.as_ref().into())
            }
        }

        impl From<Vec<u8>> for $name {
            fn from(bytes: Vec<u8>) -> $name {
                $name(bytes.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> $name {
                $name(text.into_bytes().into())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                self.as_bytes() == text.as_bytes()
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                self == *text
            }
        }

        impl ToRedisArgs for $name {
            fn write_redis_args<W: RedisWrite + ?Sized>(&self, out: &mut W) {
                out.write_arg(&self.0);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.as_str() {
                    Some(text) => text.fmt(f),
                    None => self.0.escape_ascii().fmt(f),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

name! {
    /// The name of a queue, which is the key of the server that holds it. Cheap to clone.
    QueueName(Arc<[u8]>)
}

name! {
    /// The id of a message: 1 to 255 bytes, usually text.
    MessageId(Vec<u8>)
}

name! {
    /// Names one delivery of a message. It is stale once the message has been delivered again.
    Receipt(Vec<u8>)
}

#[cfg(test)]
mod tests {
    use super::{MessageId, QueueName};
    use std::collections::BTreeMap;

    #[test]
    fn names_are_made_from_text_and_bytes() {
        let all = [
            QueueName::from("mail"),
            QueueName::from(&"mail"),
            QueueName::from(b"mail"),
            QueueName::from(&String::from("mail")),
            QueueName::from(String::from("mail")),
            QueueName::from(vec![b'm', b'a', b'i', b'l']),
            QueueName::from(&QueueName::from("mail")),
        ];
        assert!(all.iter().all(|name| *name == "mail" && name.as_bytes() == b"mail"));
        assert_eq!(MessageId::from(&MessageId::from("m-1")).as_str(), Some("m-1"));
    }

    #[test]
    fn two_names_are_never_shown_alike() {
        assert_eq!(QueueName::from("größe").to_string(), "größe");
        let shown = [b"q\xfe", b"q\xff"].map(|bytes| QueueName::from(bytes).to_string());
        assert_eq!(shown, [r"q\xfe", r"q\xff"]);
    }

    #[test]
    fn names_are_found_by_their_bytes() {
        let rows = BTreeMap::from([(QueueName::from("mail"), 7)]);
        assert_eq!(rows.get(&b"mail"[..]), Some(&7));
    }
}
