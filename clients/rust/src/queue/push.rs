//! Pushing messages, one or many.

use super::conditions::Reason;
use super::headers::Headers;
use super::id::Id;
use super::Queue;
use crate::connect::Resend;
use crate::payload::Encode;
use crate::queue::command::{millis, Command};
use crate::reply;
use crate::Error;
use redis::Value;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

/// What a push did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// The queue holds the message under this id.
    New(Id),
    /// The queue holds a live message of the given id already, or accepted that id within its `DEDUPE`. Nothing changed.
    Duplicate,
}

impl Pushed {
    /// The id of the new message; `None` if it was a duplicate.
    #[must_use]
    pub fn id(self) -> Option<Id> {
        match self {
            Pushed::New(id) => Some(id),
            Pushed::Duplicate => None,
        }
    }
}

#[derive(Clone, Debug)]
enum When {
    Now,
    After(Duration),
    At(SystemTime),
}

/// The options of both a single push and a batch.
#[derive(Clone, Debug)]
pub(super) struct Options {
    when: When,
    priority: i8,
    retries: Option<i32>,
    lease: Option<Duration>,
    ttl: Option<Duration>,
    replace: bool,
    max_wait: Option<Duration>,
    later: bool,
    pub retain: Option<Duration>,
    group: Option<Vec<u8>>,
    batch: Option<Vec<u8>>,
    headers: Headers,
    attempt: u32,
    error: Option<Vec<u8>>,
    checkpoint: Option<Vec<u8>>,
    dead: Option<Reason>,
    /// Whether the server chooses the ids.
    server_ids: bool,
}

impl Options {
    fn new() -> Options {
        Options {
            when: When::Now,
            priority: 0,
            retries: None,
            lease: None,
            ttl: None,
            replace: false,
            max_wait: None,
            later: false,
            retain: None,
            group: None,
            batch: None,
            headers: Headers::default(),
            attempt: 0,
            error: None,
            checkpoint: None,
            dead: None,
            server_ids: false,
        }
    }

    fn write(&self, command: &mut Command) {
        match self.when {
            When::Now => {}
            When::After(delay) => command.option("DELAY", millis(delay)),
            When::At(time) => command.option("AT", super::command::unix_ms(time)),
        }
        if self.priority != 0 {
            command.option("PRIORITY", self.priority);
        }
        command.maybe("RETRIES", self.retries);
        command.maybe("LEASE", self.lease.map(millis));
        command.maybe("TTL", self.ttl.map(millis));
        if self.replace {
            command.word("REPLACE");
        }
        command.maybe("MAXWAIT", self.max_wait.map(millis));
        if self.later {
            command.word("LATER");
        }
        command.maybe("RETAIN", self.retain.map(millis));
        command.maybe("GROUP", self.group.as_deref());
        command.maybe("BATCH", self.batch.as_deref());
        self.headers.write(command);
        command.maybe("ATTEMPT", Some(self.attempt).filter(|attempt| *attempt > 0));
        command.maybe("ERROR", self.error.as_deref());
        command.maybe("CHECKPOINT", self.checkpoint.as_deref());
        if let Some(reason) = self.dead {
            command.word("DEAD");
            command.option("REASON", reason.word());
        }
    }

    /// A replacement is not repeated: if its first execution was delivered meanwhile, the second would be a new message.
    fn resend(&self, has_ids: bool) -> Resend {
        if has_ids && !self.replace {
            Resend::Harmless
        } else {
            Resend::Never
        }
    }
}

