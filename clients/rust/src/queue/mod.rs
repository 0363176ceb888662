//! Typed queues: each method is one command.

mod batch;
mod conditions;
mod done;
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
mod options;
mod pages;
pub(crate) mod pop;
mod push;
mod schedule;
mod settings;

pub use batch::{Batch, BatchInfo, Then};
pub use conditions::{DeadFilter, Reason};
pub use done::Complete;
pub(crate) use done::{too_large, RESULT_BYTES};
pub use flow::Flow;
pub use forward::{Forward, ListEnd};
pub use group::{Group, GroupInfo, GroupPause};
pub use headers::Headers;
pub use id::{Id, Receipt};
pub use info::{Histogram, Info, Stats, Totals};
pub use look::Consumer;
pub use message::{Message, PastError, Recurring, State};
pub use meta::Meta;
pub use nack::Nack;
pub use pages::Pages;
pub use pop::{AckPop, Delivery, Pop, PopAny};
pub use push::{Push, PushAll, Pushed};
pub use schedule::{Declared, Schedule};
pub use settings::{GroupOrder, Settings};

use crate::connect::{Client, Sent};
use crate::mode::Mode;
use crate::reply::{self, Field};
use crate::request::{count, millis, nothing, one, unix_ms, Command, Request};
use redis::{ToRedisArgs, Value};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A queue whose messages carry values of type `T`.
///
/// Cheap to make and to clone, and usable by many threads and tasks. The first push creates the queue.
///
/// Every method can fail with [`Error::NoPermission`](crate::Error::NoPermission), [`WrongType`](crate::Error::WrongType),
/// [`NoModule`](crate::Error::NoModule), [`Authentication`](crate::Error::Authentication),
/// [`Connect`](crate::Error::Connect), [`Lost`](crate::Error::Lost) or [`Unavailable`](crate::Error::Unavailable); other
/// errors are listed at each method. Commands whose second execution is harmless are repeated for the time of
/// [`crate::Options::retry_for`], so the reply may be that of the second execution: an ack that was repeated may count 0.
pub struct Queue<T, M> {
    client: Client<M>,
    key: Arc<[u8]>,
    of: PhantomData<fn(T) -> T>,
}

impl<M: Mode> Client<M> {
    /// The queue of this name.
    pub fn queue<T>(&self, name: impl AsRef<[u8]>) -> Queue<T, M> {
        Queue { client: self.clone(), key: name.as_ref().into(), of: PhantomData }
    }
}

impl<T, M> Queue<T, M> {
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

    fn command(&self, name: &str) -> Command {
        Command::new(name, &*self.key)
    }
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// Acknowledges a delivery, which removes the message. False: the message was delivered again, or removed.
    ///
    /// # Errors
    /// Those of every command.
    pub fn ack(&self, delivery: impl AsRef<[u8]>) -> Sent<M, bool> {
        self.client.send(Request::harmless(self.command("DQ.ACK").word(delivery.as_ref()), one))
    }

    /// Acknowledges several deliveries. Returns how many messages were removed.
    ///
    /// # Errors
    /// Those of every command.
    pub fn ack_all<R: AsRef<[u8]>>(&self, deliveries: impl IntoIterator<Item = R>) -> Sent<M, u64> {
        self.all("DQ.ACK", None, deliveries, count, 0)
    }

    /// Gives a delivery back. Returns the new state of the message; `None` if it is no longer in flight.
    ///
    /// # Errors
    /// Those of every command.
    pub fn nack(&self, delivery: impl AsRef<[u8]>, how: &Nack) -> Sent<M, Option<State>> {
        self.client.send(Request::harmless(how.command(&self.key, delivery.as_ref()), Field::read))
    }

