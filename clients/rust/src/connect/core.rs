//! Sends commands to the server that has their key, and follows redirections.

use super::layout::with_slots;
use super::link::{Link, Subscription};
use super::options::Options;
use super::routing::{hash_slot, redirect, routing_key, Slots};
use super::sentinel;
use super::servers::Servers;
use super::url::{Address, Topology};
use crate::connection_error::ConnectionError;
use crate::error::Error;
use crate::reply;
use crate::request::Resend;
use crate::sync::lock;
use redis::{Cmd, Pipeline, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a server may take to end a blocked pop.
const TO_END_POP: Duration = Duration::from_millis(500);
/// How many redirections a command follows.
pub(super) const REDIRECTIONS: usize = 5;

/// What the clones of a client share.
pub(crate) struct Core {
    pub servers: Servers,
    /// Whether a task listens to the sentinels, and what ends it.
    follows: AtomicBool,
    alive: CancellationToken,
    _alive: DropGuard,
    me: Weak<Core>,
}

impl Core {
    pub fn new(options: Options) -> Arc<Core> {
        let alive = CancellationToken::new();
        Arc::new_cyclic(|me| Core {
            servers: Servers::new(options),
            follows: AtomicBool::new(false),
            _alive: alive.clone().drop_guard(),
            alive,
            me: Weak::clone(me),
        })
    }

    /// How the client connects.
    pub fn options(&self) -> &Options {
        &self.servers.options
    }

    /// Ends when sentinels have named another master than the present one.
    pub fn retired(&self) -> CancellationToken {
        self.servers.master.retired()
    }

    /// Sends a command once, but follows redirections.
    pub async fn attempt(&self, command: &Cmd, resend: Resend, wait: Duration) -> Result<Value, Error> {
        self.deliver(command, resend, wait, Clock::Ignored).await?.reply
    }

    /// The same. An error is that of finding the server or of opening a connection: the command was not sent, and
    /// whatever it says is not the server's answer.
    pub async fn deliver(
        &self,
        command: &Cmd,
        resend: Resend,
        wait: Duration,
        clock: Clock,
    ) -> Result<Executed, Error> {
        let mut address = self.route(routing_key(command).as_deref()).await?;
        let (mut asking, mut reopened) = (false, false);
        for _ in 0..REDIRECTIONS {
            let blocks = !wait.is_zero();
            let link = match (blocks, resend) {
                (true, _) => self.servers.own(&address).await?,
                (false, Resend::Never) => self.servers.tested(&address).await?,
                (false, Resend::Harmless) => self.servers.shared(&address).await?,
            };
            let time = self.options().response_timeout;
            let sent = Instant::now();
            let (reply, now) = match self.exchange(&link, command, (asking, clock), wait + time).await {
                // It was closed while it was idle, so nothing was sent.
                Err(Error::Connect(_)) if !reopened => {
                    reopened = true;
                    self.servers.close(&address);
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
            let reply = self.servers.checked(&address, reply);
            if blocks && reply.is_ok() {
                self.servers.keep(link);
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

    /// Ends a blocked pop of this queue, by the number of its connection. Redis up to 8.0 and Valkey up to 8.1 crash if
    /// a client is unblocked whose command is put off (`CLIENT PAUSE`, `FAILOVER`). So this is a transaction that is
    /// put off as well then, because it has a write, which changes nothing: no id has a `#`.
    pub async fn end_pop(&self, server: &Address, key: &[u8], id: i64) -> Result<(), Error> {
        let mut all = Pipeline::new();
        all.add_command(redis::cmd("MULTI"));
        all.cmd("DQ.ACK").arg(key).arg("#").cmd("CLIENT").arg("UNBLOCK").arg(id).cmd("EXEC");
        let ending = async {
            let link = self.servers.own(server).await?;
            let replies = link.exchange_all(&all, TO_END_POP).await?;
            self.servers.keep(link);
            replies.into_iter().try_for_each(|reply| reply::checked(reply).map(drop))
        };
        timeout(TO_END_POP, ending).await.unwrap_or_else(|_| Err(Error::Lost(ConnectionError::no_reply(server))))
    }

    /// Opens a connection to the server of the key, for a consumer alone. `CLIENT LIST` shows whose it is.
    pub async fn link_for(&self, key: &[u8], consumer: &[u8]) -> Result<Link, Error> {
        let address = self.route(Some(key)).await?;
        let options = self.options().clone().name(String::from_utf8_lossy(consumer));
        self.servers.open(&address, &options).await
    }

    /// Opens a connection that receives the messages of these channels, to the server of the key.
    pub async fn subscribe(&self, key: &[u8], channels: &[Vec<u8>]) -> Result<Subscription, Error> {
        self.servers.subscribe(&self.route(Some(key)).await?, channels).await
    }

    /// Notes where a command was redirected, or that the server has failed.
    pub fn note(&self, address: &Address, reply: &Result<Value, Error>) {
        match reply {
            Ok(reply) => drop(self.redirected(reply, address)),
            Err(_) => self.servers.forget(address),
        }
    }

    /// The time of the server of a key, since 1970.
    pub async fn time_at(&self, key: &[u8]) -> Result<Duration, Error> {
        let address = self.route(Some(key)).await?;
        let reply = self.servers.call(&address, &redis::cmd("TIME")).await?;
        reply::time(reply).ok_or_else(|| Error::Protocol("TIME".to_owned()))
    }

    /// Where a reply sends its command, and whether that is for good, which is learned.
    pub fn redirected(&self, reply: &Value, asked: &Address) -> Option<(Address, bool)> {
        let (slot, next, is_final) = redirect(reply, asked)?;
        if let Some(slots) = lock(&self.servers.slots).as_mut().filter(|_| is_final) {
            slots.learn(slot, next.clone());
        }
        Some((next, is_final))
    }

    /// Begins to listen to the sentinels, for as long as the client is there.
    fn follow_sentinels(&self) {
        if self.follows.swap(true, Ordering::Relaxed) {
            return;
        }
        let core = Weak::clone(&self.me);
        let switch = move |master| {
            if let Some(core) = core.upgrade() {
                core.servers.switch(master);
            }
        };
        tokio::spawn(sentinel::follow(self.options().clone(), self.alive.clone(), switch));
    }

    /// The servers that have keys.
    pub async fn masters(&self) -> Result<Vec<Address>, Error> {
        match &self.options().target.topology {
            Topology::Cluster(_) => with_slots(&self.servers, Slots::nodes).await,
            Topology::Single(_) | Topology::Sentinel { .. } => Ok(vec![self.route(None).await?]),
        }
    }

    /// The server of a key; without a key, any server.
    pub async fn route(&self, key: Option<&[u8]>) -> Result<Address, Error> {
        match &self.options().target.topology {
            Topology::Single(address) => Ok(address.clone()),
            Topology::Sentinel { sentinels, master, credentials } => {
                if let Some(known) = self.servers.master.known() {
                    return Ok(known);
                }
                self.follow_sentinels();
                let found = sentinel::find_master(sentinels, master, credentials, self.options()).await?;
                Ok(self.servers.accept_answer(found))
            }
            Topology::Cluster(_) => {
                let node = |slots: &Slots| match key {
                    Some(key) => slots.node(hash_slot(key)).cloned(),
                    None => slots.nodes().into_iter().next(),
                };
                let nobody = || Error::Unavailable("CLUSTERDOWN no node has the slot of the key".to_owned());
                with_slots(&self.servers, node)
                    .await?
                    .ok_or_else(nobody)
                    .inspect_err(|_| *lock(&self.servers.slots) = None)
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

pub(super) fn moved_too_often() -> Error {
    Error::Unavailable("MOVED too often: the nodes of the cluster do not agree".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::{Address, ConnectionError, Core, Error, Options};
    use crate::connection_error::ConnectionErrorKind;
    use redis::cmd;
    use std::future::Future;
    use std::sync::Arc;

    /// Runs a test with a client that heard of a second master after the first one. No sentinel can be asked.
    fn after_a_switch<F: Future<Output = ()>>(test: impl FnOnce(Arc<Core>, Address, Address) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let core = Core::new(Options::from_url("redis+sentinel://127.0.0.1:1/jobs").unwrap());
            let master = |port| Address::Tcp("127.0.0.1".to_owned(), port);
            let (former, present) = (master(2), master(3));
            core.servers.switch(former.clone());
            core.servers.switch(present.clone());
            test(core, former, present).await;
        });
    }

    #[test]
    fn the_end_of_a_former_master_keeps_the_present_one() {
        after_a_switch(|core, former, present| async move {
            core.note(&former, &Err(Error::Lost(ConnectionError::no_reply(&former))));
            assert_eq!(core.route(None).await.unwrap(), present);
            core.note(&present, &Err(Error::Lost(ConnectionError::no_reply(&present))));
            assert!(core.route(None).await.is_err());
        });
    }

    #[test]
    fn no_connection_is_opened_to_a_former_master() {
        after_a_switch(|core, former, present| async move {
            let error = core.servers.call(&former, &cmd("PING")).await.unwrap_err();
            assert!(
                matches!(&error, Error::Connect(error) if error.kind() == ConnectionErrorKind::NotMaster),
                "{error}"
            );
            assert_eq!(core.route(None).await.unwrap(), present);
        });
    }
}