macro_rules! push_options {
    () => {
        /// The message is due this long after now. It is due at once by default.
        pub fn delay(mut self, delay: Duration) -> Self {
            self.options.when = When::After(delay);
            self
        }

        /// The message is due at this time, which may be in the past.
        pub fn at(mut self, time: SystemTime) -> Self {
            self.options.when = When::At(time);
            self
        }

        /// Among ready messages, those of a higher priority are delivered first. 0 by default.
        pub fn priority(mut self, priority: i8) -> Self {
            self.options.priority = priority;
            self
        }

        /// The most redeliveries after the first delivery, instead of the queue's; -1: no limit.
        pub fn retries(mut self, retries: i32) -> Self {
            self.options.retries = Some(retries);
            self
        }

        /// How long each delivery may take, instead of the queue's lease. Workers use a lease of their own.
        pub fn lease(mut self, lease: Duration) -> Self {
            self.options.lease = Some(lease);
            self
        }

        /// If the message is not completed within this time after it was due, it becomes dead; zero: never.
        pub fn ttl(mut self, ttl: Duration) -> Self {
            self.options.ttl = Some(ttl);
            self
        }

        /// The group, of 1 to 255 bytes. Messages of one group are delivered in order, by default one at a time: see
        /// [`Settings::group_inflight`](crate::Settings::group_inflight).
        pub fn group(mut self, name: impl AsRef<[u8]>) -> Self {
            self.options.group = Some(name.as_ref().to_vec());
            self
        }

        /// The batch, of 1 to 255 bytes: see [`Queue::batch`](crate::Queue::batch).
        pub fn batch(mut self, name: impl AsRef<[u8]>) -> Self {
            self.options.batch = Some(name.as_ref().to_vec());
            self
        }

        /// Adds a header: a name of 1 to 255 bytes and a value of up to 4096 bytes. A message has up to 64 headers of
        /// 16384 bytes together.
        pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
            self.options.headers.set(name, value);
            self
        }

        /// The headers, in place of those that were set before. See `header`.
        pub fn headers(mut self, headers: Headers) -> Self {
            self.options.headers = headers;
            self
        }

        /// How long the message is kept as done after its completion, with its result, instead of the queue's time; zero: not
        /// at all.
        pub fn retain(mut self, time: Duration) -> Self {
            self.options.retain = Some(time);
            self
        }

        /// Each message removes the one that has its id, in any state, and takes its place. If the connection is lost while this is
        /// sent, it is not repeated, because the first message may have been delivered already.
        pub fn replace(mut self) -> Self {
            self.options.replace = true;
            self
        }

        /// As `replace`, and the message is due no later than this long after the first push of the chain of replacements.
        pub fn replace_within(mut self, wait: Duration) -> Self {
            self.options.replace = true;
            self.options.max_wait = Some(wait);
            self
        }

        /// As `replace`, but a message in flight is not replaced before its delivery ends: so the same id is never handled
        /// twice at the same time, and the last payload wins. Can be combined with `replace_within`.
        pub fn replace_later(mut self) -> Self {
            self.options.replace = true;
            self.options.later = true;
            self
        }

        /// For a message that is moved from elsewhere: it was delivered this often already, at most 2147483647 times. The
        /// next delivery has the next number, and retries count on from there.
        pub fn attempt(mut self, attempt: u32) -> Self {
            self.options.attempt = attempt;
            self
        }

        /// The last error of a message that is moved from elsewhere.
        pub fn error(mut self, text: impl AsRef<[u8]>) -> Self {
            self.options.error = Some(text.as_ref().to_vec());
            self
        }

        /// The checkpoint of a message that is moved from elsewhere, of at most 65536 bytes.
        pub fn checkpoint(mut self, checkpoint: impl AsRef<[u8]>) -> Self {
            self.options.checkpoint = Some(checkpoint.as_ref().to_vec());
            self
        }

        /// The message is dead from now on.
        pub fn dead(mut self, reason: Reason) -> Self {
            self.options.dead = Some(reason);
            self
        }

        /// Sends the push at most once, and lets the server generate the id, unless there is one. Without this, a message
        /// without an id gets a random one, so that the push can be repeated if the connection is lost and is still made
        /// only once. The server's own ids cost less memory.
        pub fn once(mut self) -> Self {
            self.options.server_ids = true;
            self
        }
    };
}

/// A push of one message: options, and then [`Push::send`].
#[must_use = "a push does nothing until it is sent"]
#[derive(Debug)]
pub struct Push<'a, T> {
    pub(super) queue: &'a Queue<T>,
    payload: Result<Vec<u8>, Error>,
    pub(super) id: Option<Id>,
    pub(super) options: Options,
}

impl<'a, T: Encode> Push<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>, payload: &T) -> Push<'a, T> {
        Push { queue, payload: payload.encode(), id: None, options: Options::new() }
    }
}

