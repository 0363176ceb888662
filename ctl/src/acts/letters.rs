//! Dead letters that are sent back to the queue in which they died: the answers of the script.

use super::site::Site;
use crate::board::as_it_died;
use crate::server::{reply::text, reply::unexpected, Failure};
use crate::text::{messages, shown};
use dq_client::{Error, Value};

const RIGHTS: &str = "to send messages back, a user needs +eval +dq.get +dq.info +dq.push +dq.cancel for both queues";

/// Which letters stay where they are, by the answer of the script.
const REASONS_TO_STAY: [(&str, &str); 3] = [
    ("inflight", "in flight"),
    ("known", "with an id that the queue in which it died has again"),
    ("foreign", "from a queue that does not exist, or does not move its dead messages here (--deadforward)"),
];

/// How many letters stay where they are, by reason.
#[derive(Default)]
pub struct Staying([u64; 3]);

impl Staying {
    /// Whether a letter was sent back. If it stays, it is counted. The answer `none` means that no letter has this id.
    pub fn count(&mut self, reply: &Value) -> Result<bool, Failure> {
        let answer = text(reply).unwrap_or_default();
        let mut reasons = self.0.iter_mut().zip(REASONS_TO_STAY);
        if let Some((number, _)) = reasons.find(|(_, (reason, _))| *reason == answer) {
            *number += 1;
        } else if answer != "sent" && answer != "none" {
            return Err(unexpected(reply));
        }
        Ok(answer == "sent")
    }

    /// Which letters stay, and why.
    pub fn notes(self) -> impl Iterator<Item = String> {
        let counted = self.0.into_iter().zip(REASONS_TO_STAY).filter(|(number, _)| *number > 0);
        counted.map(|(number, (_, which))| format!("left here: {} {which}", messages(number)))
    }
}

/// Why a letter was not sent back, with the names of both queues if that is still known.
pub fn refusal(site: &Site, id: &[u8], error: Error) -> Failure {
    let letter = site.message(id).ok().flatten().and_then(as_it_died);
    let from = letter.map(|letter| shown(letter.origin().unwrap_or_default()));
    let to = from.as_ref().map_or_else(String::new, |from| format!(" to {from}"));
    let failure = Failure::script(error, RIGHTS).about(from.as_deref());
    failure.in_context(format!("the message {} was not sent back{to}", shown(id)))
}
