//! Several commands at once: batches and transactions.

use super::routing::{key_of, redirect};
use super::{moved_too_often, Address, Client, Resend, REDIRECTIONS};
use crate::reply;
use crate::Error;
use redis::{Cmd, Value};
use std::collections::HashMap;
use std::time::Duration;

impl Client {
    /// Sends several commands, those for one server together, each once, and returns their replies in the order of the
    /// commands. Other clients may be served in between. If the connection is lost, the commands without a reply are
    /// [`Error::Lost`].
    #[must_use]
    pub fn batch(&self, commands: &[Cmd]) -> Vec<Result<Value, Error>> {
        let mut replies: Vec<Option<Result<Value, Error>>> = commands.iter().map(|_| None).collect();
        let mut by_server: HashMap<Address, Vec<usize>> = HashMap::new();
        for (number, (command, reply)) in commands.iter().zip(&mut replies).enumerate() {
            match self.route(key_of(command).as_deref()) {
                Ok(address) => by_server.entry(address).or_default().push(number),
                Err(error) => *reply = Some(Err(error)),
            }
        }
        for (address, numbers) in by_server {
            let all = numbers.iter().filter_map(|&number| commands.get(number));
            let mut answers = self.batch_on(&address, all).into_iter();
            for &number in &numbers {
                let mut answer = answers.next().unwrap_or_else(|| Err(Error::Lost(address.to_string())));
                // It was not executed, so it may be sent again, on its own.
                if let (Ok(reply), Some(command)) = (&answer, commands.get(number)) {
                    if let Some((slot, next, is_final)) = redirect(reply, &address) {
                        if is_final {
                            self.learn(slot, next);
                        }
                        answer = self.attempt(command, Resend::Harmless, Duration::ZERO);
                    }
                }
                if let Some(reply) = replies.get_mut(number) {
                    *reply = Some(answer.and_then(reply::checked));
                }
            }
        }
        let missing = || Err(Error::Protocol("a command of a batch was not sent".to_owned()));
        replies.into_iter().map(|reply| reply.unwrap_or_else(missing)).collect()
    }

    /// The replies of one server; fewer than commands if the connection was lost after them.
    fn batch_on<'a>(&self, address: &Address, commands: impl Iterator<Item = &'a Cmd>) -> Vec<Result<Value, Error>> {
        let (mut packed, mut count) = (Vec::new(), 0);
        for command in commands {
            command.write_packed_command(&mut packed);
            count += 1;
        }
        let mut link = match self.take(address, Resend::Harmless) {
            Ok(link) => link,
            Err(Error::Connect(text)) => return (0..count).map(|_| Err(Error::Connect(text.clone()))).collect(),
            Err(error) => return vec![Err(error)],
        };
        let sent = link.send(&packed, self.inner.options.response_timeout);
        let mut replies = Vec::with_capacity(count);
        let mut last = sent.map(|()| Value::Nil);
        while last.is_ok() && replies.len() < count {
            last = link.receive();
            replies.push(last.as_ref().map(Value::clone).map_err(|error| Error::Lost(error.to_string())));
        }
        self.keep(link, &last);
        replies
    }

    /// Sends several commands as one transaction, `MULTI` to `EXEC`, to the server of the first one's key, once. All keys
    /// must be in one slot of a cluster. A reply can be an error of its command.
    ///
    /// # Errors
    /// The error of the server if it refuses the transaction, or that of the connection.
    pub fn transaction(&self, commands: &[Cmd]) -> Result<Vec<Result<Value, Error>>, Error> {
        let mut packed = redis::cmd("MULTI").get_packed_command();
        commands.iter().for_each(|command| command.write_packed_command(&mut packed));
        redis::cmd("EXEC").write_packed_command(&mut packed);
        let mut address = self.route(commands.first().and_then(key_of).as_deref())?;
        for _ in 0..REDIRECTIONS {
            let mut link = self.take(&address, Resend::Never)?;
            let mut moved = None;
            // If a command is not accepted, EXEC reports only that; the reply to the command has the reason.
            let mut refused = None;
            let mut reply = link.send(&packed, self.inner.options.response_timeout).map(|()| Value::Nil);
            for _ in 0..commands.len() + 2 {
                reply = reply.and_then(|_| link.receive());
                if let Ok(value @ Value::ServerError(_)) = &reply {
                    moved = moved.or_else(|| redirect(value, &address));
                    refused = refused.or_else(|| reply::checked(value.clone()).err());
                }
            }
            self.keep(link, &reply);
            match (moved, refused) {
                (Some((slot, next, is_final)), _) => {
                    if is_final {
                        self.learn(slot, next.clone());
                        address = next;
                    } else {
                        // ASK: its keys are about to arrive there.
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                (None, Some(error)) => return Err(error),
                (None, None) => return Ok(reply::list(reply?)?.into_iter().map(reply::checked).collect()),
            }
        }
        Err(moved_too_often())
    }
}
