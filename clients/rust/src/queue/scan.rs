//! Iterating over all messages of a queue.

use super::message::{Message, State};
use super::Queue;
use crate::connect::Resend;
use crate::reply;
use crate::Error;
use std::collections::VecDeque;

/// How many messages each page looks at.
const PAGE: u32 = 100;

/// An iterator over the messages of a queue, in no defined order.
///
/// A message that is there from the beginning to the end is returned exactly once. Ends after the first error.
#[derive(Debug)]
pub struct Scan<'a, T> {
    queue: &'a Queue<T>,
    state: Option<State>,
    recurring: bool,
    sequence: bool,
    page: VecDeque<Message<T>>,
    /// `None`: there is no further page.
    cursor: Option<Vec<u8>>,
}

impl<'a, T> Scan<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>) -> Scan<'a, T> {
        Scan {
            queue,
            state: None,
            recurring: false,
            sequence: false,
            page: VecDeque::new(),
            cursor: Some(b"0".to_vec()),
        }
    }

    /// Only messages in this state.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Only messages with a schedule.
    #[must_use]
    pub fn recurring(mut self) -> Self {
        self.recurring = true;
        self
    }

    /// Each message has its position in the push order; see [`Message::sequence`].
    #[must_use]
    pub fn sequence(mut self) -> Self {
        self.sequence = true;
        self
    }

    fn next_page(&mut self, cursor: Vec<u8>) -> Result<(), Error> {
        let mut command = self.queue.command("DQ.SCAN");
        command.word(cursor);
        command.option("COUNT", PAGE);
        if let Some(state) = self.state {
            command.option("STATE", state.as_str());
        }
        if self.recurring {
            command.word("RECURRING");
        }
        if self.sequence {
            command.word("SEQUENCE");
        }
        let reply = self.queue.answer(&command, Resend::Harmless).map_err(|failure| failure.error)?.value;
        let messages;
        (self.cursor, messages) = reply::page(reply)?;
        self.page = messages.into_iter().map(Message::read).collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl<T> Iterator for Scan<'_, T> {
    type Item = Result<Message<T>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(message) = self.page.pop_front() {
                return Some(Ok(message));
            }
            let cursor = self.cursor.take()?;
            if let Err(error) = self.next_page(cursor) {
                return Some(Err(error));
            }
        }
    }
}
