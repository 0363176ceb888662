//! What is known of the servers, and the connections to them: one to each that commands share, and others for commands
//! that block.

use super::link::{Link, Subscription};
use super::master::Master;
use super::options::Options;
use super::routing::Slots;
use super::url::{Address, Topology};
use crate::connection_error::{ConnectionError, ConnectionErrorKind};
use crate::error::Error;
use crate::reply;
use crate::sync::lock;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use redis::{Cmd, Pipeline, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The most idle connections for commands that block that are kept for each server.
const IDLE_KEPT: usize = 16;
/// A connection that was silent for longer is tested before it gets a command that is not repeated: a server closes
/// connections that are idle for its `timeout`, which is at least a second.
const DOUBTFUL_AFTER: Duration = Duration::from_millis(900);
/// An idle connection for commands that block is not used again if it was silent for longer.
const STALE_AFTER: Duration = Duration::from_secs(3);

pub(crate) struct Servers {
    pub options: Options,
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    /// With sentinels: the master, to which alone there are connections.
    pub(super) master: Master,
    /// Where the keys of a cluster are; `None` if a node must be asked.
    pub(super) slots: Mutex<Option<Slots>>,
}

/// The connections to one server.
struct Node {
    /// The one that all commands share which do not block. All who wait while it is opened learn of a failure.
    shared: Shared<BoxFuture<'static, Result<Link, Error>>>,
    /// Those for commands that block, while they are idle.
    idle: Mutex<Vec<Link>>,
}

impl Servers {
    pub fn new(options: Options) -> Servers {
        Servers { options, nodes: Mutex::default(), master: Master::default(), slots: Mutex::default() }
    }

    /// The servers to which there are connections.
    pub fn connected(&self) -> Vec<Address> {
        lock(&self.nodes).keys().cloned().collect()
    }

    /// The connection that commands share.
    pub async fn shared(&self, address: &Address) -> Result<Link, Error> {
        let link = self.node(address)?.shared.clone().await;
        link.inspect_err(|_| self.forget(address))
    }

    /// The same for a command that is sent once. If the connection was silent it is tested, and replaced if the server
    /// has closed it meanwhile.
    pub async fn tested(&self, address: &Address) -> Result<Link, Error> {
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
            Error::Lost(lost) if lost.kind() == ConnectionErrorKind::NoReply => {
                self.forget(address);
                Err(Error::Connect(lost))
            }
            Error::Lost(_) | Error::Connect(_) => self.reopened(&link).await,
            other => Err(other),
        }
    }

    /// A connection for one command that may block. Afterwards, [`keep`](Self::keep) takes it back.
    pub async fn own(&self, address: &Address) -> Result<Link, Error> {
        let kept = lock(&self.node(address)?.idle).pop();
        match kept.filter(|link| link.silence() < STALE_AFTER && link.is_in_use().is_ok()) {
            Some(link) => Ok(link),
            None => self.open(address, &self.options).await,
        }
    }

    /// Keeps a connection for the next command that may block.
    pub fn keep(&self, link: Link) {
        let Ok(node) = self.node(&link.address) else { return };
        let mut idle = lock(&node.idle);
        if idle.len() < IDLE_KEPT {
            idle.push(link);
        }
    }

    /// Opens a connection for the caller alone.
    pub async fn open(&self, address: &Address, options: &Options) -> Result<Link, Error> {
        open(address, options, self.master.until_retired(address)?).await.inspect_err(|_| self.forget(address))
    }

    /// Opens a connection that receives the messages of these channels.
    pub async fn subscribe(&self, address: &Address, channels: &[Vec<u8>]) -> Result<Subscription, Error> {
        Subscription::open(address, &self.options, &self.options.target.credentials, channels).await
    }

    /// Another connection that commands share, in place of one that was closed while it was idle. An error if it was
    /// closed because another server is the master.
    pub async fn reopened(&self, link: &Link) -> Result<Link, Error> {
        self.close(&link.address);
        link.is_in_use()?;
        self.shared(&link.address).await
    }

    /// Sends a command to one server, once.
    pub async fn call(&self, address: &Address, command: &Cmd) -> Result<Value, Error> {
        let time = self.options.response_timeout;
        let link = self.tested(address).await?;
        let reply = match link.exchange(command, time).await {
            Err(Error::Connect(_)) => self.reopened(&link).await?.exchange(command, time).await,
            reply => reply,
        };
        self.checked(address, reply)
    }

    /// Sends commands to one server, with no other one in between. Returns the replies, which may be errors of the
    /// server.
    pub async fn call_all<'c>(
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

    /// Reads a reply. The connections to a server that has failed are dropped.
    pub fn checked(&self, address: &Address, reply: Result<Value, Error>) -> Result<Value, Error> {
        let reply = reply.and_then(reply::checked);
        if reply.as_ref().is_err_and(has_failed) {
            self.forget(address);
        }
        reply
    }

    /// Drops the connections to a server, one of which was closed while it was idle.
    pub fn close(&self, address: &Address) {
        lock(&self.nodes).remove(address);
    }

    /// After a failure: drops the connections to a server. The next command asks again which server has the keys,
    /// unless sentinels have named another master meanwhile: not all sentinels may know that one yet.
    pub fn forget(&self, address: &Address) {
        self.close(address);
        self.master.doubt(address);
        *lock(&self.slots) = None;
    }

    /// Sentinels name this master.
    pub fn switch(&self, master: Address) {
        if self.master.switch(master) {
            lock(&self.nodes).clear();
        }
    }

    /// A sentinel that was asked has answered this. Returns the master.
    pub fn accept_answer(&self, answer: Address) -> Address {
        let (master, is_another) = self.master.accept_answer(answer);
        if is_another {
            lock(&self.nodes).clear();
        }
        master
    }

    fn node(&self, address: &Address) -> Result<Arc<Node>, Error> {
        let retired = self.master.until_retired(address)?;
        let new = || {
            let (server, address, options) = (address.clone(), address.clone(), self.options.clone());
            let opening = async move { open(&address, &options, retired).await };
            // A task, so that it goes on if the caller who began it is dropped.
            let opened = async move {
                let not_opened = |error| ConnectionError::new(ConnectionErrorKind::Other, server, error);
                tokio::spawn(opening).await.unwrap_or_else(|error| Err(Error::Connect(not_opened(error))))
            };
            Arc::new(Node { shared: opened.boxed().shared(), idle: Mutex::default() })
        };
        Ok(Arc::clone(lock(&self.nodes).entry(address.clone()).or_insert_with(new)))
    }
}

/// Whether a reply shows that its server is not to be used any more.
fn has_failed(error: &Error) -> bool {
    let is_replica = matches!(error, Error::Unavailable(text) if text.starts_with("READONLY"));
    is_replica || matches!(error, Error::Lost(_) | Error::Protocol(_))
}

/// Opens a connection to a server. One that sentinels have named must still be the master.
async fn open(address: &Address, options: &Options, retired: CancellationToken) -> Result<Link, Error> {
    let link = Link::open(address, options, &options.target.credentials, retired).await?;
    if !link.is_master && matches!(options.target.topology, Topology::Sentinel { .. }) {
        return Err(Error::Unavailable(format!("READONLY {address} is no longer the master")));
    }
    Ok(link)
}
