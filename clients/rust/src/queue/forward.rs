//! The settings `FORWARD` and `DEADFORWARD`: where the server itself writes messages that are due, and dead ones.

use super::command::Command;

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
    /// Writes the setting as this option.
    pub(super) fn write(&self, command: &mut Command, option: &str) {
        command.word(option);
        match self {
            Forward::None => command.word("NONE"),
            Forward::Channel(name) => command.option("CHANNEL", name),
            Forward::Queue(target) => command.option("QUEUE", target),
            Forward::Stream { target, trim } => {
                command.option("STREAM", target);
                if let Some(entries) = trim {
                    command.option("TRIM", *entries);
                }
            }
            Forward::List { target, end, register } => {
                command.option("LIST", target);
                match end {
                    None => {}
                    Some(ListEnd::Left) => command.word("LEFT"),
                    Some(ListEnd::Right) => command.word("RIGHT"),
                }
                if let Some((set, member)) = register {
                    command.option("REGISTER", set);
                    command.word(member);
                }
            }
        }
    }

    /// Reads the setting as `DQ.INFO` shows it. `None` if a name contains a space, because the end of such a name is
    /// ambiguous.
    pub(super) fn read(words: &str) -> Option<Forward> {
        let list = |target: &str, end, register: Option<(&str, &str)>| Forward::List {
            target: target.to_owned(),
            end,
            register: register.map(|(set, member)| (set.to_owned(), member.to_owned())),
        };
        let words: Vec<&str> = words.split(' ').collect();
        Some(match words.as_slice() {
            ["NONE"] => Forward::None,
            ["QUEUE", target] => Forward::Queue((*target).to_owned()),
            ["CHANNEL", name] => Forward::Channel((*name).to_owned()),
            ["STREAM", target] => Forward::Stream { target: (*target).to_owned(), trim: None },
            ["STREAM", target, "TRIM", entries] => {
                Forward::Stream { target: (*target).to_owned(), trim: Some(entries.parse().ok()?) }
            }
            ["LIST", target] => list(target, None, None),
            ["LIST", target, "LEFT"] => list(target, Some(ListEnd::Left), None),
            ["LIST", target, "RIGHT"] => list(target, Some(ListEnd::Right), None),
            ["LIST", target, "REGISTER", set, member] => list(target, None, Some((set, member))),
            ["LIST", target, "LEFT", "REGISTER", set, member] => list(target, Some(ListEnd::Left), Some((set, member))),
            ["LIST", target, "RIGHT", "REGISTER", set, member] => {
                list(target, Some(ListEnd::Right), Some((set, member)))
            }
            _ => return None,
        })
    }
}
