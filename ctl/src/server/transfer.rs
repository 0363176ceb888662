//! Commands in batches that are repeated until they get through.

use crate::server::failure::{is_cut, Failure};
use crate::server::message::Message;
use dq_client::{blocking::Client, cmd, Cmd, Error, Resend, Value};
use std::time::Duration;

/// About the most bytes of one batch: the server answers other clients in between.
pub const BATCH_BYTES: usize = 4 << 20;
/// How often a batch is sent again if the server cannot be reached, and the pause in between: ten seconds in all.
const REPETITIONS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Sends commands that may be executed more than once, and repeats those that did not get through.
pub fn persistently(client: &Client, commands: &[Cmd]) -> Vec<Result<Value, Error>> {
    let mut replies = Vec::with_capacity(commands.len());
    let (mut most, mut left) = (commands.len(), REPETITIONS);
    while let Some(rest) = commands.get(replies.len()..).filter(|rest| !rest.is_empty()) {
        let some = rest.get(..most).unwrap_or(rest);
        let mut answers = client.batch(some);
        // What follows the first failure is sent again with it, so that the order of the commands is kept.
        let failed = answers.iter().position(|reply| reply.as_ref().is_err_and(Error::is_transient));
        let Some((first, Err(error))) = failed.and_then(|first| Some((first, answers.get(first).cloned()?))) else {
            replies.append(&mut answers);
            continue;
        };
        if left == 0 {
            replies.append(&mut answers);
            replies.resize(commands.len(), Err(error));
            break;
        }
        replies.extend(answers.into_iter().take(first));
        if is_cut(&error) && some.len() > 1 {
            most = some.len() / 2;
        } else {
            left -= 1;
            std::thread::sleep(PAUSE);
        }
    }
    replies
}

/// Reads up to `most` things with one command, and fewer if its reply does not get through, down to one. Returns how
/// many it asked for.
pub fn fewer<T>(most: u64, mut read: impl FnMut(u64, Resend) -> Result<T, Error>) -> Result<(T, u64), Error> {
    let mut count = most.max(1);
    loop {
        // The same question again would be answered in the same way.
        let resend = if count > 1 { Resend::Never } else { Resend::Harmless };
        match read(count, resend) {
            Err(error) if count > 1 && is_cut(&error) => count /= 2,
            answer => return answer.map(|answer| (answer, count)),
        }
    }
}

/// The messages of some ids; `None` for those that the queue does not have.
pub fn get_all(client: &Client, queue: &[u8], ids: &[&[u8]]) -> Result<Vec<Option<Message>>, Failure> {
    let commands: Vec<Cmd> = ids.iter().map(|id| cmd("DQ.GET").arg(queue).arg(*id).clone()).collect();
    persistently(client, &commands).into_iter().map(|reply| Message::read(reply?)).collect()
}

#[cfg(test)]
mod tests {
    use super::fewer;
    use dq_client::{ConnectionError, ConnectionErrorKind, Error};

    fn lost(kind: ConnectionErrorKind) -> Error {
        Error::Lost(ConnectionError::new(kind, "h:1", "reset"))
    }

    #[test]
    fn a_reply_that_is_too_long_is_asked_for_in_smaller_parts() {
        let answer =
            |limit: u64| move |count, _| if count > limit { Err(lost(ConnectionErrorKind::Closed)) } else { Ok(count) };
        assert_eq!(fewer(1_000, answer(100)).ok(), Some((62, 62)));
        assert_eq!(fewer(1_000, answer(1)).ok(), Some((1, 1)));
        assert!(fewer(1_000, answer(0)).is_err());
        let mut asked = 0;
        let silent = fewer::<()>(1_000, |_, _| {
            asked += 1;
            Err(lost(ConnectionErrorKind::NoReply))
        });
        assert!(silent.is_err() && asked == 1);
    }
}
