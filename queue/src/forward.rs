//! Forwarding: where a queue sends the messages that are due and those that are dead, and whether that works.
//!
//! The setting is part of the queue: it is saved, copied and replicated. Whether forwarding fails at present is not: it
//! depends on the server that has the queue, so each server keeps it for itself.

use super::memory::{box_bytes, given};
use super::settings::MAX_LENGTH;
use super::time::{DurationMs, UnixMs};

/// How long a queue waits before it tries again to forward, after the server has refused it.
pub const RETRY: DurationMs = DurationMs::new(1_000);

/// Which messages of a queue the server itself passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Those that are due, in delivery order, instead of waiting for a pop (`FORWARD`).
    Due,
    /// Those that are dead, the oldest first (`DEADFORWARD`).
    Dead,
}

impl Source {
    /// Both.
    pub const ALL: [Source; 2] = [Source::Due, Source::Dead];
}

/// Where a queue passes its messages on, if it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The target of messages that are due.
    pub due: Option<Box<Forward>>,
    /// The target of dead messages.
    pub dead: Option<Box<Forward>>,
}

impl Targets {
    /// The target of these messages.
    pub fn target(&self, source: Source) -> Option<&Forward> {
        match source {
            Source::Due => self.due.as_deref(),
            Source::Dead => self.dead.as_deref(),
        }
    }

    /// Sets the target of these messages.
    pub fn set(&mut self, source: Source, to: Option<Forward>) {
        let target = match source {
            Source::Due => &mut self.due,
            Source::Dead => &mut self.dead,
        };
        *target = to.map(Box::new);
    }

    /// Whether a client could have chosen these.
    pub fn are_valid(&self) -> bool {
        Source::ALL.iter().all(|source| self.target(*source).is_none_or(|to| to.is_valid(*source)))
    }
}

/// What a queue does with the messages that it passes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Each message becomes an entry of a stream.
    Stream {
        /// The key of the stream.
        key: Box<[u8]>,
        /// The stream is trimmed to about this many entries, from 1 to [`MAX_LENGTH`]; `None` means no limit.
        trim: Option<u64>,
    },
    /// The payload is pushed to a list.
    List {
        /// The key of the list.
        key: Box<[u8]>,
        /// The end to which it is pushed.
        end: ListEnd,
        /// A set that lists the queues of the consumers, if they need one.
        register: Option<Register>,
    },
    /// The payload is published.
    Channel {
        /// The name of the channel.
        name: Box<[u8]>,
    },
    /// The message is pushed to another queue.
    Queue {
        /// The key of the queue.
        key: Box<[u8]>,
    },
}

/// The end of a list to which payloads are pushed.
#[derive(Clone, Copy, Debug, Default)]
pub enum ListEnd {
    /// The right end, because the client named none.
    #[default]
    Default,
    /// The left end.
    Left,
    /// The right end.
    Right,
}

impl ListEnd {
    /// Whether it is the left end.
    pub const fn is_left(self) -> bool {
        matches!(self, ListEnd::Left)
    }
}

/// The default is the right end, so both mean the same.
impl PartialEq for ListEnd {
    fn eq(&self, other: &ListEnd) -> bool {
        self.is_left() == other.is_left()
    }
}

impl Eq for ListEnd {}

/// A member that is added to a set when something is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The key of the set.
    pub set: Box<[u8]>,
    /// The member.
    pub member: Box<[u8]>,
}

impl Forward {
    /// What it forwards to, as errors and the log name it: `stream`, `list`, `channel` or `queue`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Forward::Stream { .. } => "stream",
            Forward::List { .. } => "list",
            Forward::Channel { .. } => "channel",
            Forward::Queue { .. } => "queue",
        }
    }

    /// The name of the stream, the list, the channel or the queue.
    pub fn target(&self) -> &[u8] {
        match self {
            Forward::Stream { key, .. } | Forward::List { key, .. } | Forward::Queue { key } => key,
            Forward::Channel { name } => name,
        }
    }

    /// The keys to which it writes: at most the target and the set.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let (target, set) = match self {
            Forward::Stream { key, .. } | Forward::Queue { key } => (Some(&**key), None),
            Forward::List { key, register, .. } => (Some(&**key), register.as_ref().map(|register| &*register.set)),
            Forward::Channel { .. } => (None, None),
        };
        target.into_iter().chain(set)
    }

    /// The setting as a client writes it, without the word `FORWARD` or `DEADFORWARD`.
    pub fn words(&self) -> Vec<u8> {
        let mut words: Vec<&[u8]> = Vec::new();
        let trim;
        match self {
            Forward::Stream { key, trim: limit } => {
                words.extend([b"STREAM", &**key]);
                if let Some(limit) = limit {
                    trim = limit.to_string();
                    words.extend([b"TRIM", trim.as_bytes()]);
                }
            }
            Forward::List { key, end, register } => {
                words.extend([b"LIST", &**key]);
                match end {
                    ListEnd::Default => {}
                    ListEnd::Left => words.push(b"LEFT"),
                    ListEnd::Right => words.push(b"RIGHT"),
                }
                if let Some(Register { set, member }) = register {
                    words.extend([b"REGISTER", &**set, &**member]);
                }
            }
            Forward::Channel { name } => words.extend([b"CHANNEL", &**name]),
            Forward::Queue { key } => words.extend([b"QUEUE", &**key]),
        }
        words.join(&b' ')
    }

    /// Whether a client could have chosen this for these messages.
    pub fn is_valid(&self, source: Source) -> bool {
        match self {
            Forward::Stream { trim, .. } => trim.is_none_or(|trim| (1..=MAX_LENGTH).contains(&trim)),
            Forward::List { register: None, .. } => true,
            // Dead messages go to a key that keeps them, which no consumer's own client reads.
            Forward::List { register: Some(_), .. } | Forward::Channel { .. } => source == Source::Due,
            // The messages that are due have consumers of their own there, which may as well pop them here.
            Forward::Queue { .. } => source == Source::Dead,
        }
    }

    fn heap_bytes(&self) -> usize {
        let register = match self {
            Forward::List { register: Some(register), .. } => given(register.set.len()) + given(register.member.len()),
            Forward::Stream { .. } | Forward::List { .. } | Forward::Channel { .. } | Forward::Queue { .. } => 0,
        };
        given(self.target().len()) + register
    }
}

