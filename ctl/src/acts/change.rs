//! What distinguishes the acts: each describes itself once, in its file of [`super::each`].

use super::report::Report;
use super::site::{Answer, Site};
use crate::board::Filter;
use crate::cli::{ConfirmArgs, ManyArgs};
use crate::server::{Failure, Message, QueueInfo};
use crate::text::{MessageId, QueueName};
use dq_client::{blocking::Client, Cmd, Raw, Resend, State, Value};
use serde_json::{json, Value as Json};

/// The messages that one command changes.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// The queue itself, or all messages that the act names.
    Whole,
    Count(u64),
    Ids(&'a [&'a [u8]]),
}

/// The part of a queue that an act changes.
pub enum Scope<'a> {
    /// The queue itself, or it adds a message.
    Queue(&'a dyn ChangeQueue),
    Ids(&'a [MessageId]),
    /// The messages in these states, of which one command of the server changes many.
    States(Vec<State>),
    /// Messages that have to be read to decide whether they are selected.
    Selected(Filter),
    /// The messages that a consumer holds.
    Consumer(&'a str),
    /// The messages of a batch.
    Batch(&'a str),
}

/// The words of an act.
pub struct Words {
    /// Begins the question: `Redrive`.
    pub verb: &'static str,
    /// The past participle, which is also a field of the answer: `redriven`.
    pub done: &'static str,
}

/// An act, implemented by the arguments of its command. The methods with a body are those in which few acts differ.
pub trait Change {
    fn words(&self) -> Words;

    fn queue(&self) -> &QueueName;

    fn scope(&self) -> Scope<'_>;

    /// The command of the server.
    fn command(&self, queue: &[u8], part: Part) -> Cmd;

    /// Sends the command, and sends it again if its reply was lost and a second execution does no harm.
    fn call(&self, site: &Site, part: Part) -> Answer {
        site.call(&self.command(site.name(), part), self.resend())
    }

    fn send(&self, site: &Site, part: Part) -> Result<Value, Failure> {
        Ok(self.call(site, part).result?)
    }

    /// Refuses what the definitions of the options cannot refuse.
    fn check(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// The payload or result that may come from standard input.
    fn input(&mut self) -> Option<&mut Option<Raw>> {
        None
    }

    fn many(&self) -> Option<&ManyArgs> {
        None
    }

    fn confirm(&self) -> Option<&ConfirmArgs> {
        self.many().map(|many| &many.confirm)
    }

    /// Whether it changes all messages that there are, so that a person wants to know their number first.
    fn is_of_many(&self) -> bool {
        !matches!(self.scope(), Scope::Queue(_) | Scope::Ids(_))
    }

    /// Whether its queue may be a pattern.
    fn takes_pattern(&self) -> bool {
        self.is_of_many()
    }

    /// The most messages that its options allow.
    fn limit(&self) -> Option<u32> {
        None
    }

    /// How many messages in these states it would change, given the queue's `DQ.INFO`.
    fn count_states(&self, _: &Client, _: &[u8], info: &QueueInfo, states: &[State]) -> Result<u64, Failure> {
        Ok(info.count_all(states))
    }

    /// Whether a message whose id was given is in a state in which it can be changed.
    fn fits(&self, _: &Message) -> bool {
        true
    }

    /// The states that [`Self::fits`] accepts, in words that follow `the message is not`.
    fn needed(&self) -> &'static str {
        "in flight"
    }

    /// Whether the state of a message must be read before it is changed, because the server accepts more than is meant.
    fn must_look_first(&self) -> bool {
        false
    }

    /// Whether selected messages are read again before they are changed: an id may be that of another message by now.
    fn checks_selection_again(&self) -> bool {
        true
    }

    /// Whether each message needs a command of its own.
    fn is_one_by_one(&self) -> bool {
        true
    }

    /// Whether it sends dead letters back by a script, whose answers are its own.
    fn sends_letters(&self) -> bool {
        false
    }

    /// Whether the command can be repeated if it is unknown whether it was executed.
    fn resend(&self) -> Resend {
        Resend::Never
    }

    /// Whether a message is what the command makes of it. This decides whether a command whose reply was lost was
    /// executed.
    fn is_done_to(&self, _: &Message) -> bool {
        false
    }

    /// Whether the number of changed messages is reported even if ids were given.
    fn reports_number(&self) -> bool {
        false
    }

    /// The report on a message that was changed. `answer` is the server's, as text.
    fn line(&self, id: &MessageId, _answer: Option<String>) -> (String, Json) {
        (id.to_string(), json!({ "id": id, self.words().done: true }))
    }

    /// Why no message of these states was changed, if that needs an explanation.
    fn why_none(&self, _: &Client, _: &[u8], _info: &QueueInfo, _states: &[State]) -> Option<String> {
        None
    }

    /// The part of a queue that it changes, if not messages, for a question: `the group g of the queue q`.
    fn object(&self, place: &str) -> String {
        place.to_owned()
    }

    /// Describes messages in these states for a question: words before `messages`, and words after the queue.
    fn states_in_words(&self, states: &[State]) -> (String, String) {
        (states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(" and "), String::new())
    }

    /// What follows from the change, at the end of the question. `number` messages are changed, and `copy` is advice
    /// how to keep a copy of them, if that is worth it.
    fn consequence(&self, _number: Option<u64>, _copy: &str) -> String {
        String::new()
    }
}

/// Changes a queue itself, or adds a message to it.
pub trait ChangeQueue {
    /// Returns `None` if there is no such queue.
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure>;
}
