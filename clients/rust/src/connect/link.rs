//! One connection to one server.

use super::options::Options;
use super::tls;
use super::url::{Address, Credentials};
use crate::reply::{self, Fields};
use crate::Error;
use redis::{Cmd, Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, Value};
use std::sync::Once;
use std::time::{Duration, Instant};

/// Why a connection counts as lost.
const NO_REPLY: &str = "no reply in time";

/// An open connection, on which every reply has been read.
pub(crate) struct Link {
    connection: Connection,
    address: Address,
    /// The number by which the server knows this connection, if it has said.
    id: Option<i64>,
    is_master: bool,
    timeout: Option<Duration>,
    pub(super) used: Instant,
}

impl Link {
    /// Connects, logs in, and selects the database.
    pub fn open(address: &Address, options: &Options, credentials: &Credentials) -> Result<Link, Error> {
        let failed = |error: redis::RedisError| match tls::problem(&error) {
            Some(problem) => Error::Certificate(format!("{address}: {problem}")),
            None if error.to_string().contains("KeyMismatch") => {
                Error::Config("cert and key do not belong together".to_owned())
            }
            None => Error::Connect(format!("{address}: {error}")),
        };
        let info = connection_info(address, options)?;
        let client = redis::Client::open(info).map_err(|error| Error::Config(error.to_string()))?;
        let connection = client.get_connection_with_timeout(options.connect_timeout).map_err(failed)?;
        let mut link = Link {
            connection,
            address: address.clone(),
            id: None,
            is_master: true,
            timeout: None,
            used: Instant::now(),
        };
        link.greet(options, credentials)?;
        Ok(link)
    }

    fn greet(&mut self, options: &Options, credentials: &Credentials) -> Result<(), Error> {
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
        // A connection that is lost here has lost no command.
        let is_tls = options.target.tls;
        let lost = |error| match error {
            // It waits for the rest of what it takes for a command.
            Error::Lost(text) if is_tls && text.ends_with(NO_REPLY) => {
                Error::Connect(format!("{text}; the server may not speak TLS on this port"))
            }
            Error::Lost(text) if !is_tls && !text.ends_with(NO_REPLY) => {
                Error::Connect(format!("{text}; the server may expect TLS, and so rediss://"))
            }
            Error::Lost(text) => Error::Connect(text),
            other => other,
        };
        // A sentinel has no role, and no databases.
        let role = match self.ask(&hello, options.connect_timeout) {
            Ok(greeting) => {
                let greeting = Fields::from(greeting)?;
                self.id = Some(greeting.int("id")?);
                greeting.maybe_text("role")?
            }
            Err(Error::Server(_)) => self.greet_without_hello(options, credentials, &name).map_err(lost)?,
            Err(error) => return Err(lost(error)),
        };
        self.is_master = role.as_deref() == Some("master");
        let database = options.target.database;
        if database != 0 && role.is_some() {
            self.ask(redis::cmd("SELECT").arg(database), options.connect_timeout).map_err(|error| match error {
                Error::Server(text) => Error::Config(format!(
                    "{} has no database {database}: the number in the URL is from 0 to below the setting databases ({text})",
                    self.address
                )),
                other => lost(other),
            })?;
        }
        Ok(())
    }

