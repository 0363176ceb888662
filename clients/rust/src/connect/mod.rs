//! Clients: one server, Sentinel or a cluster.

mod backoff;
mod batch;
mod core;
mod layout;
mod link;
mod master;
mod options;
mod repeat;
mod routing;
mod sentinel;
mod servers;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
#[cfg(feature = "tls")]
mod tls;
mod url;

pub(crate) use backoff::{random, Backoff};
pub(crate) use batch::batch;
pub(crate) use core::{Clock, Core, Executed};
pub(crate) use link::Link;
pub use options::Options;
pub(crate) use repeat::send;
pub use url::Address;

use crate::error::Error;
use crate::mode::{self, Mode};
use crate::request::{Request, Resend};
use redis::{Cmd, Value};
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use url::Topology;

/// What a call returns that can fail: a future of the result, or the result.
pub type Sent<M, R> = <M as Mode>::Reply<Result<R, Error>>;

/// A client of a server, of a master that sentinels know, or of a cluster.
///
/// Cheap to clone, and usable by many threads and tasks at the same time. It has one connection to each server, which
/// all commands share, and one more for each command that blocks. All are kept by one thread of this crate, `dq-io`, so
/// a client can be used in any asynchronous runtime, and in several.
///
/// If a future is dropped before its end, its command is abandoned, and may have been executed nevertheless.
#[derive(Clone)]
pub struct Client<M> {
    pub(crate) core: Arc<Core>,
    pub(crate) io: Handle,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> Client<M> {
    /// Makes a client from a URL. It connects when the first command is sent.
    ///
    /// ```text
    /// redis[s]://[[user]:password@]host[:port][/database][?protocol=2|3&cacert=…&cert=…&key=…][#insecure]
    /// redis[s]+cluster://[[user]:password@]host[:port][,host[:port]…]
    /// redis[s]+sentinel://[[user]:password@]host[:port][,host[:port]…]/master[/database]
    /// unix:///path[?db=…&user=…&pass=…]
    /// ```
    ///
    /// `valkey` stands for `redis`. The protocol is RESP3 unless the URL says otherwise. User, password and paths are
    /// percent-encoded. With TLS, `cacert` is a file (PEM) with the authorities that sign certificates of servers,
    /// instead of those that the system trusts; `cert` and `key` identify the client; `#insecure` accepts any
    /// certificate. For sentinels that want a password, add `?sentinel_user=…&sentinel_password=…`.
    ///
    /// # Errors
    /// [`Error::Config`] if the URL cannot be understood, or a file that it names cannot be read. [`Error::System`] if
    /// the operating system refuses a thread.
    pub fn open(url: &str) -> Result<Client<M>, Error> {
        Client::with(Options::from_url(url)?)
    }

    /// Makes a client from options. It connects when the first command is sent.
    ///
    /// # Errors
    /// [`Error::Config`] if the options contradict each other. [`Error::System`] if the operating system refuses a
    /// thread.
    pub fn with(options: Options) -> Result<Client<M>, Error> {
        if options.target.database != 0 && matches!(options.target.topology, Topology::Cluster(_)) {
            return Err(Error::Config("a cluster has only the database 0".to_owned()));
        }
        if options.has_certificates() && !options.target.tls {
            return Err(Error::Config("certificates need TLS, and so the scheme rediss://".to_owned()));
        }
        Ok(Client { core: Core::new(options), io: mode::io()?, mode: PhantomData })
    }

    /// The same client with the other face.
    pub fn face<N: Mode>(&self) -> Client<N> {
        Client { core: Arc::clone(&self.core), io: self.io.clone(), mode: PhantomData }
    }

    /// Sends any command to the server of its key, and returns its reply.
    ///
    /// The key is the first argument; `DQ.MPOP` and `EVAL` have it after the number of keys. Commands without a key,
    /// such as `INFO`, go to any server; see [`Client::call_on`].
    ///
    /// # Errors
    /// The error of the server; [`Error::Connect`], [`Error::Unavailable`] or [`Error::Lost`] after the command was
    /// repeated for the time of [`Options::retry_for`].
    pub fn call(&self, command: &Cmd, resend: Resend) -> Sent<M, Value> {
        let command = command.clone();
        self.run(|core| async move { repeat::answer(&core, &command, resend, Duration::ZERO).await.reply })
    }

    /// Sends a command to one server, once.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub fn call_on(&self, server: &Address, command: &Cmd) -> Sent<M, Value> {
        let (server, command) = (server.clone(), command.clone());
        self.run(|core| async move { core.servers.call(&server, &command).await })
    }

    /// Sends several commands, those for one server in their order and a hundred together, each once, and returns their
    /// replies in the order of the commands. Other clients may be served in between. If the connection is lost, all of
    /// those hundred are [`Error::Lost`], and what follows was not sent.
    pub fn batch(&self, commands: &[Cmd]) -> M::Reply<Vec<Result<Value, Error>>> {
        let commands = commands.to_vec();
        self.run(|core| async move { batch(&core, &commands).await })
    }

    /// Sends several commands as one transaction, `MULTI` to `EXEC`, to the server of the first one's key, once. All
    /// keys must be in one slot of a cluster. A reply can be an error of its command.
    ///
    /// # Errors
    /// The error of the server if it refuses the transaction, or that of the connection.
    pub fn transaction(&self, commands: &[Cmd]) -> Sent<M, Vec<Result<Value, Error>>> {
        let commands = commands.to_vec();
        self.run(|core| async move { batch::transaction(&core, &commands).await })
    }

    /// The servers that have the keys: the masters of a cluster, or the one server.
    ///
    /// # Errors
    /// If no server can be asked.
    pub fn servers(&self) -> Sent<M, Vec<Address>> {
        self.run(|core| async move { core.masters().await })
    }

    /// Whether this is a client of a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.core.options().target.topology, Topology::Cluster(_))
    }

    /// Asks every server for an answer.
    ///
    /// # Errors
    /// The error of the first server that cannot answer.
    pub fn ping(&self) -> Sent<M, ()> {
        self.run(|core| async move {
            for server in core.masters().await? {
                core.servers.call(&server, &redis::cmd("PING")).await?;
            }
            Ok(())
        })
    }

    pub(crate) fn send<R: Send + 'static>(&self, request: Request<R>) -> Sent<M, R> {
        self.run(|core| async move { send(&core, request).await })
    }

    pub(crate) fn run<R: Send + 'static, F>(&self, call: impl FnOnce(Arc<Core>) -> F) -> M::Reply<R>
    where
        F: Future<Output = R> + Send + 'static,
    {
        M::run(&self.io, call(Arc::clone(&self.core)))
    }
}

impl<M> std::fmt::Debug for Client<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.core.options().fmt(f)
    }
}
