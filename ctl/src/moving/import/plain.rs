//! Sorted sets, lists and streams that are read by code of one's own, not by a library.

use super::ids::id;
use super::libraries::each;
use super::source::{bytes, fields_as_json, Element, Order, Reader, SourceValue, Values};
use crate::cli::End;
use crate::moving::push::NewMessage;
use crate::output::Progress;
use crate::server::{reply, Failure};
use dq_client::{blocking::Client, cmd, Resend, Value};

pub fn sorted_set(key: Vec<u8>) -> Values {
    let source = key.clone();
    // With its score, since a member that is added again with another one is another message.
    let element = move |found: SourceValue| {
        let score = found.score.map(|score| score.to_string()).unwrap_or_default();
        let id = id("zset", &[&source, score.as_bytes(), &found.value]);
        let message = NewMessage { id, payload: found.value, due: found.due, ..NewMessage::default() };
        Element::Message { message: Box::new(message), remove: Vec::new() }
    };
    Values { key, order: Order::Time, convert: each(element) }
}

/// Moves elements from a list to a queue. A push that is refused ends the script before the element is removed.
const MOVE: &str = "
local take = ARGV[1] == 'left' and 'LPOP' or 'RPOP'
local place = ARGV[1] == 'left' and 0 or -1
local moved, bytes = 0, 0
while moved < 500 and bytes < 4194304 do
    local element = redis.call('LINDEX', KEYS[1], place)
    if not element then break end
    redis.call('DQ.PUSH', KEYS[2], element)
    redis.call(take, KEYS[1])
    moved = moved + 1
    bytes = bytes + #element
end
return moved";

/// Moves a whole list, and returns how many elements it had. An element of a list has no id by which a copy could be
/// repeated, so each is pushed and removed in one step of the server.
pub fn move_list(client: &Client, key: &[u8], queue: &[u8], from: End, progress: &Progress) -> Result<u64, Failure> {
    let end = if from == End::Left { "left" } else { "right" };
    let command = cmd("EVAL").arg(MOVE).arg(2).arg(key).arg(queue).arg(end).clone();
    let mut total = 0;
    loop {
        // If its reply is lost, the next one goes on where it ended.
        let reply = client.call(&command, Resend::Harmless).map_err(|error| {
            Failure::failed(format!(
                "{}; {total} were imported, and the same command goes on from there",
                Failure::from(error)
            ))
        })?;
        match reply::int(&reply).and_then(|moved| u64::try_from(moved).ok()) {
            None | Some(0) => return Ok(total),
            Some(moved) => {
                total += moved;
                progress.done(moved);
            }
        }
    }
}

/// A stream: all its entries, in their order. A payload is the only field `payload` of an entry, or all fields as JSON.
pub struct Stream {
    pub key: Vec<u8>,
    /// The last entry that was read.
    pub last: Option<Vec<u8>>,
}

impl Reader for Stream {
    fn page(&mut self, client: &Client, _: u64, count: u64) -> Result<Option<Vec<Element>>, Failure> {
        let start = self.last.as_ref().map_or_else(|| b"-".to_vec(), |last| [b"(", last.as_slice()].concat());
        let mut range = cmd("XRANGE");
        range.arg(&self.key).arg(start).arg("+").arg("COUNT").arg(count);
        let mut elements = Vec::new();
        for entry in reply::list(client.call(&range, Resend::Harmless)?)? {
            let mut parts = reply::list(entry)?.into_iter();
            let entry = bytes(parts.next().unwrap_or(Value::Nil))?;
            let pairs = reply::pairs(parts.next().unwrap_or(Value::Nil))?.into_iter();
            let fields =
                pairs.map(|(name, value)| Ok((bytes(name)?, bytes(value)?))).collect::<Result<Vec<_>, Failure>>()?;
            let payload = match fields.as_slice() {
                [(name, value)] if name == b"payload" => value.clone(),
                _ => fields_as_json(&fields),
            };
            let id = id("stream", &[&self.key, &entry]);
            let message = NewMessage { id, payload, ..NewMessage::default() };
            let remove = vec![cmd("XDEL").arg(&self.key).arg(&entry).clone()];
            elements.push(Element::Message { message: Box::new(message), remove });
            self.last = Some(entry);
        }
        Ok(Some(elements).filter(|elements| !elements.is_empty()))
    }
}
