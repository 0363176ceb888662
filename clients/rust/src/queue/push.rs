//! Pushing messages, one or many.

use super::done::SHORTEST_RETAIN;
use super::options::{message_options, Options, Parts, SetOption};
use super::{Queue, Reason, State};
use crate::connect::{random, send, Sent};
use crate::error::Error;
use crate::mode::{Async, Mode};
use crate::names::MessageId;
use crate::payload::{Decode, Encode};
use crate::reply;
use crate::request::{Answer, Command, Request, Resend};
use crate::time::{after, millis, unix_ms};
use redis::Value;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

/// What a push did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// The queue holds the message under this id.
    New(MessageId),
    /// The queue holds a live message of the given id already, or accepted that id within its `DEDUPE`. Nothing
    /// changed.
    Duplicate,
}

impl Pushed {
    /// The id of the new message; `None` if it was a duplicate.
    pub fn id(self) -> Option<MessageId> {
        match self {
            Pushed::New(id) => Some(id),
            Pushed::Duplicate => None,
        }
    }
}

/// A push of one message, or as [`PushAll`] of several: options, and then `.await`, or [`Push::send`].
#[must_use = "nothing is done until it is sent"]
#[derive(Debug)]
pub struct Push<T, M, R = Pushed> {
    parts: Parts<T, M, R>,
}

