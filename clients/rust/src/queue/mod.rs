//! Typed queues: each method is one command.

mod any;
mod batch;
pub(crate) mod command;
mod conditions;
mod consumer;
pub(crate) mod done;
mod flow;
mod forward;
mod group;
mod headers;
mod id;
mod info;
mod look;
mod message;
mod meta;
mod nack;
pub(crate) mod pop;
mod push;
mod scan;
mod schedule;
mod settings;

pub use any::PopAny;
pub use batch::{Batch, BatchInfo, Then};
pub use conditions::{DeadFilter, Reason};
pub use consumer::{Consumer, Consumers};
pub use done::Complete;
pub use flow::Flow;
pub use forward::{Forward, ListEnd};
pub use group::{Group, GroupInfo, GroupPause, Groups};
pub use headers::Headers;
pub use id::{Id, Receipt};
pub use info::{Histogram, Info, Stats, Totals};
pub use message::{Message, PastError, Recurring, State};
pub use meta::Meta;
pub use nack::Nack;
pub use pop::{AckPop, Delivery, Pop};
pub use push::{Push, PushAll, Pushed};
pub use scan::Scan;
pub use schedule::{Declared, Schedule};
pub use settings::{GroupOrder, Settings};

use crate::connect::{Answer, Client, Resend};
use crate::payload::Encode;
use crate::reply;
use crate::Error;
use command::{millis, time_of, unix_ms, Command};
use redis::Value;
use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

/// A queue whose messages carry values of type `T`.
///
/// Cheap to make and to clone, and usable by many threads. The first push creates the queue.
///
/// Every method can fail with [`Error::NoPermission`], [`Error::WrongType`], [`Error::NoModule`],
/// [`Error::Authentication`], [`Error::Connect`], [`Error::Lost`] or [`Error::Unavailable`]; other errors are
/// listed at each method. Commands whose second execution is harmless are repeated for the time of
/// [`crate::Options::retry_for`], so the reply may be that of the second execution: an ack that was repeated may count 0.
pub struct Queue<T> {
    client: Client,
    key: Vec<u8>,
    of: PhantomData<fn(T) -> T>,
}

/// An error, and whether the command was repeated after it may have been executed.
struct Failure {
    error: Error,
    repeated: bool,
}

impl Client {
    /// The queue of this name.
    pub fn queue<T>(&self, name: impl AsRef<[u8]>) -> Queue<T> {
        Queue { client: self.clone(), key: name.as_ref().to_vec(), of: PhantomData }
    }
}

impl<T: Encode> Queue<T> {
    /// Pushes a message: `queue.push(&mail).delay(minute).send()?`.
    pub fn push(&self, payload: &T) -> Push<'_, T> {
        Push::new(self, payload)
    }

    /// Pushes several messages in one step.
    pub fn push_all<'p>(&self, payloads: impl IntoIterator<Item = &'p T>) -> PushAll<'_, T>
    where
        T: 'p,
    {
        PushAll::new(self, payloads)
    }

    /// Declares a recurring message: `queue.schedule("report", &report).every(hour).declare()?`.
    pub fn schedule(&self, id: impl AsRef<[u8]>, payload: &T) -> Schedule<'_, T> {
        Schedule::new(self, id.as_ref(), payload)
    }
}