impl<T> Push<'_, T> {
    push_options!();

    /// The message's own id, of 1 to 255 bytes without `#`. While the queue holds a live message of this id, further
    /// pushes are [`Pushed::Duplicate`].
    pub fn id(mut self, id: impl AsRef<[u8]>) -> Self {
        self.id = Some(Id::from_bytes(id.as_ref().to_vec()));
        self
    }

    /// Pushes the message.
    ///
    /// If the push is repeated after a lost connection, and the queue then reports a message of this id, live or dead, it
    /// counts as [`Pushed::New`].
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::DeadId`], [`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::Encode`]; and those
    /// of every command.
    pub fn send(self) -> Result<Pushed, Error> {
        let id = match self.id {
            None if !self.options.server_ids && !self.options.replace => Some(Id::unique()),
            id => id,
        };
        let resend = if self.options.server_ids { Resend::Never } else { self.options.resend(id.is_some()) };
        let mut command = self.queue.command("DQ.PUSH");
        command.word(self.payload?);
        command.maybe("ID", id.as_ref().map(Id::as_ref));
        self.options.write(&mut command);
        let made = |id: Option<Id>| id.map_or(Pushed::Duplicate, Pushed::New);
        let (value, repeated) = match self.queue.answer(&command, resend) {
            Ok(answer) => (answer.value, answer.repeated),
            Err(failure) => {
                return if failure.repeated && is_dead(&failure.error) { Ok(made(id)) } else { Err(failure.error) }
            }
        };
        match reply::optional(value, reply::bytes)? {
            Some(id) => Ok(Pushed::New(Id::from_bytes(id))),
            None if repeated => Ok(made(id)),
            None => Ok(Pushed::Duplicate),
        }
    }
}

fn is_dead(error: &Error) -> bool {
    matches!(error, Error::DeadId(_))
}

/// A push of several messages with the same options, in one step: other clients see all of them or none.
#[must_use = "a push does nothing until it is sent"]
#[derive(Debug)]
pub struct PushAll<'a, T> {
    queue: &'a Queue<T>,
    payloads: Vec<Vec<u8>>,
    ids: Option<Vec<Id>>,
    options: Options,
    failure: Option<Error>,
    of: PhantomData<T>,
}

impl<'a, T: Encode> PushAll<'a, T> {
    pub(super) fn new<'p>(queue: &'a Queue<T>, payloads: impl IntoIterator<Item = &'p T>) -> PushAll<'a, T>
    where
        T: 'p,
    {
        let encoded: Result<Vec<_>, Error> = payloads.into_iter().map(Encode::encode).collect();
        let (payloads, failure) = match encoded {
            Ok(payloads) => (payloads, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        PushAll { queue, payloads, ids: None, options: Options::new(), failure, of: PhantomData }
    }
}

impl<T> PushAll<'_, T> {
    push_options!();

    /// The messages' own ids, one for each payload. See [`Push::id`].
    pub fn ids<I: AsRef<[u8]>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.ids = Some(ids.into_iter().map(|id| Id::from_bytes(id.as_ref().to_vec())).collect());
        self
    }

    /// Pushes the messages. The results are in the order of the payloads; a message whose id belongs to a dead one is
    /// [`Error::DeadId`] there, and the others are pushed.
    ///
    /// # Errors
    /// As [`Push::send`]; then nothing was pushed.
    pub fn send(self) -> Result<Vec<Result<Pushed, Error>>, Error> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        if self.payloads.is_empty() {
            return Ok(Vec::new());
        }
        let ids = match self.ids {
            None if !self.options.server_ids && !self.options.replace => {
                Some(self.payloads.iter().map(|_| Id::unique()).collect::<Vec<_>>())
            }
            ids => ids,
        };
        if ids.as_ref().is_some_and(|ids| ids.len() != self.payloads.len()) {
            return Err(Error::Config("a batch needs as many ids as payloads".to_owned()));
        }
        let resend = if self.options.server_ids { Resend::Never } else { self.options.resend(ids.is_some()) };
        let mut command = self.queue.command("DQ.MPUSH");
        command.word(self.payloads.len());
        for payload in self.payloads {
            command.word(payload);
        }
        if let Some(ids) = &ids {
            command.word("IDS");
            ids.iter().for_each(|id| command.word(id.as_ref()));
        }
        self.options.write(&mut command);
        let answer = self.queue.answer(&command, resend).map_err(|failure| failure.error)?;
        let mut own_ids = ids.into_iter().flatten();
        let read = |value: Value| {
            let own = own_ids.next();
            match (reply::checked(value), own) {
                (Ok(Value::Nil) | Err(Error::DeadId(_)), Some(id)) if answer.repeated => Ok(Pushed::New(id)),
                (Ok(Value::Nil), _) => Ok(Pushed::Duplicate),
                (Ok(value), _) => reply::bytes(value).map(|id| Pushed::New(Id::from_bytes(id))),
                (Err(error), _) => Err(error),
            }
        };
        Ok(reply::list(answer.value)?.into_iter().map(read).collect())
    }
}
