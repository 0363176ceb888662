//! Finds the server of a key, shares connections to it, and repeats commands that did not arrive.

use super::link::{is_retired, Link, Subscription, NO_REPLY};
use super::options::Options;
use super::routing::{key_of, redirect, slot_of, Slots};
use super::url::{Address, Topology};
use super::{sentinel, Backoff};
use crate::reply;
use crate::request::{Answer, Request, Resend};
use crate::Error;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use redis::{Cmd, Pipeline, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The most idle connections for commands that block that are kept for each server.
const IDLE_KEPT: usize = 16;
/// A connection that was silent for longer is tested before it gets a command that is not repeated: a server closes
/// connections that are idle for its `timeout`, which is at least a second.
const DOUBTFUL_AFTER: Duration = Duration::from_millis(900);
/// An idle connection for commands that block is not used again if it was silent for longer.
const STALE_AFTER: Duration = Duration::from_secs(3);
/// How long a server may take to end a blocked pop.
const TO_END_POP: Duration = Duration::from_millis(500);
/// How many commands of a batch go to a server before their replies are awaited: a slow connection gets on, and a lost
/// one leaves few of which nothing is known.
const PIPELINED: usize = 100;
/// How many redirections a command follows.
const REDIRECTIONS: usize = 5;

/// What the clones of a client share.
pub(crate) struct Core {
    pub options: Options,
    pub(super) nodes: Mutex<HashMap<Address, Arc<Node>>>,
    /// The master that the sentinels named.
    master: Mutex<Option<Address>>,
    /// Cancelled when they name another one, which ends the connections to the former.
    retired: Mutex<CancellationToken>,
    /// Whether a task listens to the sentinels, and what ends it.
    follows: AtomicBool,
    alive: CancellationToken,
    _alive: DropGuard,
    me: Weak<Core>,
    /// Where the keys of a cluster are; `None` if a node must be asked.
    pub(super) slots: Mutex<Option<Slots>>,
}

/// The connections to one server.
pub(super) struct Node {
    /// The one that all commands share which do not block. All who wait while it is opened learn of a failure.
    shared: Shared<BoxFuture<'static, Result<Link, Error>>>,
    /// Those for commands that block, while they are idle.
    idle: Mutex<Vec<Link>>,
}

impl Core {
    pub fn new(options: Options) -> Arc<Core> {
        let alive = CancellationToken::new();
        Arc::new_cyclic(|me| Core {
            options,
            nodes: Mutex::default(),
            master: Mutex::default(),
            retired: Mutex::default(),
            follows: AtomicBool::new(false),
            _alive: alive.clone().drop_guard(),
            alive,
            me: Weak::clone(me),
            slots: Mutex::default(),
        })
    }

    /// Sends a request, repeats it as it allows, and reads its reply.
    pub async fn send<R>(&self, request: Request<R>) -> Result<R, Error> {
        let Request { command, resend, wait, read } = request;
        let answer = match command {
            Some(command) => self.answer(&command, resend, wait).await,
            None => Answer { reply: Ok(Value::Nil), repeated: false },
        };
        read(answer)
    }

    /// Sends a command that may block for `wait`, and repeats it as `resend` allows.
    pub async fn answer(&self, command: &Cmd, resend: Resend, wait: Duration) -> Answer {
        let give_up = after(self.options.retry_for);
        let (mut backoff, mut repeated) = (Backoff::new(), false);
        loop {
            let reply = self.attempt(command, resend, wait).await;
            let Err(error) = &reply else { return Answer { reply, repeated } };
            let allowed = resend == Resend::Harmless || !error.may_have_been_executed();
            let pause = backoff.next();
            if !error.is_transient() || !allowed || Instant::now() + pause > give_up {
                return Answer { reply, repeated };
            }
            repeated |= error.may_have_been_executed();
            log_repetition(error);
            sleep(pause).await;
        }
    }

    /// Sends a command once, but follows redirections.
    pub async fn attempt(&self, command: &Cmd, resend: Resend, wait: Duration) -> Result<Value, Error> {
        self.deliver(command, resend, wait, Clock::Ignored).await?.reply
    }

    /// The same. An error is that of finding the server or of opening a connection: the command was not sent, and whatever it
    /// says is not the server's answer.
    pub async fn deliver(
        &self,
        command: &Cmd,
        resend: Resend,
        wait: Duration,
        clock: Clock,
    ) -> Result<Executed, Error> {
        let mut address = self.route(key_of(command).as_deref()).await?;
        let (mut asking, mut reopened) = (false, false);
        for _ in 0..REDIRECTIONS {
            let blocks = !wait.is_zero();
            let link = match (blocks, resend) {
                (true, _) => self.own(&address).await?,
                (false, Resend::Never) => self.tested(&address).await?,
                (false, Resend::Harmless) => self.shared(&address).await?,
            };
            let time = self.options.response_timeout;
            let sent = Instant::now();
            let (reply, now) = match self.exchange(&link, command, (asking, clock), wait + time).await {
                // It was closed while it was idle, so nothing was sent.
                Err(Error::Connect(_)) if !reopened => {
                    reopened = true;
                    self.close(&address);
                    link.is_in_use()?;
                    continue;
                }
                Ok((reply, now)) => (Ok(reply), now),
                Err(error) => (Err(error), None),
            };
            if let Some((next, is_final)) = reply.as_ref().ok().and_then(|reply| self.redirected(reply, &address)) {
                (address, asking) = (next, !is_final);
                continue;
            }
            let reply = self.checked(&address, reply);
            if blocks && reply.is_ok() {
                self.keep(link);
            }
            return Ok(Executed { reply, sent, now });
        }
        Err(moved_too_often())
    }

    /// Sends a command, and with it what goes before and after it. Returns its reply, and the time of the server.
    async fn exchange(
        &self,
        link: &Link,
        command: &Cmd,
        (asking, clock): (bool, Clock),
        time: Duration,
    ) -> Result<(Value, Option<Duration>), Error> {
        if !asking && clock == Clock::Ignored {
            return Ok((link.exchange(command, time).await?, None));
        }
        let mut all = Pipeline::new();
        if asking {
            all.cmd("ASKING");
        }
        all.add_command(command.clone());
        if clock == Clock::Asked {
            all.cmd("TIME");
        }
        let mut replies = link.exchange_all(&all, time).await?;
        let now = if clock == Clock::Asked { replies.pop().and_then(reply::time) } else { None };
        Ok((replies.pop().unwrap_or_default(), now))
    }

    /// Reads a reply. The connections to a server that has failed are dropped.
    fn checked(&self, address: &Address, reply: Result<Value, Error>) -> Result<Value, Error> {
        let reply = reply.and_then(reply::checked);
        match &reply {
            Err(Error::Lost(_) | Error::Protocol(_)) => self.forget(address),
            Err(Error::Unavailable(text)) if text.starts_with("READONLY") => self.forget(address),
            _ => {}
        }
        reply
    }

    /// Sends a command to one server, once.
    pub async fn call_on(&self, address: &Address, command: &Cmd) -> Result<Value, Error> {
        let time = self.options.response_timeout;
        let link = self.tested(address).await?;
        let reply = match link.exchange(command, time).await {
            Err(Error::Connect(_)) => self.reopened(&link).await?.exchange(command, time).await,
            reply => reply,
        };
        self.checked(address, reply)
    }

    /// Sends several commands once, those for one server together and in their order.
    pub async fn batch(&self, commands: &[Cmd]) -> Vec<Result<Value, Error>> {
        let mut replies = vec![Ok(Value::Nil); commands.len()];
        let mut parts = HashMap::<Address, Vec<_>>::new();
        for (command, reply) in commands.iter().zip(&mut replies) {
            match self.route(key_of(command).as_deref()).await {
                Ok(address) => parts.entry(address).or_default().push((command, reply)),
                Err(error) => *reply = Err(error),
            }
        }
        let sent = parts.into_iter().map(|(address, mut part)| async move {
            let mut failed = None;
            for some in part.chunks_mut(PIPELINED) {
                let received = match failed.take() {
                    None => self.exchange_all(&address, some.iter().map(|(command, _)| *command)).await,
                    Some(error) => Err(error),
                };
                let mut received = received.map(Vec::into_iter);
                for (command, reply) in some {
                    **reply = match received.as_mut().map(Iterator::next) {
                        // One after the other, so that they keep their order.
                        Ok(Some(received)) if redirect(&received, &address).is_some() => {
                            self.attempt(command, Resend::Harmless, Duration::ZERO).await
                        }
                        Ok(received) => self.checked(&address, Ok(received.unwrap_or_default())),
                        Err(error) => Err(error.clone()),
                    };
                }
                failed = received.err();
            }
        });
        futures_util::future::join_all(sent).await;
        replies
    }

    /// Sends commands to one server, with no other one in between. Returns the replies, which may be errors of the
    /// server.
    async fn exchange_all<'c>(
        &self,
        address: &Address,
        commands: impl Iterator<Item = &'c Cmd>,
    ) -> Result<Vec<Value>, Error> {
        let mut pipeline = Pipeline::new();
        for command in commands {
            pipeline.add_command(command.clone());
        }
        let time = self.options.response_timeout;
        let link = self.tested(address).await?;
        let replies = match link.exchange_all(&pipeline, time).await {
            Err(Error::Connect(_)) => self.reopened(&link).await?.exchange_all(&pipeline, time).await,
            replies => replies,
        };
        replies.inspect_err(|_| self.forget(address))
    }

    /// Sends several commands as one transaction.
    pub async fn transaction(&self, commands: &[Cmd]) -> Result<Vec<Result<Value, Error>>, Error> {
        let (multi, exec) = (redis::cmd("MULTI"), redis::cmd("EXEC"));
        let mut address = self.route(commands.first().and_then(key_of).as_deref()).await?;
        for _ in 0..REDIRECTIONS {
            let all = [&multi].into_iter().chain(commands).chain([&exec]);
            let mut replies = self.exchange_all(&address, all).await?;
            let executed = replies.pop().unwrap_or_default();
            if let Some((next, is_final)) = replies.iter().find_map(|reply| self.redirected(reply, &address)) {
                if is_final {
                    address = next;
                } else {
                    // ASK: its keys are about to arrive there.
                    sleep(Duration::from_millis(20)).await;
                }
                continue;
            }
            // If a command is not accepted, EXEC reports only that; the reply to the command has the reason.
            replies.into_iter().try_for_each(|reply| reply::checked(reply).map(drop))?;
            return Ok(reply::list(reply::checked(executed)?)?.into_iter().map(reply::checked).collect());
        }
        Err(moved_too_often())
    }

    /// Ends a blocked pop of this queue, by the number of its connection. Redis up to 8.0 and Valkey up to 8.1 crash if
    /// a client is unblocked whose command is put off (`CLIENT PAUSE`, `FAILOVER`). So this is a transaction that is
    /// put off as well then, because it has a write, which changes nothing: no id has a `#`.
    pub async fn end_pop(&self, server: &Address, key: &[u8], id: i64) -> Result<(), Error> {
        let mut all = Pipeline::new();
        all.add_command(redis::cmd("MULTI"));
        all.cmd("DQ.ACK").arg(key).arg("#").cmd("CLIENT").arg("UNBLOCK").arg(id).cmd("EXEC");
        let ending = async {
            let link = self.own(server).await?;
            let replies = link.exchange_all(&all, TO_END_POP).await?;
            self.keep(link);
            replies.into_iter().try_for_each(|reply| reply::checked(reply).map(drop))
        };
        timeout(TO_END_POP, ending).await.unwrap_or_else(|_| Err(Error::Lost(server.to_string())))
    }

    /// Opens a connection to the server of the key, for a consumer alone. `CLIENT LIST` shows whose it is.
    pub async fn link_for(&self, key: &[u8], consumer: &[u8]) -> Result<Link, Error> {
        let address = self.route(Some(key)).await?;
        self.connect(&address, &self.options.clone().name(String::from_utf8_lossy(consumer))).await
    }

    /// Opens a connection that receives the messages of these channels, to the server of the key.
    pub async fn subscribe(&self, key: &[u8], channels: &[Vec<u8>]) -> Result<Subscription, Error> {
        let address = self.route(Some(key)).await?;
        Subscription::open(&address, &self.options, &self.options.target.credentials, channels).await
    }

    /// Ends when sentinels have named another master than the present one.
    pub fn retired(&self) -> CancellationToken {
        lock(&self.retired).clone()
    }

    /// Sentinels name this master. Connections to another one are given up: it may still accept writes, which would be lost.
    pub fn switch(&self, master: Address) {
        let before = lock(&self.master).replace(master.clone());
        if before.as_ref() != Some(&master) {
            lock(&self.nodes).clear();
            std::mem::take(&mut *lock(&self.retired)).cancel();
        }
    }

    /// Notes where a command was redirected, or that the server has failed.
    pub fn note(&self, address: &Address, reply: &Result<Value, Error>) {
        match reply {
            Ok(reply) => drop(self.redirected(reply, address)),
            Err(_) => self.forget(address),
        }
    }

    /// The time of the server of a key, since 1970.
    pub async fn time_at(&self, key: &[u8]) -> Result<Duration, Error> {
        let address = self.route(Some(key)).await?;
        let reply = self.call_on(&address, &redis::cmd("TIME")).await?;
        reply::time(reply).ok_or_else(|| Error::Protocol("TIME".to_owned()))
    }

    /// What ends a new connection to this server. An error if sentinels have named another one since it was looked up.
    fn until_retired(&self, address: &Address) -> Result<CancellationToken, Error> {
        // Before the look at the master, so that no change in between is missed.
        let retired = self.retired();
        match &*lock(&self.master) {
            Some(master) if master != address => Err(is_retired(address)),
            _ => Ok(retired),
        }
    }

    fn node(&self, address: &Address) -> Result<Arc<Node>, Error> {
        let retired = self.until_retired(address)?;
        let new = || {
            let (address, options) = (address.clone(), self.options.clone());
            let opening = async move { open(&address, &options, retired).await };
            // A task, so that it goes on if the caller who began it is dropped.
            let opened = async move {
                tokio::spawn(opening).await.unwrap_or_else(|error| Err(Error::Connect(error.to_string())))
            };
            Arc::new(Node { shared: opened.boxed().shared(), idle: Mutex::default() })
        };
        Ok(Arc::clone(lock(&self.nodes).entry(address.clone()).or_insert_with(new)))
    }

    /// The connection that commands share.
    async fn shared(&self, address: &Address) -> Result<Link, Error> {
        let link = self.node(address)?.shared.clone().await;
        link.inspect_err(|_| self.forget(address))
    }

    /// The same for a command that is sent once. If the connection was silent it is tested, and replaced if the server
    /// has closed it meanwhile.
    async fn tested(&self, address: &Address) -> Result<Link, Error> {
        let link = self.shared(address).await?;
        if link.silence() <= DOUBTFUL_AFTER {
            return Ok(link);
        }
        // Whatever the server answers, such as that the user lacks the right to it: the connection is open.
        let Err(error) = link.exchange(&redis::cmd("PING"), self.options.response_timeout).await else {
            return Ok(link);
        };
        match error {
            // It is not asked again, which would take as long.
            Error::Lost(text) if text.ends_with(NO_REPLY) => {
                self.forget(address);
                Err(Error::Connect(text))
            }
            Error::Lost(_) | Error::Connect(_) => self.reopened(&link).await,
            other => Err(other),
        }
    }

    /// A connection for one command that may block.
    async fn own(&self, address: &Address) -> Result<Link, Error> {
        let kept = lock(&self.node(address)?.idle).pop();
        match kept.filter(|link| link.silence() < STALE_AFTER && link.is_in_use().is_ok()) {
            Some(link) => Ok(link),
            None => self.connect(address, &self.options).await,
        }
    }

    fn keep(&self, link: Link) {
        let Ok(node) = self.node(&link.address) else { return };
        let mut idle = lock(&node.idle);
        if idle.len() < IDLE_KEPT {
            idle.push(link);
        }
    }

    async fn connect(&self, address: &Address, options: &Options) -> Result<Link, Error> {
        open(address, options, self.until_retired(address)?).await.inspect_err(|_| self.forget(address))
    }

    /// Drops the connections to a server, one of which was closed while it was idle.
    fn close(&self, address: &Address) {
        lock(&self.nodes).remove(address);
    }

    /// Another connection that commands share, in place of one that was closed while it was idle. An error if it was
    /// closed because another server is the master.
    async fn reopened(&self, link: &Link) -> Result<Link, Error> {
        self.close(&link.address);
        link.is_in_use()?;
        self.shared(&link.address).await
    }

    /// After a failure: drops the connections to a server. The next command asks again which server has the keys, unless
    /// sentinels have named another master meanwhile: not all sentinels may know that one yet.
    fn forget(&self, address: &Address) {
        lock(&self.nodes).remove(address);
        lock(&self.master).take_if(|master| master == address);
        *lock(&self.slots) = None;
    }

    /// Where a reply sends its command, and whether that is for good, which is learned.
    fn redirected(&self, reply: &Value, asked: &Address) -> Option<(Address, bool)> {
        let (slot, next, is_final) = redirect(reply, asked)?;
        if let Some(slots) = lock(&self.slots).as_mut().filter(|_| is_final) {
            slots.learn(slot, next.clone());
        }
        Some((next, is_final))
    }

    /// The server of a key; without a key, any server.
    pub async fn route(&self, key: Option<&[u8]>) -> Result<Address, Error> {
        match &self.options.target.topology {
            Topology::Single(address) => Ok(address.clone()),
            Topology::Sentinel { sentinels, master, credentials } => {
                let known = lock(&self.master).clone();
                if let Some(known) = known {
                    return Ok(known);
                }
                if !self.follows.swap(true, Ordering::Relaxed) {
                    tokio::spawn(sentinel::follow(Weak::clone(&self.me), self.options.clone(), self.alive.clone()));
                }
                let found = sentinel::find_master(sentinels, master, credentials, &self.options).await?;
                // What was heard from a sentinel meanwhile is newer.
                Ok(lock(&self.master).get_or_insert(found).clone())
            }
            Topology::Cluster(_) => {
                let node = |slots: &Slots| match key {
                    Some(key) => slots.node_of(slot_of(key)).cloned(),
                    None => slots.nodes().into_iter().next(),
                };
                let nobody = || Error::Unavailable("CLUSTERDOWN no node has the slot of the key".to_owned());
                self.with_slots(node).await?.ok_or_else(nobody).inspect_err(|_| *lock(&self.slots) = None)
            }
        }
    }
}

