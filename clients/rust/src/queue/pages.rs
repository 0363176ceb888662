//! Iterating over what a queue has many of, page by page.

use super::{Message, State};
use crate::connect::{Client, Sent};
use crate::mode::{Async, Blocking, Mode};
use crate::reply;
use crate::request::{Command, Request};
use crate::Error;
use redis::Value;
use std::collections::VecDeque;

/// How many items the server looks at for each page.
const PAGE: u32 = 100;

type Page<I> = (Option<Vec<u8>>, Vec<I>);

/// An iteration over the messages, groups or consumers of a queue, in no defined order: with [`Pages::next`], or as an
/// iterator if it blocks.
///
/// What is there from the beginning to the end is returned exactly once. It ends after the first error.
#[must_use = "nothing is read before the first item is asked for"]
#[derive(Debug)]
pub struct Pages<I, M> {
    client: Client<M>,
    /// The command up to its cursor, and its options.
    command: Command,
    options: Vec<&'static str>,
    read: fn(Value) -> Result<I, Error>,
    page: VecDeque<I>,
    /// `None`: there is no further page.
    cursor: Option<Vec<u8>>,
}

impl<I: Send + 'static, M: Mode> Pages<I, M> {
    pub(super) fn new(client: &Client<M>, command: Command, read: fn(Value) -> Result<I, Error>) -> Pages<I, M> {
        let cursor = Some(b"0".to_vec());
        Pages { client: client.clone(), command, options: Vec::new(), read, page: VecDeque::new(), cursor }
    }

    /// The next item of the page, or else the request for the next page; `None` at the end.
    fn step(&mut self) -> Option<Result<I, Request<Page<I>>>> {
        if let Some(item) = self.page.pop_front() {
            return Some(Ok(item));
        }
        let command = self.command.clone().word(self.cursor.take()?).word("COUNT").word(PAGE).words(&self.options);
        let read = self.read;
        let items =
            move |(cursor, items): Page<Value>| Ok((cursor, items.into_iter().map(read).collect::<Result<_, _>>()?));
        Some(Err(Request::harmless(command, reply::page).map(items)))
    }

    /// Takes a page over. Returns the error if there is none.
    fn turn(&mut self, page: Result<Page<I>, Error>) -> Option<Error> {
        page.map(|(cursor, items)| (self.cursor, self.page) = (cursor, items.into())).err()
    }

    /// All items that are left.
    ///
    /// # Errors
    /// Those of every command.
    pub fn rest(mut self) -> Sent<M, Vec<I>> {
        let client = self.client.clone();
        client.run(|core| async move {
            let mut all = Vec::new();
            while let Some(step) = self.step() {
                match step {
                    Ok(item) => all.push(item),
                    Err(request) => self.turn(core.send(request).await).map_or(Ok(()), Err)?,
                }
            }
            Ok(all)
        })
    }
}

impl<T: 'static, M: Mode> Pages<Message<T>, M> {
    /// Only messages in this state.
    pub fn state(mut self, state: State) -> Self {
        self.options.extend(["STATE", state.as_str()]);
        self
    }

    /// Only messages with a schedule.
    pub fn recurring(mut self) -> Self {
        self.options.push("RECURRING");
        self
    }

    /// Each message has its position in the push order; see [`Message::sequence`].
    pub fn sequence(mut self) -> Self {
        self.options.push("SEQUENCE");
        self
    }
}

impl<I: Send + 'static> Pages<I, Async> {
    /// The next item; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<I, Error>> {
        loop {
            let request = match self.step()? {
                Ok(item) => return Some(Ok(item)),
                Err(request) => request,
            };
            let page = self.client.send(request).await;
            if let Some(error) = self.turn(page) {
                return Some(Err(error));
            }
        }
    }
}

impl<I: Send + 'static> Iterator for Pages<I, Blocking> {
    type Item = Result<I, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let request = match self.step()? {
                Ok(item) => return Some(Ok(item)),
                Err(request) => request,
            };
            let page = self.client.send(request);
            if let Some(error) = self.turn(page) {
                return Some(Err(error));
            }
        }
    }
}
