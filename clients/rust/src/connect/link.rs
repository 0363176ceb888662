//! One connection to one server, by which many commands can be on their way.

use super::options::Options;
use super::tls;
use super::url::{Address, Credentials};
use crate::connection_error::{ConnectionError, ConnectionErrorKind};
use crate::error::Error;
use crate::reply::{self, Fields};
use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, Msg, Pipeline, RedisConnectionInfo,
    RedisError, Value,
};
use std::fmt::Display;
use std::future::{poll_fn, Future};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a server that accepts no more connections takes at most to say so, and how many bytes that has.
const REFUSAL_TIME: Duration = Duration::from_millis(500);
const REFUSAL_BYTES: u64 = 1024;
/// How many commands wait to be written before callers wait themselves.
const UNWRITTEN: usize = 1024;
/// A subscription without a message for this time is tested, so that a connection which is silently dead is noticed.
const QUIET: Duration = Duration::from_secs(10);

/// An open connection. Its clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    connection: MultiplexedConnection,
    pub address: Address,
    /// The number by which the server knows this connection; `None` if it did not give one.
    pub id: Option<i64>,
    pub is_master: bool,
    /// Cancelled when sentinels have named another master: this server may still accept writes, which would be lost.
    retired: CancellationToken,
    /// When it was opened, and how many ms later the server has last answered.
    opened: Instant,
    answered: Arc<AtomicU64>,
}

