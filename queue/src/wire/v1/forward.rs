//! Where a queue forwards its messages.

use super::super::super::forward::{Forward as LiveForward, ListEnd, Register};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// A target. Stream: the key, and its limit. List: the key, whether it is the left end if the client named one, and the
/// set with its member. Channel: the name.
#[derive(Debug, Serialize, Deserialize)]
pub enum Forward {
    #[serde(rename = "s")]
    Stream(ByteBuf, Option<u64>),
    #[serde(rename = "l")]
    List(ByteBuf, Option<bool>, Option<(ByteBuf, ByteBuf)>),
    #[serde(rename = "c")]
    Channel(ByteBuf),
}

fn written(live: &[u8]) -> ByteBuf {
    ByteBuf::from(live.to_vec())
}

fn read(wire: ByteBuf) -> Box<[u8]> {
    wire.into_vec().into_boxed_slice()
}

impl From<&LiveForward> for Forward {
    fn from(live: &LiveForward) -> Self {
        match live {
            LiveForward::Stream { key, trim } => Forward::Stream(written(key), *trim),
            LiveForward::List { key, end, register } => {
                let is_left = match end {
                    ListEnd::Default => None,
                    ListEnd::Left => Some(true),
                    ListEnd::Right => Some(false),
                };
                let register = register.as_ref().map(|Register { set, member }| (written(set), written(member)));
                Forward::List(written(key), is_left, register)
            }
            LiveForward::Channel { name } => Forward::Channel(written(name)),
        }
    }
}

impl From<Forward> for LiveForward {
    fn from(wire: Forward) -> Self {
        match wire {
            Forward::Stream(key, trim) => LiveForward::Stream { key: read(key), trim },
            Forward::List(key, is_left, register) => {
                let end = match is_left {
                    None => ListEnd::Default,
                    Some(true) => ListEnd::Left,
                    Some(false) => ListEnd::Right,
                };
                let register = register.map(|(set, member)| Register { set: read(set), member: read(member) });
                LiveForward::List { key: read(key), end, register }
            }
            Forward::Channel(name) => LiveForward::Channel { name: read(name) },
        }
    }
}
