//! The commands without options of their own kind: a method for each, and what they take.

use super::{Batch, Consumer, Group, GroupInfo, Info, Message, Nack, Pages, Queue, Settings, State, Stats};
use crate::connect::Sent;
use crate::mode::Mode;
use crate::names::MessageId;
use crate::reply::words;
use crate::request::{millis, unix_ms, Command, Request};
use std::time::{Duration, SystemTime};

/// Methods that send a command of a queue, either repeatedly if that is `harmless`, or `once`.
macro_rules! commands {
    ($self:ident, $queue:expr; $($(#[$doc:meta])* $kind:ident $method:ident($($arg:ident: $type:ty),*) -> $result:ty
        = $name:literal $(.$with:ident($($value:expr),*))*;)*) => { $(
        $(#[$doc])*
        pub fn $method(&$self, $($arg: $type),*) -> Sent<M, $result> {
            let command = $queue.command($name)$(.$with($($value),*))*;
            $queue.client.send(Request::$kind(command))
        }
    )* };
}
pub(super) use commands;

words! {
    /// What a pause suspends.
    Flow {
        /// Deliveries.
        Out = "OUT",
        /// New messages, which are refused with [`Error::QueueClosed`](crate::Error::QueueClosed).
        In = "IN",
        /// Both.
        All = "ALL",
    }
}

words! {
    /// Why a message is dead.
    Reason {
        /// Its last retry was spent.
        Retries = "RETRIES",
        /// A client made it dead.
        Rejected = "REJECTED",
        /// Its TTL ended.
        Expired = "EXPIRED",
    }
}

/// Which dead messages `Queue::redrive_dead` makes live again, and when they are due.
///
/// ```
/// # use std::time::Duration;
/// let expired = dq_client::DeadFilter { reason: Some(dq_client::Reason::Expired), ..Default::default() };
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeadFilter {
    /// At most this many, the oldest first.
    pub count: Option<u32>,
    /// Only those that have been dead for at least this long.
    pub older: Option<Duration>,
    /// Only those that became dead for this reason.
    pub reason: Option<Reason>,
    /// They are due this long after now.
    pub delay: Duration,
}

impl DeadFilter {
    fn write(&self, command: Command) -> Command {
        let command = command.maybe("COUNT", self.count).maybe("OLDER", self.older.map(millis));
        let delay = Some(self.delay).filter(|delay| !delay.is_zero());
        command.maybe("REASON", self.reason.map(Reason::as_str)).maybe("DELAY", delay.map(millis))
    }
}

impl<T: 'static, M: Mode> Queue<T, M> {
    commands! { self, self;
        /// Acknowledges several deliveries. Returns how many messages were removed.
        harmless ack_all(deliveries: impl IntoIterator<Item = impl AsRef<[u8]>>) -> u64 = "DQ.ACK".names(deliveries);
        /// Restarts the lease of a delivery from now: the given time, or else the message's or the queue's lease. Returns its
        /// new end; `None` if the lease was lost.
        harmless extend(delivery: impl AsRef<[u8]>, lease: Option<Duration>) -> Option<SystemTime>
            = "DQ.EXTEND".word(delivery.as_ref()).maybe("LEASE", lease.map(millis));
        /// As [`Queue::extend`], and stores how far the work has come: up to 65536 bytes, which the next consumer of the message
        /// finds in [`Message::checkpoint`]. They replace what was stored before; if they are empty, nothing is stored any more.
        harmless checkpoint(delivery: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>, lease: Option<Duration>) -> Option<SystemTime>
            = "DQ.EXTEND".word(delivery.as_ref()).maybe("LEASE", lease.map(millis)).word("CHECKPOINT").word(bytes.as_ref());
        /// Restarts the leases of several deliveries from now, as [`Queue::extend`] does. Returns the new end of each, in
        /// their order; `None` for those whose lease was lost.
        harmless extend_all(deliveries: impl IntoIterator<Item = impl AsRef<[u8]>>, lease: Option<Duration>)
            -> Vec<Option<SystemTime>> = "DQ.MEXTEND".counted(deliveries).maybe("LEASE", lease.map(millis));
        /// Makes a delayed or ready message due this long after now. False: there is no such message.
        harmless reschedule(id: impl Into<MessageId>, delay: Duration) -> bool
            = "DQ.RESCHEDULE".word(id.into()).word("DELAY").word(millis(delay));
        /// Makes a delayed or ready message due at this time. False: there is no such message.
        harmless reschedule_at(id: impl Into<MessageId>, time: SystemTime) -> bool
            = "DQ.RESCHEDULE".word(id.into()).word("AT").word(unix_ms(time));
        /// Changes the priority of a delayed or ready message. False: there is no such message.
        harmless set_priority(id: impl Into<MessageId>, priority: i8) -> bool
            = "DQ.RESCHEDULE".word(id.into()).word("PRIORITY").word(priority);
        /// Makes a message dead. Returns the state it was in; `None` if there is none, or it is dead already.
        harmless bury(id: impl Into<MessageId>, error: Option<&str>) -> Option<State>
            = "DQ.BURY".word(id.into()).maybe("ERROR", error);
        /// Makes the given dead messages live again. Returns how many of them there were.
        harmless redrive(ids: impl IntoIterator<Item = impl Into<MessageId>>) -> u64 = "DQ.REDRIVE".word("IDS").counted(ids.into_iter().map(Into::into));
        /// Makes the dead messages live again that meet all conditions: all of them by `&DeadFilter::default()`. Returns how
        /// many. Sent only once.
        once redrive_dead(which: &DeadFilter) -> u64 = "DQ.REDRIVE".with(|command| which.write(command));
        /// Makes delayed messages due now: the next ones, or all of them. Returns how many. Sent only once.
        once promote(count: Option<u32>) -> u64 = "DQ.PROMOTE".maybe("COUNT", count);
        /// [`Queue::promote`] for those messages that are due by this time.
        once promote_until(until: SystemTime, count: Option<u32>) -> u64
            = "DQ.PROMOTE".maybe("COUNT", count).word("UNTIL").word(unix_ms(until));
        /// Removes messages in these states, or in all states if none is given; at most `count`. Schedules stay. Returns how
        /// many. Sent only once.
        once purge(states: &[State], count: Option<u32>) -> u64 = "DQ.PURGE".words(states).maybe("COUNT", count);
        /// [`Queue::purge`] of messages that have been in their state for at least this long.
        once purge_older(older: Duration, states: &[State], count: Option<u32>) -> u64
            = "DQ.PURGE".words(states).maybe("COUNT", count).word("OLDER").word(millis(older));
        /// [`Queue::purge`] that removes schedules too.
        once purge_with_schedules(states: &[State], count: Option<u32>) -> u64
            = "DQ.PURGE".words(states).maybe("COUNT", count).word("RECURRING");
        /// Creates the queue with these settings, or changes them if it exists. Processes call it at their start.
        ///
        /// # Errors
        /// [`Error::Server`](crate::Error::Server) if a setting is out of its range.
        harmless declare(settings: &Settings) -> () = "DQ.ALTER".word("MKQUEUE").with(|command| settings.write(command));
        /// Creates the queue with these settings.
        ///
        /// # Errors
        /// [`Error::Server`](crate::Error::Server) if it exists with others, or a setting is out of its range.
        harmless create(settings: &Settings) -> () = "DQ.CREATE".with(|command| settings.write(command));
        /// Changes settings.
        ///
        /// # Errors
        /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist; [`Error::Server`](crate::Error::Server) if a setting
        /// is out of its range.
        harmless alter(settings: &Settings) -> () = "DQ.ALTER".with(|command| settings.write(command));
        /// Suspends delivery, for a time or until [`Queue::resume`].
        ///
        /// # Errors
        /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
        harmless pause(time: Option<Duration>) -> () = "DQ.PAUSE".maybe("FOR", time.map(millis));
        /// Suspends deliveries, new messages, or both, for a time or until [`Queue::resume_flow`].
        ///
        /// # Errors
        /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
        harmless pause_flow(flow: Flow, time: Option<Duration>) -> ()
            = "DQ.PAUSE".word(flow.as_str()).maybe("FOR", time.map(millis));
        /// Resumes deliveries, and accepts new messages again.
        ///
        /// # Errors
        /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
        harmless resume() -> () = "DQ.RESUME";
        /// Resumes deliveries, new messages, or both.
        ///
        /// # Errors
        /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
        harmless resume_flow(flow: Flow) -> () = "DQ.RESUME".word(flow.as_str());
        /// Takes from a consumer that is gone the messages that it holds, or the `count` oldest deliveries of them, as if their
        /// leases had just ended. Returns how many. Sent only once.
        once release(consumer: impl AsRef<[u8]>, count: Option<u32>) -> u64
            = "DQ.RELEASE".word(consumer.as_ref()).maybe("COUNT", count);
        /// [`Queue::release`] without counting the attempts, for a consumer that was stopped before it could give them back.
        once release_uncounted(consumer: impl AsRef<[u8]>, count: Option<u32>) -> u64
            = "DQ.RELEASE".word(consumer.as_ref()).maybe("COUNT", count).word("NOCOUNT");
        /// How many messages are in a state; without one, how many are neither dead nor done.
        harmless len(state: Option<State>) -> u64 = "DQ.LEN".words(state);
        /// A message with all its fields; `None` if there is none of this id.
        harmless get(id: impl Into<MessageId>) -> Option<Message<T>> = "DQ.GET".word(id.into());
        /// The first messages of a state, in the order in which they will leave it; for the dead and the done, the newest.
        harmless peek(state: State, count: u32) -> Vec<Message<T>> = "DQ.PEEK".words([state]).word("COUNT").word(count);
        /// Counts, settings and totals; `None` if the queue does not exist.
        harmless info() -> Option<Info> = "DQ.INFO";
        /// How late the queue delivers and how long consumers take; `None` if the queue does not exist.
        harmless stats() -> Option<Stats> = "DQ.STATS";
    }

    /// Acknowledges a delivery, which removes the message. False: the message was delivered again, or removed. If the command was
    /// repeated after a lost connection, its first execution may have removed the message: then this is true.
    pub fn ack(&self, delivery: impl AsRef<[u8]>) -> Sent<M, bool> {
        self.client.send(super::done::completing(self.command("DQ.ACK").word(delivery.as_ref())))
    }

    /// The time of the server that has this queue, by which [`Meta::deadline`](crate::Meta::deadline) is meant. The user needs the
    /// right to `TIME`.
    pub fn server_time(&self) -> Sent<M, SystemTime> {
        let name = self.name.clone();
        self.client
            .run(|core| async move { core.time_at(name.as_bytes()).await.map(|time| SystemTime::UNIX_EPOCH + time) })
    }

    /// Gives a delivery back. Returns the new state of the message; `None` if it is no longer in flight.
    pub fn nack(&self, delivery: impl AsRef<[u8]>, how: &Nack) -> Sent<M, Option<State>> {
        self.client.send(Request::harmless(how.command(&self.name, delivery.as_ref())))
    }

    /// Removes a message in any state, and forgets its id. False: the queue does not know it.
    pub fn cancel(&self, id: impl Into<MessageId>) -> Sent<M, bool> {
        self.client.send(self.cancelling([id]).map(|known| Ok(known.contains(&true))))
    }

    /// Removes several messages as [`Queue::cancel`] does. Returns for each whether the queue knew it, in their order.
    pub fn cancel_all(&self, ids: impl IntoIterator<Item = impl Into<MessageId>>) -> Sent<M, Vec<bool>> {
        self.client.send(self.cancelling(ids))
    }

    fn cancelling(&self, ids: impl IntoIterator<Item = impl Into<MessageId>>) -> Request<Vec<bool>> {
        let cancelled: Request<Vec<Option<String>>> =
            Request::harmless(self.command("DQ.CANCEL").names(ids.into_iter().map(Into::into)));
        cancelled.map(|states| Ok(states.iter().map(Option::is_some).collect()))
    }

    /// All messages, page by page.
    pub fn scan(&self) -> Pages<Message<T>, M> {
        Pages::new(&self.client, self.command("DQ.SCAN"))
    }

    /// All groups, page by page.
    pub fn groups(&self) -> Pages<GroupInfo, M> {
        Pages::new(&self.client, self.command("DQ.GROUPS"))
    }

    /// The consumers that hold messages now, page by page.
    pub fn consumers(&self) -> Pages<Consumer, M> {
        Pages::new(&self.client, self.command("DQ.CONSUMERS"))
    }

    /// One group of the queue.
    pub fn group(&self, name: impl AsRef<[u8]>) -> Group<T, M> {
        Group { queue: self.clone(), name: name.as_ref().to_vec() }
    }

    /// The batch of this name, of 1 to 255 bytes.
    pub fn batch(&self, name: impl AsRef<[u8]>) -> Batch<T, M> {
        Batch { queue: self.clone(), name: name.as_ref().to_vec() }
    }
}
