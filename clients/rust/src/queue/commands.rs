//! The commands without builders: acks and extensions, changes of messages, and looks at the queue.

use super::{Batch, Consumer, Group, GroupInfo, Info, Message, Nack, Pages, Queue, State, Stats};
use crate::connect::Sent;
use crate::mode::Mode;
use crate::names::MessageId;
use crate::reply::words;
use crate::request::{Command, Request};
use crate::time::{millis, unix_ms};
use std::time::{Duration, SystemTime};

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
    /// Acknowledges several deliveries. Returns how many messages were removed.
    pub fn ack_all(&self, deliveries: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Sent<M, u64> {
        let command = self.command("DQ.ACK").names(deliveries);
        self.client.send(Request::harmless(command))
    }

    /// Restarts the lease of a delivery from now: the given time, or else the message's or the queue's lease. Returns
    /// its new end; `None` if the lease was lost.
    pub fn extend(&self, delivery: impl AsRef<[u8]>, lease: Option<Duration>) -> Sent<M, Option<SystemTime>> {
        let command = self.command("DQ.EXTEND").word(delivery.as_ref()).maybe("LEASE", lease.map(millis));
        self.client.send(Request::harmless(command))
    }

    /// As [`Queue::extend`], and stores how far the work has come: up to 65536 bytes, which the next consumer of the
    /// message finds in [`Message::checkpoint`]. They replace what was stored before; if they are empty, nothing is
    /// stored any more.
    pub fn checkpoint(
        &self,
        delivery: impl AsRef<[u8]>,
        bytes: impl AsRef<[u8]>,
        lease: Option<Duration>,
    ) -> Sent<M, Option<SystemTime>> {
        let command = self
            .command("DQ.EXTEND")
            .word(delivery.as_ref())
            .maybe("LEASE", lease.map(millis))
            .word("CHECKPOINT")
            .word(bytes.as_ref());
        self.client.send(Request::harmless(command))
    }

    /// Restarts the leases of several deliveries from now, as [`Queue::extend`] does. Returns the new end of each, in
    /// their order; `None` for those whose lease was lost.
    pub fn extend_all(
        &self,
        deliveries: impl IntoIterator<Item = impl AsRef<[u8]>>,
        lease: Option<Duration>,
    ) -> Sent<M, Vec<Option<SystemTime>>> {
        let command = self.command("DQ.MEXTEND").counted(deliveries).maybe("LEASE", lease.map(millis));
        self.client.send(Request::harmless(command))
    }

    /// Makes a delayed or ready message due this long after now. False: there is no such message.
    pub fn reschedule(&self, id: impl Into<MessageId>, delay: Duration) -> Sent<M, bool> {
        let command = self.command("DQ.RESCHEDULE").word(id.into()).word("DELAY").word(millis(delay));
        self.client.send(Request::harmless(command))
    }

    /// Makes a delayed or ready message due at this time. False: there is no such message.
    pub fn reschedule_at(&self, id: impl Into<MessageId>, time: SystemTime) -> Sent<M, bool> {
        let command = self.command("DQ.RESCHEDULE").word(id.into()).word("AT").word(unix_ms(time));
        self.client.send(Request::harmless(command))
    }

    /// Changes the priority of a delayed or ready message. False: there is no such message.
    pub fn set_priority(&self, id: impl Into<MessageId>, priority: i8) -> Sent<M, bool> {
        let command = self.command("DQ.RESCHEDULE").word(id.into()).word("PRIORITY").word(priority);
        self.client.send(Request::harmless(command))
    }

    /// Makes a message dead. Returns the state it was in; `None` if there is none, or it is dead already.
    pub fn bury(&self, id: impl Into<MessageId>, error: Option<&str>) -> Sent<M, Option<State>> {
        let command = self.command("DQ.BURY").word(id.into()).maybe("ERROR", error);
        self.client.send(Request::harmless(command))
    }

    /// Makes the given dead messages live again. Returns their number; other ids are ignored.
    pub fn redrive(&self, ids: impl IntoIterator<Item = impl Into<MessageId>>) -> Sent<M, u64> {
        let command = self.command("DQ.REDRIVE").word("IDS").counted(ids.into_iter().map(Into::into));
        self.client.send(Request::harmless(command))
    }

    /// Makes dead messages live again: those that meet all conditions of the filter, or all with
    /// `&DeadFilter::default()`. Returns their number. Sent only once.
    pub fn redrive_dead(&self, which: &DeadFilter) -> Sent<M, u64> {
        let command = which.write(self.command("DQ.REDRIVE"));
        self.client.send(Request::once(command))
    }

    /// Makes delayed messages due now: the next ones, or all of them. Returns how many. Sent only once.
    pub fn promote(&self, count: Option<u32>) -> Sent<M, u64> {
        let command = self.command("DQ.PROMOTE").maybe("COUNT", count);
        self.client.send(Request::once(command))
    }

    /// [`Queue::promote`] for those messages that are due by this time.
    pub fn promote_until(&self, until: SystemTime, count: Option<u32>) -> Sent<M, u64> {
        let command = self.command("DQ.PROMOTE").maybe("COUNT", count).word("UNTIL").word(unix_ms(until));
        self.client.send(Request::once(command))
    }

    /// Removes messages in these states, or in all states if none is given; at most `count`. Schedules stay. Returns
    /// how many. Sent only once.
    pub fn purge(&self, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        let command = self.command("DQ.PURGE").words(states).maybe("COUNT", count);
        self.client.send(Request::once(command))
    }

    /// [`Queue::purge`] of messages that have been in their state for at least this long.
    pub fn purge_older(&self, older: Duration, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        let command = self.command("DQ.PURGE").words(states).maybe("COUNT", count).word("OLDER").word(millis(older));
        self.client.send(Request::once(command))
    }

    /// [`Queue::purge`] that removes schedules too.
    pub fn purge_with_schedules(&self, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        let command = self.command("DQ.PURGE").words(states).maybe("COUNT", count).word("RECURRING");
        self.client.send(Request::once(command))
    }

    /// How many messages are in a state; without one, how many are neither dead nor done.
    pub fn len(&self, state: Option<State>) -> Sent<M, u64> {
        let command = self.command("DQ.LEN").words(state);
        self.client.send(Request::harmless(command))
    }

    /// A message with all its fields; `None` if there is none of this id.
    pub fn get(&self, id: impl Into<MessageId>) -> Sent<M, Option<Message<T>>> {
        let command = self.command("DQ.GET").word(id.into());
        self.client.send(Request::harmless(command))
    }

    /// The first messages of a state, in the order in which they will leave it; for the dead and the done, the newest.
    pub fn peek(&self, state: State, count: u32) -> Sent<M, Vec<Message<T>>> {
        let command = self.command("DQ.PEEK").words([state]).word("COUNT").word(count);
        self.client.send(Request::harmless(command))
    }

    /// Counts, settings and totals; `None` if the queue does not exist.
    pub fn info(&self) -> Sent<M, Option<Info>> {
        let command = self.command("DQ.INFO");
        self.client.send(Request::harmless(command))
    }

    /// How late the queue delivers and how long consumers take; `None` if the queue does not exist.
    pub fn stats(&self) -> Sent<M, Option<Stats>> {
        let command = self.command("DQ.STATS");
        self.client.send(Request::harmless(command))
    }

    /// Acknowledges a delivery, which removes the message. False: the message was delivered again, or removed. If the
    /// command was repeated after a lost connection, its first execution may have removed the message: then this is
    /// true.
    pub fn ack(&self, delivery: impl AsRef<[u8]>) -> Sent<M, bool> {
        self.client.send(super::done::completing(self.command("DQ.ACK").word(delivery.as_ref())))
    }

    /// The time of the server that has this queue, by which [`Meta::deadline`](crate::Meta::deadline) is meant. The
    /// user needs the right to `TIME`.
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