impl Link {
    /// Connects, logs in, and selects the database.
    pub async fn open(
        address: &Address,
        options: &Options,
        credentials: &Credentials,
        retired: CancellationToken,
    ) -> Result<Link, Error> {
        let client = client(address, options, RedisConnectionInfo::default())?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connect_timeout))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(UNWRITTEN);
        let connection = match client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => connection,
            Err(error) => return Err(not_connected(address, options, &error).await),
        };
        let (address, opened, answered) = (address.clone(), Instant::now(), Arc::default());
        let mut link = Link { connection, address, id: None, is_master: true, retired, opened, answered };
        match link.greet(options, credentials).await {
            // A connection that is lost here has lost no command.
            Err(Error::Lost(lost)) => Err(link.not_greeted(lost, options, client).await),
            greeted => greeted.map(|()| link),
        }
    }

    /// Why a server that accepted the connection does not greet.
    async fn not_greeted(&self, lost: ConnectionError, options: &Options, client: redis::Client) -> Error {
        if options.target.tls {
            return match tls::alert(client, options.connect_timeout).await {
                Some(problem) => Error::Certificate(format!("{}: {problem}", self.address)),
                None => Error::Connect(lost),
            };
        }
        if lost.kind() == ConnectionErrorKind::NoReply {
            return Error::Connect(lost);
        }
        // With TLS, a server says nothing before the handshake.
        Error::Connect(match refusal(&self.address).await {
            Some(text) => refused(&self.address, &text),
            None => ConnectionError::new(ConnectionErrorKind::MayExpectTls, &self.address, lost.reason()),
        })
    }

    async fn greet(&mut self, options: &Options, credentials: &Credentials) -> Result<(), Error> {
        let mut hello = redis::cmd("HELLO");
        hello.arg(if options.target.resp3 { 3 } else { 2 });
        if let Some(password) = &credentials.password {
            hello.arg("AUTH").arg(credentials.user.as_deref().unwrap_or("default")).arg(password);
        }
        // The server refuses other characters, such as those of the name of a host.
        let character = |byte: u8| if byte.is_ascii_graphic() { char::from(byte) } else { '?' };
        let name: String = options.name.bytes().map(character).collect();
        if !name.is_empty() {
            hello.arg("SETNAME").arg(&name);
        }
        // A sentinel has no role, and no databases.
        let role = match self.ask(&hello, options.connect_timeout).await {
            Ok(greeting) => {
                let mut greeting = Fields::from(greeting)?;
                self.id = Some(greeting.get("id")?);
                greeting.get("role")?
            }
            Err(Error::Server(text)) if refusal_kind(&text).is_some() => {
                return Err(Error::Connect(refused(&self.address, &text)));
            }
            Err(Error::Server(_)) => self.greet_without_hello(options, credentials, &name).await?,
            Err(error) => return Err(error),
        };
        self.is_master = role.as_deref() == Some("master");
        let database = options.target.database;
        if database != 0 && role.is_some() {
            let selected = self.ask(redis::cmd("SELECT").arg(database), options.connect_timeout).await;
            selected.map_err(|error| match error {
                Error::Server(text) => Error::Config(format!(
                    "{} has no database {database}: the number in the URL is from 0 to below the setting databases \
                     ({text})",
                    self.address
                )),
                other => other,
            })?;
        }
        Ok(())
    }

    /// Logs in to a server or a proxy that does not know `HELLO`, in RESP2. It need not know names and numbers of
    /// connections either. Returns its role.
    async fn greet_without_hello(
        &mut self,
        options: &Options,
        credentials: &Credentials,
        name: &str,
    ) -> Result<Option<String>, Error> {
        let time = options.connect_timeout;
        if let Some(password) = &credentials.password {
            self.ask(redis::cmd("AUTH").arg(&credentials.user).arg(password), time).await?;
        }
        let maybe = |reply| match reply {
            Err(error @ (Error::Lost(_) | Error::Authentication(_))) => Err(error),
            reply => Ok(reply.ok()),
        };
        if !name.is_empty() {
            maybe(self.ask(redis::cmd("CLIENT").arg("SETNAME").arg(name), time).await)?;
        }
        let id = maybe(self.ask(redis::cmd("CLIENT").arg("ID"), time).await)?;
        let role = maybe(self.ask(&redis::cmd("ROLE"), time).await)?;
        let role = role.and_then(|role| reply::text(reply::list(role).ok()?.into_iter().next()?).ok());
        self.id = id.and_then(|id| reply::int(&id).ok());
        Ok(Some(role.unwrap_or_else(|| "master".to_owned())).filter(|role| role != "sentinel"))
    }

    /// An error if sentinels have named another master.
    pub fn is_in_use(&self) -> Result<(), Error> {
        if self.retired.is_cancelled() {
            Err(Error::Connect(ConnectionError::not_master(&self.address)))
        } else {
            Ok(())
        }
    }

    /// How long ago the server has last answered.
    pub fn silence(&self) -> Duration {
        self.opened.elapsed().saturating_sub(Duration::from_millis(self.answered.load(Ordering::Relaxed)))
    }

    /// Sends a command and returns its reply. An error of the server is an error here.
    pub async fn ask(&self, command: &Cmd, time: Duration) -> Result<Value, Error> {
        reply::checked(self.exchange(command, time).await?)
    }

    /// Sends a command and returns its reply, which may be an error of the server.
    pub async fn exchange(&self, command: &Cmd, time: Duration) -> Result<Value, Error> {
        let mut connection = self.connection.clone();
        self.answer(connection.send_packed_command(command), time).await
    }

    /// Sends several commands, with no other one in between, and returns their replies.
    pub async fn exchange_all(&self, commands: &Pipeline, time: Duration) -> Result<Vec<Value>, Error> {
        let mut connection = self.connection.clone();
        self.answer(connection.send_packed_commands(commands, 0, commands.len()), time).await
    }

    /// Waits for a reply. [`Error::Connect`]: the connection was closed before, so nothing was sent.
    async fn answer<R>(&self, reply: impl Future<Output = Result<R, RedisError>>, time: Duration) -> Result<R, Error> {
        self.is_in_use()?;
        let mut reply = pin!(reply);
        // The task that writes runs in this thread, and not before this has waited.
        let reply = match poll_fn(|context| Poll::Ready(reply.as_mut().poll(context))).await {
            Poll::Ready(Err(error)) => return Err(Error::Connect(closed(&self.address, &error))),
            Poll::Ready(Ok(reply)) => reply,
            Poll::Pending => tokio::select! {
                replied = timeout(time, reply) => match replied {
                    Ok(replied) => replied.map_err(|error| lost(&self.address, &error))?,
                    Err(_) => return Err(Error::Lost(ConnectionError::no_reply(&self.address))),
                },
                () = self.retired.cancelled() => return Err(Error::Lost(ConnectionError::not_master(&self.address))),
            },
        };
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.answered.store(since, Ordering::Relaxed);
        Ok(reply)
    }
}