    /// Restarts the lease of a delivery from now: the given time, or else the message's or the queue's lease. Returns its
    /// new end; `None` if the lease was lost.
    ///
    /// # Errors
    /// Those of every command.
    pub fn extend(&self, delivery: impl AsRef<[u8]>, lease: Option<Duration>) -> Sent<M, Option<SystemTime>> {
        let command = self.command("DQ.EXTEND").word(delivery.as_ref()).maybe("LEASE", lease.map(millis));
        self.client.send(Request::harmless(command, Field::read))
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
    ) -> Sent<M, Option<SystemTime>> {
        let command = self.command("DQ.EXTEND").word(delivery.as_ref()).maybe("LEASE", lease.map(millis));
        self.client.send(Request::harmless(command.word("CHECKPOINT").word(bytes.as_ref()), Field::read))
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
    ) -> Sent<M, Vec<Option<SystemTime>>> {
        let deliveries: Vec<R> = deliveries.into_iter().collect();
        if deliveries.is_empty() {
            return self.client.send(Request::known(Ok(Vec::new())));
        }
        let command = self.command("DQ.MEXTEND").word(deliveries.len()).words(deliveries);
        self.client.send(Request::harmless(command.maybe("LEASE", lease.map(millis)), Field::read))
    }

    /// Removes a message in any state, and forgets its id. False: the queue does not know it.
    ///
    /// # Errors
    /// Those of every command.
    pub fn cancel(&self, id: impl AsRef<[u8]>) -> Sent<M, bool> {
        self.client
            .send(Request::harmless(self.command("DQ.CANCEL").word(id.as_ref()), |states| Ok(known(states)? == 1)))
    }

    /// Removes several messages. Returns how many ids the queue knew.
    ///
    /// # Errors
    /// Those of every command.
    pub fn cancel_all<I: AsRef<[u8]>>(&self, ids: impl IntoIterator<Item = I>) -> Sent<M, usize> {
        self.all("DQ.CANCEL", None, ids, known, 0)
    }

    /// Makes a delayed or ready message due this long after now. False: there is no such message.
    ///
    /// # Errors
    /// Those of every command.
    pub fn reschedule(&self, id: impl AsRef<[u8]>, delay: Duration) -> Sent<M, bool> {
        self.change(id.as_ref(), "DELAY", millis(delay))
    }

    /// Makes a delayed or ready message due at this time. False: there is no such message.
    ///
    /// # Errors
    /// Those of every command.
    pub fn reschedule_at(&self, id: impl AsRef<[u8]>, time: SystemTime) -> Sent<M, bool> {
        self.change(id.as_ref(), "AT", unix_ms(time))
    }

    /// Changes the priority of a delayed or ready message. False: there is no such message.
    ///
    /// # Errors
    /// Those of every command.
    pub fn set_priority(&self, id: impl AsRef<[u8]>, priority: i8) -> Sent<M, bool> {
        self.change(id.as_ref(), "PRIORITY", priority)
    }

    fn change(&self, id: &[u8], option: &str, value: impl ToRedisArgs) -> Sent<M, bool> {
        self.client.send(Request::harmless(self.command("DQ.RESCHEDULE").word(id).word(option).word(value), one))
    }

    /// Makes a message dead. Returns the state it was in; `None` if there is none, or it is dead already.
    ///
    /// # Errors
    /// Those of every command.
    pub fn bury(&self, id: impl AsRef<[u8]>, error: Option<&str>) -> Sent<M, Option<State>> {
        let command = self.command("DQ.BURY").word(id.as_ref()).maybe("ERROR", error);
        self.client.send(Request::harmless(command, Field::read))
    }

    /// Makes the given dead messages live again. Returns how many of them there were.
    ///
    /// # Errors
    /// Those of every command.
    pub fn redrive<I: AsRef<[u8]>>(&self, ids: impl IntoIterator<Item = I>) -> Sent<M, u64> {
        self.all("DQ.REDRIVE", Some("IDS"), ids, count, 0)
    }

