//! One queue on which an act is carried out.

use crate::server::{info, Failure, Message, QueueInfo};
use crate::text::QueueName;
use dq_client::{blocking::Client, Cmd, Error, Resend, Value};

pub struct Site<'a> {
    pub client: &'a Client,
    pub queue: &'a QueueName,
}

/// What the server answered to a command.
pub struct Answer {
    pub result: Result<Value, Error>,
    /// Whether the command was sent again, because its first reply was lost: it then finds what the first one did.
    pub is_repeated: bool,
}

impl Site<'_> {
    pub fn name(&self) -> &[u8] {
        self.queue.as_bytes()
    }

    /// The reply of `DQ.INFO`; `None` if the queue does not exist.
    pub fn info(&self) -> Result<Option<QueueInfo>, Failure> {
        info::read(self.client, self.name())
    }

    /// The same, as far as the user may read them.
    pub fn info_if_allowed(&self) -> Option<QueueInfo> {
        self.info().ok().flatten()
    }

    /// Whether it is certain that the queue does not exist. A user may be allowed the change alone.
    pub fn is_missing(&self) -> bool {
        matches!(self.info(), Ok(None))
    }

    pub fn message(&self, id: &[u8]) -> Result<Option<Message>, Failure> {
        Message::get(self.client, self.name(), id)
    }

    /// Sends a command, and sends it again if its reply was lost and `resend` says that a second execution does no
    /// harm.
    pub fn call(&self, command: &Cmd, resend: Resend) -> Answer {
        match self.client.call(command, Resend::Never) {
            Err(Error::Lost(_)) if resend == Resend::Harmless => {
                Answer { result: self.client.call(command, Resend::Harmless), is_repeated: true }
            }
            result => Answer { result, is_repeated: false },
        }
    }
}
