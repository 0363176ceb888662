//! Iteration over the messages, groups or consumers of a queue, page by page.

use super::options::{Options, SetOption};
use super::{Message, State};
use crate::connect::Client;
use crate::error::Error;
use crate::mode::{Async, Blocking, Mode};
use crate::reply::Field;
use crate::request::{Command, Request};
use std::collections::VecDeque;
use std::marker::PhantomData;

/// The number of items that the server examines for each page.
const PAGE: u32 = 100;

/// The cursor of the next page, and the items.
type Page<I> = (Vec<u8>, Vec<I>);

/// An iteration over the messages, groups or consumers of a queue, in no defined order: with [`Pages::next`], or as an
/// iterator if it blocks.
///
/// An item that exists for the whole iteration is returned exactly once. The iteration ends after the first error.
#[must_use = "does nothing until the first item is requested"]
#[derive(Debug)]
pub struct Pages<I, M> {
    client: Client<Async>,
    mode: PhantomData<fn() -> M>,
    /// The command up to its cursor.
    command: Command,
    request: fn(Command) -> Request<Page<I>>,
    options: Options,
    page: VecDeque<I>,
    /// `None`: there is no further page.
    cursor: Option<Vec<u8>>,
}

impl<I: Send + 'static, M: Mode> Pages<I, M> {
    pub(super) fn new(client: &Client<M>, command: Command) -> Pages<I, M>
    where
        I: Field,
    {
        Pages {
            client: client.face(),
            mode: PhantomData,
            command,
            request: Request::harmless,
            options: Options::default(),
            page: VecDeque::new(),
            cursor: Some(b"0".to_vec()),
        }
    }

    async fn item(&mut self) -> Option<Result<I, Error>> {
        while self.page.is_empty() {
            let command = self.command.clone().word(self.cursor.clone()?).word("COUNT").word(PAGE);
            let sent = self.client.send((self.request)(self.options.write(command))).await;
            // Only now, so that a caller who drops this future can ask again.
            self.cursor = None;
            match sent {
                Ok((cursor, items)) => {
                    self.cursor = Some(cursor).filter(|cursor| cursor != b"0");
                    self.page = items.into();
                }
                Err(error) => return Some(Err(error)),
            }
        }
        self.page.pop_front().map(Ok)
    }
}

impl<T: 'static, M: Mode> Pages<Message<T>, M> {
    /// Only messages in this state.
    pub fn state(self, state: State) -> Self {
        self.with("STATE", state.as_str())
    }

    /// Only messages with a schedule.
    pub fn recurring(self) -> Self {
        self.flag("RECURRING")
    }

    /// Each message has its position in the push order; see [`Message::sequence`].
    pub fn sequence(self) -> Self {
        self.flag("SEQUENCE")
    }
}

impl<I, M> SetOption for Pages<I, M> {
    fn options(&mut self) -> &mut Options {
        &mut self.options
    }
}

impl<I: Send + 'static> Pages<I, Async> {
    /// The next item; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<I, Error>> {
        self.item().await
    }

    /// All items that are left.
    ///
    /// # Errors
    /// Those of every command.
    pub async fn rest(mut self) -> Result<Vec<I>, Error> {
        let mut all = Vec::new();
        while let Some(item) = self.next().await {
            all.push(item?);
        }
        Ok(all)
    }
}

impl<I: Send + 'static> Iterator for Pages<I, Blocking> {
    type Item = Result<I, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.client.io.clone().block_on(self.item())
    }
}