/// Whether the server is asked for its time right after a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Asked,
    Ignored,
}

/// What became of a command that was sent.
pub(crate) struct Executed {
    pub reply: Result<Value, Error>,
    /// When it was sent: it was executed later.
    pub sent: Instant,
    /// The time of the server after its execution, since 1970, if it was asked and the user may ask.
    pub now: Option<Duration>,
}

/// Opens a connection to a server. One that sentinels have named must still be the master.
async fn open(address: &Address, options: &Options, retired: CancellationToken) -> Result<Link, Error> {
    let link = Link::open(address, options, &options.target.credentials, retired).await?;
    if !link.is_master && matches!(options.target.topology, Topology::Sentinel { .. }) {
        return Err(Error::Unavailable(format!("READONLY {address} is no longer the master")));
    }
    Ok(link)
}

/// Elsewhere, because a subscriber of the program may block.
fn log_repetition(error: &Error) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        let error = error.to_string();
        tokio::task::spawn_blocking(move || tracing::debug!(error, "a command is repeated"));
    }
}

fn moved_too_often() -> Error {
    Error::Unavailable("MOVED too often: the nodes of the cluster do not agree".to_owned())
}

/// The instant after this time, which may be one without an end, such as `Duration::MAX`.
pub(crate) fn after(time: Duration) -> Instant {
    // More than a clock counts would be a panic.
    Instant::now() + time.min(Duration::from_secs(u64::from(u32::MAX)))
}

/// Locks a mutex, even if a thread panicked while it held it: nothing here is left half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
