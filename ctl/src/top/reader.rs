//! Reads what the screen shows, in a thread of its own: a server that does not answer must not stop the keys.

use crate::board::{scan::first, Board};
use crate::findings::{self, Finding};
use crate::server::{Failure, Message};
use dq_client::{blocking::Client, cmd, Error, Resend, State};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How soon a server that cannot be read is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// The most messages of a list, and about the most bytes of their payloads.
pub const MESSAGES: u64 = 500;
const BYTES: u64 = 4 * 1024 * 1024;

/// The data that the screen needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// The names of the queues on the screen.
    pub queues: Vec<Vec<u8>>,
    pub asked: Option<Asked>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// The first messages of a queue in a state, and how many.
    Messages(Vec<u8>, State, u64),
    /// The message of a queue with this id.
    Message(Vec<u8>, Vec<u8>),
}

/// What the screen asks for.
pub enum Ask {
    Show(Wanted),
    /// Looks for what `dqctl doctor` finds.
    Examine,
}

/// What was read.
pub enum Update {
    /// Queues, which are on the board.
    Board,
    /// An error is one line.
    Messages(Asked, Result<Vec<Message>, String>),
    /// The queue, the id and the message; `None`: it does not exist.
    Message(Vec<u8>, Vec<u8>, Option<Message>),
    Findings(Result<Vec<Finding>, String>),
}

pub struct Reader {
    pub client: Client,
    pub board: Arc<Board>,
    pub every: Duration,
    pub updates: Sender<Update>,
}

impl Reader {
    /// Runs until the screen has gone.
    pub fn run(self, asks: &Receiver<Ask>) {
        let (mut wanted, mut next) = (Wanted::default(), Instant::now());
        loop {
            match asks.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Ask::Show(now)) => wanted = now,
                Ok(Ask::Examine) => {
                    self.examine();
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // If the server is lost, the board reports that.
            let read = self.read(wanted.asked.as_ref()).map_err(Failure::read);
            let wait = match read.and_then(|()| self.board.refresh(&wanted.queues)) {
                Err(_) => RETRY,
                // Until all queues have been read once, nothing is known of the others.
                Ok(()) if self.board.is_behind() => Duration::ZERO,
                Ok(()) => self.every,
            };
            next = Instant::now() + wait;
            self.send(Update::Board);
        }
    }

    fn send(&self, update: Update) {
        // The screen has gone: the next request reports that.
        let _ = self.updates.send(update);
    }

    fn read(&self, asked: Option<&Asked>) -> Result<(), Error> {
        match asked {
            None => {}
            Some(asked @ Asked::Messages(queue, state, count)) => {
                let info = self.board.rows(|rows| rows.get(queue).map(|row| row.info.clone())).unwrap_or_default();
                let read = first(&self.client, queue, state.as_str(), &info, (*count, BYTES));
                let read = match read {
                    Err(error) if error.is_transient() => return Err(error),
                    read => read.map_err(|error| Failure::read(error).to_string()),
                };
                self.send(Update::Messages(asked.clone(), read));
            }
            Some(Asked::Message(queue, id)) => {
                let reply = self.client.call(cmd("DQ.GET").arg(queue).arg(id), Resend::Harmless)?;
                self.send(Update::Message(queue.clone(), id.clone(), Message::read(reply).ok().flatten()));
            }
        }
        Ok(())
    }

    /// Takes seconds, so it happens in a thread of its own.
    fn examine(&self) {
        let (client, updates) = (self.client.clone(), self.updates.clone());
        let look = move || {
            drop(updates.send(Update::Findings(findings::examine(&client).map_err(|failure| failure.to_string()))));
        };
        if let Err(error) = thread::Builder::new().name("dq-doctor".to_owned()).spawn(look) {
            self.send(Update::Findings(Err(error.to_string())));
        }
    }
}
