//! The first messages of a state, of which only a part is read if their payloads are large: a page or a screen shows the
//! beginnings of payloads, but the server sends all of them.

use crate::server::failure::Failure;
use crate::server::reply::{self, Fields};
use dq_client::blocking::Client;
use dq_client::{Cmd, Error, Resend, Value};

/// How many are read before anything is known of their size, and how many times as many in the next step at most.
const FEW: i64 = 1;
const GROWTH: i64 = 8;

/// The most messages to read, and about how many bytes of their payloads.
#[derive(Clone, Copy)]
pub struct Most {
    pub messages: i64,
    pub bytes: i64,
}

/// Reads them in larger and larger steps, as far as those that were read allow: the first ones may be much larger than the
/// others of the queue. `peek` is `DQ.PEEK` without `COUNT`, and `info` are the fields of `DQ.INFO`.
pub fn read(client: &Client, peek: &Cmd, info: &Fields, most: Most) -> Result<Vec<Fields>, Error> {
    // The results of done messages are not among the payloads that the server sums up.
    let is_small =
        info.int("payload-bytes").is_some_and(|bytes| bytes <= most.bytes) && info.int("done").unwrap_or(0) == 0;
    let mut count = if is_small { most.messages } else { FEW.min(most.messages) };
    loop {
        let mut command = peek.clone();
        let reply = client.call(command.arg("COUNT").arg(count), Resend::Harmless)?;
        let messages = fields(reply).map_err(|failure| Error::Protocol(failure.to_string()))?;
        let next = next(count, most, bytes(&messages));
        if next <= count || i64::try_from(messages.len()).is_ok_and(|read| read < count) {
            return Ok(messages);
        }
        count = next;
    }
}

fn fields(reply: Value) -> Result<Vec<Fields>, Failure> {
    reply::list(reply)?.into_iter().map(Fields::read).filter_map(Result::transpose).collect()
}

/// How many are read next, after `count` that have so many bytes.
fn next(count: i64, most: Most, bytes: i64) -> i64 {
    let average = bytes / count.max(1);
    (most.bytes / average.max(1)).min(count * GROWTH).min(most.messages)
}

fn bytes(messages: &[Fields]) -> i64 {
    let payloads = messages.iter().map(|message| message.bytes("payload").len().max(message.bytes("result").len()));
    i64::try_from(payloads.sum::<usize>()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{next, Most};

    #[test]
    fn large_messages_are_followed_by_few() {
        let most = Most { messages: 50, bytes: 8 << 20 };
        assert_eq!(next(1, most, 100), 8);
        assert_eq!(next(8, most, 8 * 100), 50);
        assert_eq!(next(1, most, 4 << 20), 2);
        assert!(next(1, most, 8 << 20) <= 1);
    }
}
