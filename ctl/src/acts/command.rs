//! Builds the commands of acts.

use super::change::Part;
use crate::cli::MessageArgs;
use crate::text::millis;
use dq_client::{cmd, Cmd};

/// A command that is being built.
pub struct CommandBuilder(Cmd);

/// Begins a command on a queue.
pub fn command(name: &str, queue: &[u8]) -> CommandBuilder {
    CommandBuilder(cmd(name)).arg(queue)
}

/// Begins the call of a script whose only key is the queue.
pub fn script(script: &str, queue: &[u8]) -> CommandBuilder {
    CommandBuilder(cmd("EVAL")).arg(script).arg("1").arg(queue)
}

impl CommandBuilder {
    pub fn build(self) -> Cmd {
        self.0
    }

    pub fn arg(mut self, word: impl AsRef<[u8]>) -> CommandBuilder {
        self.0.arg(word.as_ref());
        self
    }

    pub fn args(self, words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> CommandBuilder {
        words.into_iter().fold(self, CommandBuilder::arg)
    }

    pub fn option(self, name: &str, value: Option<impl AsRef<[u8]>>) -> CommandBuilder {
        value.into_iter().fold(self, |command, value| command.arg(name).arg(value))
    }

    pub fn number(self, name: &str, value: Option<impl ToString>) -> CommandBuilder {
        self.option(name, value.map(|value| value.to_string()))
    }

    pub fn flag(self, name: &str, is_set: bool) -> CommandBuilder {
        self.args(is_set.then_some(name))
    }

    /// The options that a push, a schedule and the message that follows a batch have in common.
    pub fn message(self, args: &MessageArgs) -> CommandBuilder {
        let headers = args.headers.iter().flat_map(|(name, value)| [name, value]);
        self.number("PRIORITY", Some(args.priority).filter(|priority| *priority != 0))
            .number("RETRIES", args.retries)
            .number("LEASE", args.lease.map(millis))
            .number("TTL", args.ttl.map(millis))
            .option("GROUP", args.group.as_ref())
            .number("HEADERS", Some(args.headers.len()).filter(|number| *number > 0))
            .args(headers)
    }

    /// The ids of the messages that are changed, if they are known by their ids.
    pub fn ids(self, part: Part) -> CommandBuilder {
        match part {
            Part::Ids(ids) => self.args(ids),
            Part::Whole | Part::Count(_) => self,
        }
    }

    /// `COUNT`, if the messages that are changed are known by their number.
    pub fn count(self, part: Part) -> CommandBuilder {
        match part {
            Part::Count(count) => self.number("COUNT", Some(count)),
            Part::Whole | Part::Ids(_) => self,
        }
    }
}