impl<T: 'static, M: Mode, R: Send + 'static> Push<T, M, R> {
    /// Pushes the message, or the messages.
    ///
    /// If the push is repeated after a lost connection, and the queue then reports a message of this id, live or dead,
    /// it counts as [`Pushed::New`].
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::DeadId`], [`Error::TooLarge`], [`Error::OutOfMemory`], [`Error::Encode`]; and
    /// those of every command. Then nothing was pushed.
    pub fn send(self) -> Sent<M, R> {
        self.parts.send()
    }
}

impl<T: 'static, R: Send + 'static> IntoFuture for Push<T, Async, R> {
    type Output = Result<R, Error>;
    type IntoFuture = Sent<Async, R>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

impl<T: 'static, M: Mode, R: Send + 'static> SetOption for Push<T, M, R> {
    fn options(&mut self) -> &mut Options {
        &mut self.parts.options
    }
}

/// A push of several messages with the same options, in one step: other clients see all of them or none. The results
/// are in the order of the payloads; a message whose id belongs to a dead one is [`Error::DeadId`] there, and the
/// others are pushed.
pub type PushAll<T, M> = Push<T, M, Vec<Result<Pushed, Error>>>;

impl<T: 'static, M: Mode, R: Send + 'static> Push<T, M, R> {
    message_options!();

    /// The message is due this long after now. It is due at once by default.
    pub fn delay(self, delay: Duration) -> Self {
        self.with("DELAY", millis(delay))
    }

    /// The message is due at this time, which may be in the past, instead of after a delay.
    pub fn at(self, time: SystemTime) -> Self {
        self.with("AT", unix_ms(time))
    }

    /// If the message is not completed within this time after it was due, it becomes dead; zero: never.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with("TTL", millis(ttl))
    }

    /// The batch, of 1 to 255 bytes: see `Queue::batch`.
    pub fn batch(self, name: impl AsRef<[u8]>) -> Self {
        self.with("BATCH", name.as_ref())
    }

    /// How long the message is kept as done after its completion, with its result, instead of the queue's time; zero:
    /// not at all.
    pub fn retain(self, time: Duration) -> Self {
        self.with("RETAIN", millis(time))
    }

    /// Each message removes the one that has its id, in any state, and takes its place. If the connection is lost while
    /// this is sent, it is not repeated, because the first message may have been delivered already.
    pub fn replace(self) -> Self {
        self.flag("REPLACE")
    }

    /// For a message that is moved from elsewhere: it was delivered this often already, 1 to 2147483647 times. The
    /// next delivery has the next number, and retries count on from there.
    pub fn attempt(self, attempt: u32) -> Self {
        self.with("ATTEMPT", attempt)
    }

    /// The last error of a message that is moved from elsewhere.
    pub fn error(self, text: impl AsRef<[u8]>) -> Self {
        self.with("ERROR", text.as_ref())
    }

    /// The checkpoint of a message that is moved from elsewhere, of at most 65536 bytes.
    pub fn checkpoint(self, checkpoint: impl AsRef<[u8]>) -> Self {
        self.with("CHECKPOINT", checkpoint.as_ref())
    }

    /// The message is dead from now on.
    pub fn dead(self, reason: Reason) -> Self {
        self.with("DEAD", &["REASON", reason.as_str()][..])
    }

    /// As `replace`, and the message is due no later than this long after the first push of the chain of replacements.
    pub fn replace_within(self, wait: Duration) -> Self {
        self.with("MAXWAIT", millis(wait)).replace()
    }

    /// As `replace`, but a message in flight is not replaced before its delivery ends: so the same id is never handled
    /// twice at the same time, and the last payload wins. Can be combined with `replace_within`.
    pub fn replace_later(self) -> Self {
        self.flag("LATER").replace()
    }

    /// Sends the push at most once, and lets the server generate the id, unless there is one. Without this, a message
    /// without an id gets a random one, so that the push can be repeated if the connection is lost and is still made
    /// only once. The server's own ids cost less memory.
    pub fn once(mut self) -> Self {
        self.parts.options.once = true;
        self
    }
}

impl<T: Encode + 'static, M: Mode> Queue<T, M> {
    /// Pushes a message: `queue.push(&mail).delay(minute).await?`, or `.send()?` if it blocks.
    pub fn push(&self, payload: &T) -> Push<T, M> {
        let command = payload.encode().map(|payload| self.command("DQ.PUSH").word(payload));
        let mut parts = Parts::new(self, command, |command, options| {
            with_ids("ID", command, options, |answer, mut ids| pushed(answer.reply, ids.next(), answer.repeated))
        });
        parts.options.messages = 1;
        Push { parts }
    }

    /// Pushes several messages in one step.
    pub fn push_all<'p>(&self, payloads: impl IntoIterator<Item = &'p T>) -> PushAll<T, M> {
        let payloads: Result<Vec<_>, _> = payloads.into_iter().map(Encode::encode).collect();
        let messages = payloads.as_ref().map_or(0, Vec::len);
        let command = payloads.map(|payloads| self.command("DQ.MPUSH").counted(payloads));
        let mut parts = Parts::new(self, command, |command, options| {
            with_ids("IDS", command, options, |answer, mut ids| {
                let each = |value| pushed(reply::checked(value), ids.next(), answer.repeated);
                Ok(reply::list(answer.reply?)?.into_iter().map(each).collect())
            })
        });
        parts.options.messages = messages;
        Push { parts }
    }
}

/// An id that no other push has, with which a push can be repeated.
fn unique_id() -> MessageId {
    static PROCESS: OnceLock<String> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS.get_or_init(|| format!("{:016x}{:08x}", random(), random() >> 32));
    format!("u{process}{:x}", NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

type Ids = std::vec::IntoIter<MessageId>;

/// The request of a push. Unless it says otherwise, the client chooses the ids: so the push can be repeated. A
/// replacement is not repeated: if its first execution was delivered meanwhile, the second would be a new message.
fn with_ids<R: 'static>(
    word: &str,
    command: Command,
    mut options: Options,
    read: fn(Answer, Ids) -> Result<R, Error>,
) -> Request<R> {
    #[cfg(feature = "otel")]
    super::trace::inject(&mut options.headers);
    let can_repeat = !options.once && !options.has("REPLACE");
    if options.ids.is_none() && can_repeat {
        options.ids = Some((0..options.messages).map(|_| unique_id()).collect());
    }
    if options.ids.as_ref().is_some_and(|ids| ids.len() != options.messages) {
        return Request::failed(Error::Config("a batch needs as many ids as payloads".to_owned()));
    }
    let ids = options.ids.take().unwrap_or_default();
    let resend = if can_repeat && !ids.is_empty() { Resend::Harmless } else { Resend::Never };
    let command = if ids.is_empty() { command } else { command.word(word).words(&ids) };
    Request::new(options.write(command), resend, move |answer| read(answer, ids.into_iter()))
}

/// What became of a message. If its push was repeated, the first one was made, and the message may be dead already.
fn pushed(reply: Result<Value, Error>, id: Option<MessageId>, repeated: bool) -> Result<Pushed, Error> {
    match (reply, id) {
        (Ok(Value::Nil) | Err(Error::DeadId(_)), Some(id)) if repeated => Ok(Pushed::New(id)),
        (Ok(Value::Nil), _) => Ok(Pushed::Duplicate),
        (reply, _) => reply::bytes(reply?).map(|id| Pushed::New(id.into())),
    }
}

impl<T: 'static, M: Mode> Push<T, M> {
    /// The message's own id, of 1 to 255 bytes without `#`. While the queue holds a live message of this id, further
    /// pushes are [`Pushed::Duplicate`].
    pub fn id(mut self, id: impl Into<MessageId>) -> Self {
        self.parts.options.ids = Some(vec![id.into()]);
        self
    }