    /// Makes delayed messages due now: the next ones, or all of them. Returns how many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn promote(&self, count: Option<u32>) -> Sent<M, u64> {
        self.once(self.command("DQ.PROMOTE").maybe("COUNT", count))
    }

    /// Removes messages in these states, or in all states if none is given; at most `count`. Schedules stay. Returns how
    /// many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge(&self, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        self.once(self.purge_command(states, count))
    }

    /// [`Queue::purge`] that removes schedules too.
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge_with_schedules(&self, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        self.once(self.purge_command(states, count).word("RECURRING"))
    }

    fn purge_command(&self, states: &[State], count: Option<u32>) -> Command {
        self.command("DQ.PURGE").words(states.iter().map(|state| state.as_str())).maybe("COUNT", count)
    }

    /// Creates the queue with these settings, or changes them if it exists. Processes call it at their start.
    ///
    /// # Errors
    /// [`Error::Server`](crate::Error::Server) if a setting is out of its range.
    pub fn declare(&self, settings: &Settings) -> Sent<M, ()> {
        self.tell(settings.write(self.command("DQ.ALTER").word("MKQUEUE")))
    }

    /// Creates the queue with these settings.
    ///
    /// # Errors
    /// [`Error::Server`](crate::Error::Server) if it exists with others, or a setting is out of its range.
    pub fn create(&self, settings: &Settings) -> Sent<M, ()> {
        self.tell(settings.write(self.command("DQ.CREATE")))
    }

    /// Changes settings.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist; [`Error::Server`](crate::Error::Server) if a setting
    /// is out of its range.
    pub fn alter(&self, settings: &Settings) -> Sent<M, ()> {
        self.tell(settings.write(self.command("DQ.ALTER")))
    }

    /// Takes from a consumer that is gone the messages that it holds, or the `count` oldest deliveries of them, as if their
    /// leases had just ended. Returns how many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn release(&self, consumer: impl AsRef<[u8]>, count: Option<u32>) -> Sent<M, u64> {
        self.once(self.command("DQ.RELEASE").word(consumer.as_ref()).maybe("COUNT", count))
    }

    /// [`Queue::release`] without counting the attempts, for a consumer that was stopped before it could give them back.
    ///
    /// # Errors
    /// Those of every command.
    pub fn release_uncounted(&self, consumer: impl AsRef<[u8]>, count: Option<u32>) -> Sent<M, u64> {
        self.once(self.command("DQ.RELEASE").word(consumer.as_ref()).maybe("COUNT", count).word("NOCOUNT"))
    }

    /// Sends a command whose second execution is harmless and whose reply says nothing.
    fn tell(&self, command: Command) -> Sent<M, ()> {
        self.client.send(Request::harmless(command, nothing))
    }

    /// Sends a command that must not be executed twice, and returns how many messages it changed.
    fn once(&self, command: Command) -> Sent<M, u64> {
        self.client.send(Request::once(command, count))
    }

    /// Sends a command with these names, which is invalid without any. After `option`, their number precedes them.
    fn all<N: AsRef<[u8]>, R: Send + 'static>(
        &self,
        command: &str,
        option: Option<&str>,
        names: impl IntoIterator<Item = N>,
        read: fn(Value) -> Result<R, crate::Error>,
        none: R,
    ) -> Sent<M, R> {
        let names: Vec<N> = names.into_iter().collect();
        if names.is_empty() {
            return self.client.send(Request::known(Ok(none)));
        }
        let command = self.command(command).maybe(option.unwrap_or_default(), option.map(|_| names.len()));
        self.client.send(Request::harmless(command.words(names), read))
    }
}

/// How many of these states are not null.
fn known(states: Value) -> Result<usize, crate::Error> {
    Ok(reply::list(states)?.iter().filter(|state| **state != Value::Nil).count())
}

impl<T, M> Clone for Queue<T, M> {
    fn clone(&self) -> Queue<T, M> {
        Queue { client: self.client.clone(), key: Arc::clone(&self.key), of: PhantomData }
    }
}

impl<T, M> fmt::Debug for Queue<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.name()).finish()
    }
}
