//! Clients: find the server of a key, pool connections to it, and repeat commands that did not arrive.

mod backoff;
mod batch;
mod link;
mod options;
mod routing;
mod sentinel;
mod slots;
mod tls;
mod url;

pub(crate) use backoff::{random, Backoff};
pub(crate) use link::Link;
pub use options::Options;
pub use url::Address;

use crate::reply;
use crate::Error;
use redis::{Cmd, Value};
use routing::{key_of, redirect};
use slots::{slot_of, Slots};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use url::Topology;

/// The most idle connections that are kept for each server.
const IDLE_KEPT: usize = 16;
/// A connection that was idle for longer is tested before it gets a command that must not be repeated.
const DOUBTFUL_AFTER: Duration = Duration::from_secs(3);
/// How long a server may take to end a blocked pop.
const TO_END_POP: Duration = Duration::from_millis(500);
/// How many redirections a command follows.
const REDIRECTIONS: usize = 5;

/// Whether a command may be sent again if it may have been executed already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resend {
    /// A second execution is harmless: the command reads, or has no further effect.
    Harmless,
    /// The command must not be executed twice. If the connection is lost, that is an error.
    Never,
}

/// A client of a server, of a master that sentinels know, or of a cluster.
///
/// A client is cheap to clone, and can be used by many threads at the same time: each command takes a connection of its
/// own, which is reused by later ones.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    options: Options,
    idle: Mutex<HashMap<Address, Vec<Link>>>,
    /// The master that the sentinels named.
    master: Mutex<Option<Address>>,
    /// Where the keys of a cluster are; `None` if a node must be asked.
    slots: Mutex<Option<Slots>>,
}

/// A reply, and whether the command may have been executed more than once.
pub(crate) struct Answer {
    pub value: Value,
    pub repeated: bool,
}

impl Client {
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
    /// percent-encoded. With TLS, `cacert` is a file (PEM) with the authorities that sign certificates of servers, instead of
    /// those that the system trusts; `cert` and `key` identify the client; `#insecure` accepts any certificate. For sentinels that want a password, add `?sentinel_user=…&sentinel_password=…`.
    ///
    /// # Errors
    /// [`Error::Config`] if the URL cannot be understood, or a file that it names cannot be read.
    pub fn open(url: &str) -> Result<Client, Error> {
        Client::with(Options::from_url(url)?)
    }

    /// Makes a client from options. It connects when the first command is sent.
    ///
    /// # Errors
    /// [`Error::Config`] if the options contradict each other.
    pub fn with(options: Options) -> Result<Client, Error> {
        if options.target.database != 0 && matches!(options.target.topology, Topology::Cluster(_)) {
            return Err(Error::Config("a cluster has only the database 0".to_owned()));
        }
        if options.certificates().is_some() && !options.target.tls {
            return Err(Error::Config("certificates need TLS, and so the scheme rediss://".to_owned()));
        }
        Ok(Client {
            inner: Arc::new(Inner {
                options,
                idle: Mutex::default(),
                master: Mutex::default(),
                slots: Mutex::default(),
            }),
        })
    }

    /// Sends any command to the server of its key, and returns its reply.
    ///
    /// The key is the first argument; `DQ.MPOP` and `EVAL` have it after the number of keys. Commands without a key, such as `INFO`,
    /// go to any server; see [`Client::call_on`].
    ///
    /// # Errors
    /// The error of the server; [`Error::Connect`], [`Error::Unavailable`] or [`Error::Lost`] after the command was repeated
    /// for the time of [`Options::retry_for`].
    pub fn call(&self, command: &Cmd, resend: Resend) -> Result<Value, Error> {
        Ok(self.answer(command, resend, Duration::ZERO)?.value)
    }

