//! The settings `FORWARD` and `DEADFORWARD`: where the server itself writes messages that are due, and dead ones.

use crate::reply::{self, Field};
use crate::Error;
use redis::Value;

/// Where messages go when they are due, instead of waiting for a pop, or where dead messages go.
///
/// Dead messages go to a stream, to a list without a set, or to another queue, and messages that are due to no queue:
/// the server refuses other targets. For dead messages the fields
/// `reason`, `error`, `attempt` and `died` of a stream follow `due` then.
///
/// The keys are in the queue's own database, and in a cluster in the slot of the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Forward {
    /// Each message becomes an entry of a stream, with the fields `id`, `payload` and `due`, and `header:<name>` for
    /// each header.
    Stream {
        /// The key of the stream.
        target: String,
        /// About how many entries the stream is trimmed to.
        trim: Option<u64>,
    },
    /// The payload is pushed to a list.
    List {
        /// The key of the list.
        target: String,
        /// Which end of the list; `None` is the right one.
        end: Option<ListEnd>,
        /// A set, and the member that is added to it before the list is written to.
        register: Option<(String, String)>,
    },
    /// The payload is published to a channel. A message that nobody receives is lost.
    Channel(String),
    /// Dead messages are pushed to another queue, with headers that say how they died.
    Queue(String),
    /// Messages wait for a pop, or stay dead.
    None,
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListEnd {
    /// `LPUSH`.
    Left,
    /// `RPUSH`.
    Right,
}

impl Forward {
    /// The words of the setting.
    pub(super) fn words(&self) -> Vec<Vec<u8>> {
        let trimmed;
        let words = match self {
            Forward::None => vec!["NONE"],
            Forward::Channel(name) => vec!["CHANNEL", name],
            Forward::Queue(target) => vec!["QUEUE", target],
            Forward::Stream { target, trim: None } => vec!["STREAM", target],
            Forward::Stream { target, trim: Some(entries) } => {
                trimmed = entries.to_string();
                vec!["STREAM", target, "TRIM", &trimmed]
            }
            Forward::List { target, end, register } => {
                let end = end.map(|end| if end == ListEnd::Left { "LEFT" } else { "RIGHT" });
                let register = register.iter().flat_map(|(set, member)| ["REGISTER", set, member]);
                ["LIST", target].into_iter().chain(end).chain(register).collect()
            }
        };
        words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    /// Reads the setting as `DQ.INFO` shows it. `None` if a name contains a space, because the end of such a name is
    /// ambiguous.
    fn parse(words: &str) -> Option<Forward> {
        let words: Vec<&str> = words.split(' ').collect();
        Some(match words.as_slice() {
            ["NONE"] => Forward::None,
            ["QUEUE", target] => Forward::Queue((*target).to_owned()),
            ["CHANNEL", name] => Forward::Channel((*name).to_owned()),
            ["STREAM", target] => Forward::Stream { target: (*target).to_owned(), trim: None },
            ["STREAM", target, "TRIM", entries] => {
                Forward::Stream { target: (*target).to_owned(), trim: Some(entries.parse().ok()?) }
            }
            ["LIST", target, rest @ ..] => {
                let (end, rest) = match rest {
                    ["LEFT", rest @ ..] => (Some(ListEnd::Left), rest),
                    ["RIGHT", rest @ ..] => (Some(ListEnd::Right), rest),
                    rest => (None, rest),
                };
                let register = match rest {
                    [] => None,
                    ["REGISTER", set, member] => Some(((*set).to_owned(), (*member).to_owned())),
                    _ => return None,
                };
                Forward::List { target: (*target).to_owned(), end, register }
            }
            _ => return None,
        })
    }
}

impl Field for Option<Forward> {
    fn read(value: Value) -> Result<Self, Error> {
        Ok(reply::optional(value, |words| reply::text(&words))?.and_then(|words| Forward::parse(&words)))
    }
}
