//! What becomes of dead letters that are sent back to the queue in which they died.

use crate::board::dead::as_it_died;
use crate::server::failure::Failure;
use crate::server::reply::{self, text, unexpected};
use crate::text::name::shown;
use crate::text::number::messages;
use dq_client::blocking::Client;
use dq_client::{Error, Value};

const RIGHTS: &str = "to send messages back, a user needs +eval +dq.get +dq.info +dq.push +dq.cancel for both queues";

/// Letters that stay where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Left {
    in_flight: u64,
    /// Their former queue has messages of their ids.
    known: u64,
    /// The queue that they name does not exist, or does not move its dead messages here.
    foreign: u64,
}

impl Left {
    /// Whether a letter was sent back, which is noted otherwise. `None` if the id is that of no letter.
    pub fn count(&mut self, reply: &Value) -> Result<Option<bool>, Failure> {
        match text(reply).as_deref() {
            Some("sent") => return Ok(Some(true)),
            Some("inflight") => self.in_flight += 1,
            Some("known") => self.known += 1,
            Some("foreign") => self.foreign += 1,
            Some("none") => return Ok(None),
            _ => return Err(unexpected(reply)),
        }
        Ok(Some(false))
    }

    /// Which letters stay, and why.
    pub fn notes(self) -> impl Iterator<Item = String> {
        let stay = [
            (self.in_flight, "in flight"),
            (self.known, "with an id that the queue in which it died has again"),
            (self.foreign, "from a queue that does not exist, or does not move its dead messages here (--deadforward)"),
        ];
        let stay = stay.into_iter().filter(|(number, _)| *number > 0);
        stay.map(|(number, which)| format!("left here: {} {which}", messages(number)))
    }
}

/// Why a letter was not sent back, with the names of both queues if that is still known.
pub fn refusal(client: &Client, queue: &[u8], id: &[u8], error: Error) -> Failure {
    let letter = reply::message(client, queue, id).ok().flatten().and_then(as_it_died);
    let from = letter.map(|letter| shown(letter.bytes("from")));
    let to = from.as_ref().map_or_else(String::new, |from| format!(" to {from}"));
    let failure = Failure::of_script(error, RIGHTS).about(from.as_deref());
    failure.of(format!("the message {} was not sent back{to}", shown(id)))
}
