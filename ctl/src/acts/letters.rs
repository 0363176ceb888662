//! What becomes of dead letters that are sent back to the queue in which they died.

use crate::board::as_it_died;
use crate::server::{reply, reply::text, reply::unexpected, Failure};
use crate::text::{messages, shown};
use dq_client::{blocking::Client, Error, Value};

const RIGHTS: &str = "to send messages back, a user needs +eval +dq.get +dq.info +dq.push +dq.cancel for both queues";

/// Which letters stay where they are, by the answer of the script.
const STAY: [(&str, &str); 3] = [
    ("inflight", "in flight"),
    ("known", "with an id that the queue in which it died has again"),
    ("foreign", "from a queue that does not exist, or does not move its dead messages here (--deadforward)"),
];

/// How many letters stay where they are.
#[derive(Default)]
pub struct Left([u64; 3]);

impl Left {
    /// Whether a letter was sent back, which is noted otherwise; no letter has this id if the answer is `none`.
    pub fn count(&mut self, reply: &Value) -> Result<bool, Failure> {
        let answer = text(reply).unwrap_or_default();
        if let Some((number, _)) = self.0.iter_mut().zip(STAY).find(|(_, (stays, _))| *stays == answer) {
            *number += 1;
        } else if answer != "sent" && answer != "none" {
            return Err(unexpected(reply));
        }
        Ok(answer == "sent")
    }

    /// Which letters stay, and why.
    pub fn notes(self) -> impl Iterator<Item = String> {
        let stay = self.0.into_iter().zip(STAY).filter(|(number, _)| *number > 0);
        stay.map(|(number, (_, which))| format!("left here: {} {which}", messages(number)))
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
