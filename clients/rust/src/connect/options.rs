//! How a client connects.

use super::url::{self, Target, Topology};
use crate::error::Error;
use std::path::Path;
use std::time::Duration;

/// A socket does not accept a timeout of zero.
const SHORTEST: Duration = Duration::from_millis(1);

/// The server's address and how to connect to it: the contents of a URL, and more.
///
/// ```no_run
/// # fn main() -> Result<(), dq_client::Error> {
/// use std::time::Duration;
/// let options = dq_client::Options::from_url("rediss://worker:secret@queue.example:6379")?
///     .root_certificate(std::fs::read("ca.pem")?)
///     .retry_for(Duration::from_secs(30));
/// let client = dq_client::Client::with(options)?;
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct Options {
    pub(crate) target: Target,
    pub(super) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(super) retry_for: Duration,
    pub(crate) name: String,
    pub(super) root_certificate: Option<Vec<u8>>,
    pub(super) client_certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Options {
    /// Reads a URL: `redis://`, `rediss://` (TLS), `unix://`, `redis+cluster://` or `redis+sentinel://`, see
    /// `Client::open`.
    ///
    /// # Errors
    /// [`Error::Config`] if the URL cannot be understood, or a file that it names cannot be read. The error does not
    /// show users and passwords.
    pub fn from_url(url: &str) -> Result<Options, Error> {
        let (target, [cacert, cert, key]) = url::parse(url)?;
        let options = Options {
            target,
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(5),
            retry_for: Duration::from_secs(10),
            name: String::new(),
            root_certificate: None,
            client_certificate: None,
        };
        options.certificate_files(cacert.as_deref(), cert.as_deref(), key.as_deref())
    }

    /// Reads certificates (PEM) from files: as [`Options::root_certificate`] and [`Options::client_certificate`].
    /// `None` leaves what was set before. They are read once.
    ///
    /// # Errors
    /// [`Error::Config`] if a file cannot be read, or if only one of `cert` and `key` is given.
    pub fn certificate_files(
        mut self,
        cacert: Option<&Path>,
        cert: Option<&Path>,
        key: Option<&Path>,
    ) -> Result<Options, Error> {
        if let Some(path) = cacert {
            self = self.root_certificate(read_pem(path, "CERTIFICATE")?);
        }
        match (cert, key) {
            (None, None) => Ok(self),
            (Some(cert), Some(key)) => {
                Ok(self.client_certificate(read_pem(cert, "CERTIFICATE")?, read_pem(key, "PRIVATE KEY")?))
            }
            _ => Err(Error::Config("the certificate of the client needs both cert and key".to_owned())),
        }
    }

    /// The address is that of a node of a cluster, as with the scheme `redis+cluster://`.
    ///
    /// # Errors
    /// [`Error::Config`] if the URL was that of a unix socket or of sentinels.
    pub fn cluster(mut self) -> Result<Options, Error> {
        self.target.topology = match self.target.topology {
            Topology::Single(address @ url::Address::Tcp(..)) => Topology::Cluster(vec![address]),
            Topology::Cluster(nodes) => Topology::Cluster(nodes),
            Topology::Single(url::Address::Unix(_)) | Topology::Sentinel { .. } => {
                return Err(Error::Config("a cluster needs the host and port of one of its nodes".to_owned()));
            }
        };
        Ok(self)
    }

    /// The longest time to wait for a connection. 2 seconds by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout.max(SHORTEST);
        self
    }

    /// The longest time to wait for a reply, beyond the time for which the command itself blocks. 5 seconds by default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout.max(SHORTEST);
        self
    }

    /// How long a command is repeated if the server cannot be reached or cannot execute it now. 10 seconds by default;
    /// zero: not at all. A command that may have been executed is repeated only if that is harmless.
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.retry_for = time;
        self
    }

    /// The name of the connections in `CLIENT LIST`, without spaces. None by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The certificates (PEM) that sign those of the server, instead of those that the system trusts.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificate = Some(pem.into());
        self
    }

    /// The certificate and the key (PEM) with which the client identifies itself.
    pub fn client_certificate(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.client_certificate = Some((certificate.into(), key.into()));
        self
    }

    pub(super) fn has_certificates(&self) -> bool {
        self.root_certificate.is_some() || self.client_certificate.is_some()
    }
}

impl std::fmt::Debug for Options {
    /// Shows neither passwords nor keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("target", &self.target).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads a file that must hold a PEM of a kind: one without would count as empty.
fn read_pem(path: &Path, kind: &str) -> Result<Vec<u8>, Error> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|error| Error::Config(format!("{name} cannot be read: {error}")))?;
    let is_kind = |line: &str| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(&format!("{kind}-----"));
    if String::from_utf8_lossy(&bytes).lines().any(is_kind) {
        Ok(bytes)
    } else {
        Err(Error::Config(format!("{name} is no PEM file: it has no line -----BEGIN {kind}-----")))
    }
}