    /// Logs in to a server or a proxy that does not know `HELLO`, in RESP2. It need not know names and numbers of connections
    /// either. Returns its role.
    fn greet_without_hello(
        &mut self,
        options: &Options,
        credentials: &Credentials,
        name: &str,
    ) -> Result<Option<String>, Error> {
        if let Some(password) = &credentials.password {
            self.ask(redis::cmd("AUTH").arg(&credentials.user).arg(password), options.connect_timeout)?;
        }
        let mut maybe = |command: &Cmd| match self.ask(command, options.connect_timeout) {
            Err(error @ (Error::Lost(_) | Error::Authentication(_))) => Err(error),
            reply => Ok(reply.ok()),
        };
        if !name.is_empty() {
            maybe(redis::cmd("CLIENT").arg("SETNAME").arg(name))?;
        }
        let id = maybe(redis::cmd("CLIENT").arg("ID"))?;
        let role = maybe(&redis::cmd("ROLE"))?.and_then(|role| reply::text(reply::list(role).ok()?.first()?).ok());
        self.id = id.and_then(|id| reply::int(&id).ok());
        Ok(Some(role.unwrap_or_else(|| "master".to_owned())).filter(|role| role != "sentinel"))
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn id(&self) -> Option<i64> {
        self.id
    }

    pub fn is_master(&self) -> bool {
        self.is_master
    }

    /// Sends a command and returns its reply. An error of the server is an error here.
    pub fn ask(&mut self, command: &Cmd, timeout: Duration) -> Result<Value, Error> {
        self.send(&command.get_packed_command(), timeout)?;
        reply::checked(self.receive()?)
    }

    /// Sends one or more commands. Each has a reply, to be received in order.
    pub fn send(&mut self, packed: &[u8], timeout: Duration) -> Result<(), Error> {
        if self.timeout != Some(timeout) {
            let set = self.connection.set_read_timeout(Some(timeout));
            set.and_then(|()| self.connection.set_write_timeout(Some(timeout))).map_err(|error| self.lost(&error))?;
            self.timeout = Some(timeout);
        }
        self.connection.send_packed_command(packed).map_err(|error| self.lost(&error))
    }

    /// Returns the next reply, which may be an error of the server.
    pub fn receive(&mut self) -> Result<Value, Error> {
        loop {
            match self.connection.recv_response() {
                Ok(Value::Push { .. }) => {}
                Ok(value) => return Ok(value),
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    /// Subscribes to channels, and calls `told` with the channel and the text of each message for as long as `goes_on`
    /// returns true, which is asked after each message and at least once in `patience`. Returns the error that ends the
    /// connection.
    pub fn listen(
        &mut self,
        channels: &[Vec<u8>],
        patience: Duration,
        told: impl Fn(&[u8], &[u8]),
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let address = self.address.to_string();
        let lost = |error: &redis::RedisError| match error.code() {
            Some(code) => Error::from_reply(code, error.detail().unwrap_or_default()),
            None => Error::Lost(format!("{address}: {error}")),
        };
        self.connection.set_read_timeout(Some(patience)).map_err(|error| lost(&error))?;
        self.timeout = None;
        let mut subscribed = self.connection.as_pubsub();
        subscribed.subscribe(channels).map_err(|error| lost(&error))?;
        while goes_on() {
            match subscribed.get_message() {
                Ok(message) => {
                    let channel: Vec<u8> = message.get_channel().map_err(|error| Error::Protocol(error.to_string()))?;
                    told(&channel, message.get_payload_bytes());
                }
                Err(error) if error.is_timeout() => {}
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(())
    }

    fn lost(&self, error: &redis::RedisError) -> Error {
        // The server judges the certificate of the client after the handshake.
        if let Some(problem) = tls::problem(error) {
            return Error::Certificate(format!("{}: {problem}", self.address));
        }
        if error.kind() == redis::ErrorKind::Parse {
            // Such as an error that repeats a payload, which a server without the module answers.
            return Error::Protocol(format!("{}: {error}; does the server have the module dq?", self.address));
        }
        let why = if error.is_timeout() { NO_REPLY.to_owned() } else { error.to_string() };
        Error::Lost(format!("{}: {why}", self.address))
    }
}

fn connection_info(address: &Address, options: &Options) -> Result<ConnectionInfo, Error> {
    let config = |error: redis::RedisError| Error::Config(format!("TLS: {error}"));
    let address = match address {
        Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        Address::Tcp(host, port) if !options.target.tls => ConnectionAddr::Tcp(host.clone(), *port),
        Address::Tcp(host, port) => {
            static PROVIDER: Once = Once::new();
            // Fails if the program has already chosen another provider, which is fine.
            PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
            let (host, port, insecure) = (host.clone(), *port, options.target.insecure);
            let plain = ConnectionAddr::TcpTls { host, port, insecure, tls_params: None };
            match options.certificates() {
                None => plain,
                Some(certificates) => {
                    let info = plain.into_connection_info().map_err(config)?;
                    let client = redis::Client::build_with_tls(info, certificates).map_err(config)?;
                    client.get_connection_info().addr().clone()
                }
            }
        }
    };
    // We send HELLO ourselves, because its reply has the id of the connection, without the right to `CLIENT ID`.
    let settings = RedisConnectionInfo::default().set_skip_set_lib_name();
    let info = address.into_connection_info().map_err(config)?;
    Ok(info.set_redis_settings(settings))
}
