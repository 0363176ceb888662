//! The names of messages and of their deliveries.

use crate::connect::random;
use crate::reply::{self, read_as};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// The id of a message: 1 to 255 bytes, usually text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(super) Vec<u8>);

/// Names one delivery of a message. It is stale once the message has been delivered again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(Vec<u8>);

impl Id {
    /// An id that no other push has, with which a push can be repeated.
    pub(crate) fn unique() -> Id {
        static PROCESS: OnceLock<String> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let process = PROCESS.get_or_init(|| format!("{:016x}{:08x}", random(), random() >> 32));
        Id(format!("u{process}{:x}", NEXT.fetch_add(1, Ordering::Relaxed)).into_bytes())
    }
}

macro_rules! name {
    ($name:ident) => {
        impl $name {
            /// The text, or `None` if the bytes are not UTF-8.
            pub fn as_str(&self) -> Option<&str> {
                std::str::from_utf8(&self.0).ok()
            }
        }

        read_as! { $name, value => reply::bytes(value).map($name); }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name(text.as_bytes().to_vec())
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                self.0 == text.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                String::from_utf8_lossy(&self.0).fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                String::from_utf8_lossy(&self.0).fmt(f)
            }
        }
    };
}

name!(Id);
name!(Receipt);