/// The forwarding of the messages of a queue that are due, or of those that are dead.
#[derive(Clone, Debug)]
pub(super) struct Forwarding {
    /// Where messages go.
    pub to: Forward,
    /// The error, if forwarding fails at present.
    pub failing: Option<Failing>,
}

/// The error with which the server refuses what a queue forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The server's text.
    pub error: Box<str>,
    /// Since when nothing could be forwarded.
    pub since: UnixMs,
    /// When the queue tries again.
    pub retry: UnixMs,
}

impl Forwarding {
    /// The number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let error = self.failing.as_ref().map_or(0, |failing| given(failing.error.len()));
        box_bytes::<Forwarding>() + self.to.heap_bytes() + error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(end: ListEnd, register: Option<(&[u8], &[u8])>) -> Forward {
        let register = register.map(|(set, member)| Register { set: set.into(), member: member.into() });
        Forward::List { key: b"l"[..].into(), end, register }
    }

    #[test]
    fn a_setting_is_written_as_it_was_given() {
        let stream = |trim| Forward::Stream { key: b"s"[..].into(), trim };
        let written = |forward: &Forward| String::from_utf8(forward.words()).unwrap();
        assert_eq!(written(&stream(None)), "STREAM s");
        assert_eq!(written(&stream(Some(10))), "STREAM s TRIM 10");
        assert_eq!(written(&list(ListEnd::Default, None)), "LIST l");
        assert_eq!(written(&list(ListEnd::Right, None)), "LIST l RIGHT");
        assert_eq!(written(&list(ListEnd::Left, Some((b"set", b"m")))), "LIST l LEFT REGISTER set m");
        assert_eq!(written(&Forward::Channel { name: b"c"[..].into() }), "CHANNEL c");
    }

    #[test]
    fn the_right_end_is_the_default() {
        assert_eq!(list(ListEnd::Default, None), list(ListEnd::Right, None));
        assert_ne!(list(ListEnd::Default, None), list(ListEnd::Left, None));
    }

    #[test]
    fn a_limit_of_a_stream_is_at_least_one() {
        let is_valid = |trim| Forward::Stream { key: Box::default(), trim }.is_valid(Source::Dead);
        assert!(is_valid(None) && is_valid(Some(1)) && is_valid(Some(MAX_LENGTH)));
        assert!(!is_valid(Some(0)) && !is_valid(Some(MAX_LENGTH + 1)));
    }

    #[test]
    fn dead_messages_go_to_a_stream_a_list_or_a_queue() {
        let register = Some((&b"set"[..], &b"m"[..]));
        for to in [Forward::Channel { name: Box::default() }, list(ListEnd::Left, register)] {
            assert_eq!(Source::ALL.map(|source| to.is_valid(source)), [true, false]);
        }
        assert!(list(ListEnd::Left, None).is_valid(Source::Dead));
        let queue = Forward::Queue { key: b"q"[..].into() };
        assert_eq!(Source::ALL.map(|source| queue.is_valid(source)), [false, true]);
        assert_eq!((queue.words(), queue.target()), (b"QUEUE q".to_vec(), &b"q"[..]));
    }

    #[test]
    fn the_keys_are_the_target_and_the_set() {
        let keys = |forward: Forward| forward.keys().map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(keys(list(ListEnd::Left, Some((b"set", b"m")))), [b"l".to_vec(), b"set".to_vec()]);
        assert!(keys(Forward::Channel { name: b"c"[..].into() }).is_empty());
    }

    #[test]
    fn a_queue_that_does_not_forward_pays_one_pointer() {
        assert_eq!(size_of::<Option<Box<Forwarding>>>(), 8);
    }
}