    /// Pushes the message, and waits for its result: the value that its handler returns, or the result of its
    /// completion.
    ///
    /// The result is kept for as long as this may wait, and at least for a minute, unless [`Push::retain`] says
    /// otherwise. If the queue already has a message of the given id, this waits for its result, so a program that was
    /// restarted can send its request again. A request that nobody needs after the time should have a [`Push::ttl`].
    ///
    /// # Errors
    /// Those of [`Push::send`]; then [`Error::Failed`] if the message becomes dead, [`Error::TimedOut`],
    /// [`Error::Gone`], and [`Error::Decode`] if the result is not an `R`.
    pub fn and_wait<R: Decode + Send + 'static>(mut self, time: Duration) -> Sent<M, R> {
        let id = self.parts.options.ids.iter().flatten().next().cloned().unwrap_or_else(unique_id);
        if !self.parts.options.has("RETAIN") {
            self = self.retain(time.max(SHORTEST_RETAIN));
        }
        let queue = self.parts.queue.clone();
        let request = self.id(&id).parts.request();
        queue.client.clone().run(|core| async move {
            let end = after(time);
            send(&core, request).await?;
            let message = queue.wait_for(&core, id, end.saturating_duration_since(Instant::now())).await?;
            if message.state != State::Dead {
                return message.result();
            }
            let reason = message.reason.unwrap_or_default();
            Err(Error::Failed { id: message.id, reason, error: message.error })
        })
    }
}

impl<T: 'static, M: Mode> PushAll<T, M> {
    /// The messages' own ids, one for each payload. See [`Push::id`].
    pub fn ids(mut self, ids: impl IntoIterator<Item = impl Into<MessageId>>) -> Self {
        self.parts.options.ids = Some(ids.into_iter().map(Into::into).collect());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Pushed, Request, Resend};
    use crate::{Async, Error};
    use redis::Value;
    use std::time::Duration;

    fn words<R>(request: &Request<R>) -> Vec<String> {
        let packed = request.command.as_ref().unwrap().get_packed_command();
        let text = String::from_utf8(packed).unwrap();
        text.split("\r\n").filter(|word| !word.is_empty() && !word.starts_with(['*', '$'])).map(str::to_owned).collect()
    }

    #[test]
    fn a_push_is_a_value_that_says_whether_it_may_be_sent_again() {
        let queue = crate::both::Client::<Async>::open("redis://").unwrap().queue::<u8>("q");
        let push = || queue.push(&7).id("a").priority(1).delay(Duration::from_secs(1));
        let request = push().priority(2).parts.request();
        assert_eq!(words(&request), ["DQ.PUSH", "q", "7", "ID", "a", "DELAY", "1000", "PRIORITY", "2"]);
        assert_eq!((request.resend, push().replace().parts.request().resend), (Resend::Harmless, Resend::Never));
        assert_eq!(
            (push().once().parts.request().resend, queue.push(&7).parts.request().resend),
            (Resend::Never, Resend::Harmless)
        );
        let at = push().at(std::time::UNIX_EPOCH + Duration::from_secs(1)).parts.request();
        assert!(words(&at).contains(&"AT".to_owned()) && !words(&at).contains(&"DELAY".to_owned()));
        assert!(queue.push_all(&[1, 2]).ids(["a"; 0]).parts.request().command.is_none());
        let all = queue.push_all(&[1, 2]).ids(["a", "b"]).parts.request();
        assert_eq!(words(&all), ["DQ.MPUSH", "q", "2", "1", "2", "IDS", "a", "b"]);
    }

    #[test]
    fn a_repeated_push_counts_as_made_if_its_message_is_there() {
        let queue = crate::both::Client::<Async>::open("redis://").unwrap().queue::<u8>("q");
        let read = |reply, repeated| (queue.push(&7).id("a").parts.request().read)(Answer { reply, repeated });
        assert_eq!(read(Ok(Value::Nil), false).unwrap(), Pushed::Duplicate);
        assert_eq!(read(Ok(Value::Nil), true).unwrap(), Pushed::New("a".into()));
        let dead = || Err(Error::DeadId("DEADID".to_owned()));
        assert_eq!(read(dead(), true).unwrap(), Pushed::New("a".into()));
        assert!(matches!(read(dead(), false), Err(Error::DeadId(_))));
    }
}