impl<T> Queue<T> {
    /// The name of the queue.
    #[must_use]
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }

    /// The name of the queue as the server has it.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Delivers messages under a lease: `queue.pop().block(second).one()?`. A [`Worker`](crate::Worker) does this
    /// and handles the messages.
    pub fn pop(&self) -> Pop<'_, T> {
        Pop::new(self)
    }

    /// Acknowledges a delivery, which removes the message. False: the message was delivered again, or removed.
    ///
    /// # Errors
    /// Those of every command.
    pub fn ack(&self, delivery: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.ack_all([delivery]).map(|acked| acked == 1)
    }

    /// Acknowledges several deliveries. Returns how many messages were removed.
    ///
    /// # Errors
    /// Those of every command.
    pub fn ack_all<R: AsRef<[u8]>>(&self, deliveries: impl IntoIterator<Item = R>) -> Result<u64, Error> {
        self.with_names("DQ.ACK", deliveries).map_or(Ok(0), |command| self.count(&command))
    }

    /// Acknowledges deliveries and delivers the next messages in one command:
    /// `queue.ackpop([&delivery]).block(second).send()?`.
    pub fn ackpop<R: AsRef<[u8]>>(&self, deliveries: impl IntoIterator<Item = R>) -> AckPop<'_, T> {
        AckPop::new(self, deliveries)
    }

    /// Gives a delivery back. Returns the new state of the message; `None` if it is no longer in flight.
    ///
    /// # Errors
    /// Those of every command.
    pub fn nack(&self, delivery: impl AsRef<[u8]>, how: &Nack) -> Result<Option<State>, Error> {
        self.state(&Command(how.command(&self.key, delivery.as_ref())))
    }

    /// Restarts the lease of a delivery from now: the given time, or else the message's or the queue's lease. Returns its
    /// new end; `None` if the lease was lost.
    ///
    /// # Errors
    /// Those of every command.
    pub fn extend(&self, delivery: impl AsRef<[u8]>, lease: Option<Duration>) -> Result<Option<SystemTime>, Error> {
        self.extend_with(delivery.as_ref(), lease, None)
    }

    /// As [`Queue::extend`], and stores how far the work has come: up to 65536 bytes, which the next consumer of the message
    /// finds in [`Message::checkpoint`]. They replace what was stored before; if they are empty, nothing is stored any more.
    ///
    /// # Errors
    /// Those of every command.
    pub fn checkpoint(
        &self,
        delivery: impl AsRef<[u8]>,
        bytes: impl AsRef<[u8]>,
        lease: Option<Duration>,
    ) -> Result<Option<SystemTime>, Error> {
        self.extend_with(delivery.as_ref(), lease, Some(bytes.as_ref()))
    }

    fn extend_with(
        &self,
        delivery: &[u8],
        lease: Option<Duration>,
        checkpoint: Option<&[u8]>,
    ) -> Result<Option<SystemTime>, Error> {
        let mut command = self.command("DQ.EXTEND");
        command.word(delivery);
        command.maybe("LEASE", lease.map(millis));
        command.maybe("CHECKPOINT", checkpoint);
        let value = self.harmless(&command)?;
        reply::optional(value, |value| reply::count(&value).map(time_of))
    }

    /// Restarts the leases of several deliveries from now, as [`Queue::extend`] does. Returns the new end of each, in
    /// their order; `None` for those whose lease was lost.
    ///
    /// # Errors
    /// Those of every command.
    pub fn extend_all<R: AsRef<[u8]>>(
        &self,
        deliveries: impl IntoIterator<Item = R>,
        lease: Option<Duration>,
    ) -> Result<Vec<Option<SystemTime>>, Error> {
        let deliveries: Vec<R> = deliveries.into_iter().collect();
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = self.command("DQ.MEXTEND");
        command.word(deliveries.len());
        deliveries.iter().for_each(|delivery| command.word(delivery.as_ref()));
        command.maybe("LEASE", lease.map(millis));
        let ends = reply::list(self.harmless(&command)?)?;
        ends.into_iter().map(|end| reply::optional(end, |end| reply::count(&end).map(time_of))).collect()
    }

    /// Removes a message in any state, and forgets its id. False: the queue does not know it.
    ///
    /// # Errors
    /// Those of every command.
    pub fn cancel(&self, id: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.cancel_all([id]).map(|found| found == 1)
    }

    /// Removes several messages. Returns how many ids the queue knew.
    ///
    /// # Errors
    /// Those of every command.
    pub fn cancel_all<I: AsRef<[u8]>>(&self, ids: impl IntoIterator<Item = I>) -> Result<usize, Error> {
        let Some(command) = self.with_names("DQ.CANCEL", ids) else { return Ok(0) };
        let states = reply::list(self.harmless(&command)?)?;
        Ok(states.into_iter().filter(|state| *state != Value::Nil).count())
    }

    /// Makes a delayed or ready message due this long after now. False: there is no such message.
    ///
    /// # Errors
    /// Those of every command.
    pub fn reschedule(&self, id: impl AsRef<[u8]>, delay: Duration) -> Result<bool, Error> {
        self.change(id.as_ref(), "DELAY", millis(delay).to_string())
    }

    /// Makes a delayed or ready message due at this time. False: there is no such message.
    ///
    /// # Errors
    /// Those of every command.
    pub fn reschedule_at(&self, id: impl AsRef<[u8]>, time: SystemTime) -> Result<bool, Error> {
        self.change(id.as_ref(), "AT", unix_ms(time).to_string())
    }

    /// Changes the priority of a delayed or ready message. False: there is no such message.
    ///
    /// # Errors
    /// Those of every command.
    pub fn set_priority(&self, id: impl AsRef<[u8]>, priority: i8) -> Result<bool, Error> {
        self.change(id.as_ref(), "PRIORITY", priority.to_string())
    }

    fn change(&self, id: &[u8], option: &str, value: String) -> Result<bool, Error> {
        let mut command = self.command("DQ.RESCHEDULE");
        command.word(id);
        command.option(option, value);
        self.count(&command).map(|changed| changed == 1)
    }

    /// Makes a message dead. Returns the state it was in; `None` if there is none, or it is dead already.
    ///
    /// # Errors
    /// Those of every command.
    pub fn bury(&self, id: impl AsRef<[u8]>, error: Option<&str>) -> Result<Option<State>, Error> {
        let mut command = self.command("DQ.BURY");
        command.word(id.as_ref());
        command.maybe("ERROR", error);
        self.state(&command)
    }

    /// Makes the given dead messages live again. Returns how many of them there were.
    ///
    /// # Errors
    /// Those of every command.
    pub fn redrive<I: AsRef<[u8]>>(&self, ids: impl IntoIterator<Item = I>) -> Result<u64, Error> {
        let ids: Vec<Vec<u8>> = ids.into_iter().map(|id| id.as_ref().to_vec()).collect();
        if ids.is_empty() {
            return Ok(0);
        }
        let mut command = self.command("DQ.REDRIVE");
        command.option("IDS", ids.len());
        ids.into_iter().for_each(|id| command.word(id));
        self.count(&command)
    }

    /// Makes dead messages live again: the oldest ones, or all of them, after a delay. Returns how many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn redrive_oldest(&self, count: Option<u32>, delay: Duration) -> Result<u64, Error> {
        let mut command = self.command("DQ.REDRIVE");
        command.maybe("COUNT", count);
        if !delay.is_zero() {
            command.option("DELAY", millis(delay));
        }
        self.count_once(&command)
    }

    /// Makes delayed messages due now: the next ones, or all of them. Returns how many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn promote(&self, count: Option<u32>) -> Result<u64, Error> {
        let mut command = self.command("DQ.PROMOTE");
        command.maybe("COUNT", count);
        self.count_once(&command)
    }

    /// Removes messages in these states, or in all states if none is given; at most `count`. Schedules stay. Returns how
    /// many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge(&self, states: &[State], count: Option<u32>) -> Result<u64, Error> {
        self.count_once(&self.purge_command(states, count))
    }

    /// [`Queue::purge`] that removes schedules too.
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge_with_schedules(&self, states: &[State], count: Option<u32>) -> Result<u64, Error> {
        let mut command = self.purge_command(states, count);
        command.word("RECURRING");
        self.count_once(&command)
    }

    fn purge_command(&self, states: &[State], count: Option<u32>) -> Command {
        let mut command = self.command("DQ.PURGE");
        states.iter().for_each(|state| command.word(state.as_str()));
        command.maybe("COUNT", count);
        command
    }

    /// Creates the queue with these settings, or changes them if it exists. Processes call it at their start.
    ///
    /// # Errors
    /// [`Error::Server`] if a setting is out of its range.
    pub fn declare(&self, settings: &Settings) -> Result<(), Error> {
        let mut command = self.command("DQ.ALTER");
        command.word("MKQUEUE");
        self.set(command, settings)
    }

    /// Creates the queue with these settings.
    ///
    /// # Errors
    /// [`Error::Server`] if it exists with others, or a setting is out of its range.
    pub fn create(&self, settings: &Settings) -> Result<(), Error> {
        self.set(self.command("DQ.CREATE"), settings)
    }

    /// Changes settings.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if it does not exist; [`Error::Server`] if a setting is out of its range.
    pub fn alter(&self, settings: &Settings) -> Result<(), Error> {
        self.set(self.command("DQ.ALTER"), settings)
    }

    fn set(&self, mut command: Command, settings: &Settings) -> Result<(), Error> {
        settings.write(&mut command);
        self.harmless(&command).map(drop)
    }

    fn command(&self, name: &str) -> Command {
        Command::new(name, &self.key)
    }

    /// `None` if there are no names, because the command would be invalid.
    fn with_names<N: AsRef<[u8]>>(&self, name: &str, names: impl IntoIterator<Item = N>) -> Option<Command> {
        let mut names = names.into_iter().peekable();
        names.peek()?;
        let mut command = self.command(name);
        names.for_each(|name| command.word(name.as_ref()));
        Some(command)
    }

    fn answer(&self, command: &Command, resend: Resend) -> Result<Answer, Failure> {
        self.client.answer_or_failure(&command.0, resend).map_err(|(error, repeated)| Failure { error, repeated })
    }

    fn harmless(&self, command: &Command) -> Result<Value, Error> {
        self.client.call(&command.0, Resend::Harmless)
    }

    fn count(&self, command: &Command) -> Result<u64, Error> {
        reply::count(&self.harmless(command)?)
    }

    fn count_once(&self, command: &Command) -> Result<u64, Error> {
        reply::count(&self.client.call(&command.0, Resend::Never)?)
    }

    fn state(&self, command: &Command) -> Result<Option<State>, Error> {
        reply::optional(self.harmless(command)?, |value| message::state(&value))
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Queue<T> {
        Queue { client: self.client.clone(), key: self.key.clone(), of: PhantomData }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.name()).finish()
    }
}
