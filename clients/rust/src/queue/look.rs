//! The methods of a queue that only read.

use super::{Group, Groups, Info, Message, Queue, Scan, State, Stats};
use crate::reply;
use crate::Error;

impl<T> Queue<T> {
    /// How many messages are in a state; without one, how many are neither dead nor done.
    ///
    /// # Errors
    /// Those of every command.
    pub fn len(&self, state: Option<State>) -> Result<u64, Error> {
        self.len_of(state, None)
    }

    pub(super) fn len_of(&self, state: Option<State>, group: Option<&[u8]>) -> Result<u64, Error> {
        let mut command = self.command("DQ.LEN");
        state.into_iter().for_each(|state| command.word(state.as_str()));
        command.maybe("GROUP", group);
        self.count(&command)
    }

    /// A message with all its fields; `None` if there is none of this id.
    ///
    /// # Errors
    /// Those of every command.
    pub fn get(&self, id: impl AsRef<[u8]>) -> Result<Option<Message<T>>, Error> {
        let mut command = self.command("DQ.GET");
        command.word(id.as_ref());
        reply::optional(self.harmless(&command)?, Message::read)
    }

    /// The first messages of a state, in the order in which they will leave it; for the dead and the done, the newest.
    ///
    /// # Errors
    /// Those of every command.
    pub fn peek(&self, state: State, count: u32) -> Result<Vec<Message<T>>, Error> {
        self.peek_in(state, count, None)
    }

    pub(super) fn peek_in(&self, state: State, count: u32, group: Option<&[u8]>) -> Result<Vec<Message<T>>, Error> {
        let mut command = self.command("DQ.PEEK");
        command.word(state.as_str());
        command.option("COUNT", count);
        command.maybe("GROUP", group);
        reply::list(self.harmless(&command)?)?.into_iter().map(Message::read).collect()
    }

    /// All messages, page by page.
    #[must_use]
    pub fn scan(&self) -> Scan<'_, T> {
        Scan::new(self)
    }

    /// One group of the queue.
    pub fn group(&self, name: impl AsRef<[u8]>) -> Group<'_, T> {
        Group::new(self, name.as_ref())
    }

    /// All groups, page by page.
    #[must_use]
    pub fn groups(&self) -> Groups<'_, T> {
        Groups::new(self)
    }

    /// Counts, settings and totals; `None` if the queue does not exist.
    ///
    /// # Errors
    /// Those of every command.
    pub fn info(&self) -> Result<Option<Info>, Error> {
        reply::optional(self.harmless(&self.command("DQ.INFO"))?, Info::read)
    }

    /// How late the queue delivers and how long consumers take; `None` if the queue does not exist.
    ///
    /// # Errors
    /// Those of every command.
    pub fn stats(&self) -> Result<Option<Stats>, Error> {
        reply::optional(self.harmless(&self.command("DQ.STATS"))?, Stats::read)
    }
}