/// Asks why a server closes connections at once: at `maxclients`, and to strangers in protected mode, it sends an error
/// before any command. That is lost if the command comes first, so another connection is made, which sends nothing.
async fn refusal(address: &Address) -> Option<String> {
    let address = address.clone();
    let reading = tokio::task::spawn_blocking(move || match address {
        Address::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), port)).ok()?;
            stream.set_read_timeout(Some(REFUSAL_TIME)).ok()?;
            error_line(stream)
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).ok()?;
            stream.set_read_timeout(Some(REFUSAL_TIME)).ok()?;
            error_line(stream)
        }
    });
    timeout(2 * REFUSAL_TIME, reading).await.ok()?.ok()?
}

/// Reads an error, up to the end of its line.
fn error_line(stream: impl Read) -> Option<String> {
    let mut line = Vec::new();
    BufReader::new(stream.take(REFUSAL_BYTES)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8_lossy(&line);
    Some(line.strip_prefix('-')?.trim_end().to_owned())
}

/// Why a server refuses a new connection whatever its first command is; `None` for any other error.
fn refusal_kind(text: &str) -> Option<ConnectionErrorKind> {
    let kinds = [
        ("ERR max number of clients", ConnectionErrorKind::TooManyClients),
        ("DENIED ", ConnectionErrorKind::Protected),
    ];
    kinds.into_iter().find_map(|(start, kind)| text.starts_with(start).then_some(kind))
}

/// The error of a server that has refused a new connection with this text.
fn refused(address: &Address, text: &str) -> ConnectionError {
    ConnectionError::new(refusal_kind(text).unwrap_or(ConnectionErrorKind::Other), address, text)
}

/// A connection that receives the messages of channels.
pub(crate) struct Subscription {
    address: Address,
    first_channel: Vec<u8>,
    response_timeout: Duration,
    sink: PubSubSink,
    stream: PubSubStream,
}

impl Subscription {
    /// Connects, logs in, and subscribes to these channels.
    pub async fn open(
        address: &Address,
        options: &Options,
        credentials: &Credentials,
        channels: &[Vec<u8>],
    ) -> Result<Subscription, Error> {
        let mut settings = RedisConnectionInfo::default();
        if let Some(password) = &credentials.password {
            settings = settings.set_password(password);
        }
        if let Some(user) = &credentials.user {
            settings = settings.set_username(user);
        }
        let client = client(address, options, settings)?;
        let subscribing = async {
            let mut subscribed = match client.get_async_pubsub().await {
                Ok(subscribed) => subscribed,
                Err(error) => return Err(not_connected(address, options, &error).await),
            };
            subscribed.subscribe(channels).await.map_err(|error| lost(address, &error))?;
            Ok(subscribed)
        };
        let time = options.connect_timeout + options.response_timeout;
        let subscribed = timeout(time, subscribing).await;
        let subscribed = subscribed.unwrap_or_else(|_| Err(Error::Connect(ConnectionError::no_reply(address))))?;
        let (sink, stream) = subscribed.split();
        let (address, first_channel) = (address.clone(), channels.first().cloned().unwrap_or_default());
        Ok(Subscription { address, first_channel, response_timeout: options.response_timeout, sink, stream })
    }

    /// Waits for the next message.
    pub async fn next(&mut self) -> Result<Msg, Error> {
        let closed =
            |why: &dyn Display| Error::Lost(ConnectionError::new(ConnectionErrorKind::Closed, &self.address, why));
        loop {
            match timeout(QUIET, self.stream.next()).await {
                Ok(message) => return message.ok_or_else(|| closed(&"the subscription has ended")),
                Err(_) => {
                    // The user need not have the right to `PING`.
                    let again = self.sink.subscribe(&self.first_channel);
                    let answered = timeout(self.response_timeout, again).await;
                    let answered = answered.map_err(|_| Error::Lost(ConnectionError::no_reply(&self.address)))?;
                    answered.map_err(|error| closed(&error))?;
                }
            }
        }
    }
}

/// The error of a connection that was not made.
async fn not_connected(address: &Address, options: &Options, error: &RedisError) -> Error {
    if let Some(problem) = tls::problem(error) {
        return Error::Certificate(format!("{address}: {problem}"));
    }
    if error.to_string().contains("KeyMismatch") {
        return Error::Config("cert and key do not belong together".to_owned());
    }
    if tls::is_not_spoken(error) {
        let reason = "it does not speak TLS on this port";
        return Error::Connect(ConnectionError::new(ConnectionErrorKind::NoTls, address, reason));
    }
    let kind = match (error.is_timeout(), error.is_connection_refusal()) {
        (true, _) if options.target.tls => ConnectionErrorKind::TlsTimedOut,
        (true, _) => ConnectionErrorKind::TimedOut,
        (false, true) => ConnectionErrorKind::Refused,
        (false, false) if !is_host_known(address, options).await => ConnectionErrorKind::UnknownHost,
        (false, false) => ConnectionErrorKind::Other,
    };
    Error::Connect(ConnectionError::new(kind, address, error))
}

/// Whether the name of the host has an address. The error of the library does not say so.
async fn is_host_known(address: &Address, options: &Options) -> bool {
    match address {
        Address::Tcp(host, port) => {
            let lookup = lookup_host((host.as_str(), *port));
            !matches!(timeout(options.connect_timeout, lookup).await, Ok(Err(_)))
        }
        Address::Unix(_) => true,
    }
}

fn lost(address: &Address, error: &RedisError) -> Error {
    // The server judges the certificate of the client after the handshake.
    if let Some(problem) = tls::problem(error) {
        return Error::Certificate(format!("{address}: {problem}"));
    }
    if let Some(code) = error.code() {
        return Error::from_reply(code, error.detail().unwrap_or_default());
    }
    // The end of the connection within a reply looks like a reply that cannot be read.
    let is_cut = || error.to_string().contains("end of input");
    if error.kind() == redis::ErrorKind::Parse && !is_cut() {
        // Such as an error that repeats a payload, which a server without the module answers.
        return Error::Protocol(format!("{address}: a reply cannot be read; does the server have the module dq?"));
    }
    Error::Lost(closed(address, error))
}

/// The error of a connection that was open.
fn closed(address: &Address, error: &RedisError) -> ConnectionError {
    ConnectionError::new(ConnectionErrorKind::Closed, address, error)
}

fn client(address: &Address, options: &Options, settings: RedisConnectionInfo) -> Result<redis::Client, Error> {
    let address = match address {
        Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        Address::Tcp(host, port) if !options.target.tls => ConnectionAddr::Tcp(host.clone(), *port),
        Address::Tcp(host, port) => tls::address(host, *port, options)?,
    };
    // We send HELLO ourselves, because its reply has the id of the connection, without the right to `CLIENT ID`.
    let settings = settings.set_skip_set_lib_name();
    let config = |error: RedisError| Error::Config(error.to_string());
    let info: ConnectionInfo = address.into_connection_info().map_err(config)?;
    redis::Client::open(info.set_redis_settings(settings)).map_err(config)
}