    /// Sends a command to one server, once.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub fn call_on(&self, server: &Address, command: &Cmd) -> Result<Value, Error> {
        let mut link = self.take(server, Resend::Harmless)?;
        let reply = link.ask(command, self.inner.options.response_timeout);
        self.keep(link, &reply);
        reply
    }

    /// The servers that have the keys: the masters of a cluster, or the one server.
    ///
    /// # Errors
    /// If no server can be asked.
    pub fn servers(&self) -> Result<Vec<Address>, Error> {
        match &self.inner.options.target.topology {
            Topology::Cluster(_) => self.with_slots(Slots::nodes),
            _ => Ok(vec![self.route(None)?]),
        }
    }

    /// Whether this is a client of a cluster.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        matches!(self.inner.options.target.topology, Topology::Cluster(_))
    }

    /// Asks every server for an answer.
    ///
    /// # Errors
    /// The error of the first server that cannot answer.
    pub fn ping(&self) -> Result<(), Error> {
        self.servers()?.iter().try_for_each(|server| self.call_on(server, &redis::cmd("PING")).map(drop))
    }

    /// Sends a command that may block for `wait`, and repeats it as `resend` allows.
    pub(crate) fn answer(&self, command: &Cmd, resend: Resend, wait: Duration) -> Result<Answer, Error> {
        self.repeat(command, resend, wait).map_err(|(error, _)| error)
    }

    /// Like `answer`, but an error says whether the command was repeated after it may have been executed.
    pub(crate) fn answer_or_failure(&self, command: &Cmd, resend: Resend) -> Result<Answer, (Error, bool)> {
        self.repeat(command, resend, Duration::ZERO)
    }

    fn repeat(&self, command: &Cmd, resend: Resend, wait: Duration) -> Result<Answer, (Error, bool)> {
        let give_up = after(self.inner.options.retry_for);
        let (mut backoff, mut repeated) = (Backoff::new(), false);
        loop {
            match self.attempt(command, resend, wait) {
                Ok(value) => return Ok(Answer { value, repeated }),
                Err(error) => {
                    let allowed = resend == Resend::Harmless || !error.may_have_been_executed();
                    let pause = backoff.next();
                    if !error.is_transient() || !allowed || Instant::now() + pause > give_up {
                        return Err((error, repeated));
                    }
                    repeated |= error.may_have_been_executed();
                    std::thread::sleep(pause);
                }
            }
        }
    }

    /// Sends a command once, but follows redirections.
    pub(crate) fn attempt(&self, command: &Cmd, resend: Resend, wait: Duration) -> Result<Value, Error> {
        let mut address = self.route(key_of(command).as_deref())?;
        let mut asking = false;
        for _ in 0..REDIRECTIONS {
            let mut link = self.take(&address, resend)?;
            if asking {
                link.ask(&redis::cmd("ASKING"), self.inner.options.response_timeout)?;
            }
            let sent = link.send(&command.get_packed_command(), wait + self.inner.options.response_timeout);
            let reply = sent.and_then(|()| link.receive());
            if let Some((slot, next, is_final)) = reply.as_ref().ok().and_then(|reply| redirect(reply, &address)) {
                self.keep(link, &reply);
                if is_final {
                    self.learn(slot, next.clone());
                }
                (address, asking) = (next, !is_final);
                continue;
            }
            let reply = reply.and_then(reply::checked);
            self.keep(link, &reply);
            return reply;
        }
        Err(moved_too_often())
    }

    /// The number of the database.
    pub(crate) fn database(&self) -> u32 {
        self.inner.options.target.database
    }

    /// The name of its connections.
    pub(crate) fn name(&self) -> &str {
        &self.inner.options.name
    }

    /// Opens a connection to the server of the key, for a consumer alone. `CLIENT LIST` shows whose it is.
    pub(crate) fn link_for(&self, key: &[u8], consumer: &[u8]) -> Result<Link, Error> {
        let address = self.route(Some(key))?;
        self.connect_with(&address, &self.inner.options.clone().name(String::from_utf8_lossy(consumer)))
    }

    /// Ends a blocked pop of this queue, by the number of its connection. Redis up to 8.0 and Valkey up to 8.1 crash if a client
    /// is unblocked whose command is put off (`CLIENT PAUSE`, `FAILOVER`). So this is a transaction that is put off as well then,
    /// because it has a write, which changes nothing: no id has a `#`.
    pub(crate) fn end_pop(&self, server: &Address, key: &[u8], id: i64) -> Result<(), Error> {
        let options = self.inner.options.clone().connect_timeout(TO_END_POP);
        let kept = lock(&self.inner.idle).get_mut(server).and_then(Vec::pop);
        let mut link = match kept.filter(|link| link.used.elapsed() < DOUBTFUL_AFTER) {
            Some(link) => link,
            None => Link::open(server, &options, &options.target.credentials)?,
        };
        let mut packed = redis::cmd("MULTI").get_packed_command();
        redis::cmd("DQ.ACK").arg(key).arg("#").write_packed_command(&mut packed);
        redis::cmd("CLIENT").arg("UNBLOCK").arg(id).write_packed_command(&mut packed);
        redis::cmd("EXEC").write_packed_command(&mut packed);
        link.send(&packed, TO_END_POP)?;
        let replies = [link.receive()?, link.receive()?, link.receive()?, link.receive()?].map(reply::checked);
        self.keep(link, &Ok(Value::Nil));
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    /// Notes where a command was redirected, or that the server has failed.
    pub(crate) fn heed(&self, address: &Address, reply: &Result<Value, Error>) -> bool {
        match reply {
            Ok(value) => {
                let Some((slot, next, is_final)) = redirect(value, address) else { return false };
                if is_final {
                    self.learn(slot, next);
                }
                true
            }
            Err(_) => {
                self.forget(address);
                false
            }
        }
    }

    pub(crate) fn response_timeout(&self) -> Duration {
        self.inner.options.response_timeout
    }

    /// A kept connection to this server, or a new one.
    fn take(&self, address: &Address, resend: Resend) -> Result<Link, Error> {
        while let Some(mut link) = lock(&self.inner.idle).get_mut(address).and_then(Vec::pop) {
            let is_sound = resend == Resend::Harmless
                || link.used.elapsed() < DOUBTFUL_AFTER
                || link.ask(&redis::cmd("PING"), self.inner.options.response_timeout).is_ok();
            if is_sound {
                return Ok(link);
            }
        }
        self.connect(address)
    }

    fn connect(&self, address: &Address) -> Result<Link, Error> {
        self.connect_with(address, &self.inner.options)
    }

    fn connect_with(&self, address: &Address, options: &Options) -> Result<Link, Error> {
        let link = Link::open(address, options, &options.target.credentials).inspect_err(|_| self.forget(address))?;
        if !link.is_master() && matches!(options.target.topology, Topology::Sentinel { .. }) {
            self.forget(address);
            return Err(Error::Unavailable(format!("READONLY {address} is no longer the master")));
        }
        Ok(link)
    }

    /// Keeps a connection for reuse, unless the reply shows that it, or the server, is no longer usable.
    fn keep(&self, mut link: Link, reply: &Result<Value, Error>) {
        match reply {
            Err(Error::Lost(_) | Error::Protocol(_)) => self.forget(link.address()),
            Err(Error::Unavailable(text)) if text.starts_with("READONLY") => self.forget(link.address()),
            _ => {
                link.used = Instant::now();
                let mut idle = lock(&self.inner.idle);
                let links = idle.entry(link.address().clone()).or_default();
                if links.len() < IDLE_KEPT {
                    links.push(link);
                }
            }
        }
    }

    /// After a failure: drops the connections to a server. The next command asks again which server has the keys.
    fn forget(&self, address: &Address) {
        lock(&self.inner.idle).remove(address);
        *lock(&self.inner.master) = None;
        *lock(&self.inner.slots) = None;
    }

    fn learn(&self, slot: u16, address: Address) {
        if let Some(slots) = lock(&self.inner.slots).as_mut() {
            slots.learn(slot, address);
        }
    }

    /// The server of a key; without a key, any server.
    fn route(&self, key: Option<&[u8]>) -> Result<Address, Error> {
        match &self.inner.options.target.topology {
            Topology::Single(address) => Ok(address.clone()),
            Topology::Sentinel { sentinels, master, credentials } => {
                let mut known = lock(&self.inner.master);
                if known.is_none() {
                    *known = Some(sentinel::find_master(sentinels, master, credentials, &self.inner.options)?);
                }
                known.clone().ok_or_else(|| Error::Connect(format!("no sentinel knows {master}")))
            }
            Topology::Cluster(_) => {
                let node = |slots: &Slots| match key {
                    Some(key) => slots.node_of(slot_of(key)).cloned(),
                    None => slots.nodes().into_iter().next(),
                };
                let nobody = || Error::Unavailable("CLUSTERDOWN no node has the slot of the key".to_owned());
                self.with_slots(node)?.ok_or_else(nobody).inspect_err(|_| *lock(&self.inner.slots) = None)
            }
        }
    }

    fn with_slots<T>(&self, read: impl FnOnce(&Slots) -> T) -> Result<T, Error> {
        if let Some(slots) = lock(&self.inner.slots).as_ref() {
            return Ok(read(slots));
        }
        // Without the lock, so that a node that does not answer delays only the callers that ask.
        let slots = self.ask_slots()?;
        let found = read(&slots);
        *lock(&self.inner.slots) = Some(slots);
        Ok(found)
    }

    /// Asks the known nodes, one after the other, which node has which slots.
    fn ask_slots(&self) -> Result<Slots, Error> {
        let Topology::Cluster(seeds) = &self.inner.options.target.topology else { return Ok(Slots::default()) };
        let known: Vec<Address> = lock(&self.inner.idle).keys().cloned().collect();
        let mut last = Error::Connect("no node of the cluster is known".to_owned());
        for address in known.iter().chain(seeds) {
            let slots = self.call_on_new(address).and_then(|reply| Slots::read(reply, address));
            match slots {
                Ok(slots) if !slots.nodes().is_empty() => return Ok(slots),
                Ok(_) => last = Error::Unavailable(format!("CLUSTERDOWN {address} knows no node with slots")),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn call_on_new(&self, address: &Address) -> Result<Value, Error> {
        let options = &self.inner.options;
        let mut link = Link::open(address, options, &options.target.credentials)?;
        let reply = link.ask(redis::cmd("CLUSTER").arg("SLOTS"), options.connect_timeout);
        // It also records this node, for the next time.
        if reply.is_ok() {
            self.keep(link, &reply);
        }
        reply
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.options.fmt(f)
    }
}

fn moved_too_often() -> Error {
    Error::Unavailable("MOVED too often: the nodes of the cluster do not agree".to_owned())
}

/// The instant after this time, which may be one without an end, such as `Duration::MAX`.
pub(crate) fn after(time: Duration) -> Instant {
    // More than a clock counts would be a panic.
    Instant::now() + time.min(Duration::from_millis(u64::MAX))
}

/// Locks a mutex, even if a thread panicked while it held it: nothing here is left half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
