//! Connections with TLS, and what is wrong with a certificate, in words.

use super::options::Options;
use crate::error::Error;
use redis::{ConnectionAddr, ConnectionLike, IntoConnectionInfo, RedisError, TlsCertificates};
use rustls::pki_types::InvalidDnsNameError;
use rustls::{AlertDescription, CertificateError};
use std::error::Error as _;
use std::io;
use std::sync::{Arc, Once};
use std::time::Duration;

/// The address of a server that speaks TLS, and the certificates for it.
pub(super) fn address(host: &str, port: u16, options: &Options) -> Result<ConnectionAddr, Error> {
    static PROVIDER: Once = Once::new();
    // Fails if the program has already chosen another provider, which is fine.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let plain =
        ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure: options.target.insecure, tls_params: None };
    if !options.has_certificates() {
        return Ok(plain);
    }
    let config = |error: RedisError| Error::Config(format!("TLS: {error}"));
    let client_tls = options.client_certificate.clone();
    let client_tls = client_tls.map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
    let certificates = TlsCertificates { client_tls, root_cert: options.root_certificate.clone() };
    let client = redis::Client::build_with_tls(plain.into_connection_info().map_err(config)?, certificates);
    Ok(client.map_err(config)?.get_connection_info().addr().clone())
}

/// Asks what the matter is with a connection that the server closes after the handshake: an asynchronous one does not
/// report an alert that arrives before its first command.
pub(super) async fn alert(client: redis::Client, time: Duration) -> Option<String> {
    let asking = move || {
        let mut connection = client.get_connection_with_timeout(time).ok()?;
        connection.set_read_timeout(Some(time)).ok()?;
        connection.req_command(&redis::cmd("PING")).err()
    };
    problem(&tokio::task::spawn_blocking(asking).await.ok()??)
}

type Shared = Arc<dyn std::error::Error + Send + Sync>;

/// What a failure of TLS says about certificates; `None` if it has another cause.
pub(super) fn problem(error: &RedisError) -> Option<String> {
    let shared = error.source()?.downcast_ref::<Shared>()?;
    if !shared.is::<io::Error>() {
        // Before there is a connection, the certificates of the system are read.
        let is_of_name = shared.downcast_ref::<InvalidDnsNameError>().is_some();
        return (!is_of_name).then(|| {
            format!("the trusted certificates of this machine, or those in SSL_CERT_FILE, cannot be read: {error}")
        });
    }
    match tls_error(error)? {
        rustls::Error::InvalidCertificate(wrong) => Some(server_certificate_problem(wrong)),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            Some("the server asks for a certificate of the client: give cert and key".to_owned())
        }
        rustls::Error::AlertReceived(alert) if is_about_certificate(*alert) => {
            Some(format!("the server refuses the certificate of the client ({alert:?}): check cert and key"))
        }
        _ => None,
    }
}

/// Whether the server has answered the handshake with something that is not TLS.
pub(super) fn is_not_spoken(error: &RedisError) -> bool {
    matches!(tls_error(error), Some(rustls::Error::InvalidMessage(_)))
}

fn tls_error(error: &RedisError) -> Option<&rustls::Error> {
    let io = error.source()?.downcast_ref::<Shared>()?.downcast_ref::<io::Error>()?;
    io.get_ref()?.downcast_ref()
}

/// Whether the server does not accept the certificate of the client.
fn is_about_certificate(alert: AlertDescription) -> bool {
    let others = [AlertDescription::UnknownCA, AlertDescription::AccessDenied, AlertDescription::DecryptError];
    others.contains(&alert) || format!("{alert:?}").contains("Certificate")
}

/// Why the certificate of the server is not accepted.
fn server_certificate_problem(wrong: &CertificateError) -> String {
    let text = match wrong {
        CertificateError::UnknownIssuer => {
            "signed by an authority that is not trusted here: give cacert, the certificate of that one"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "expired: renew it, or set the clock of this machine"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "not valid yet: set the clock of this machine"
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            // They come as DnsName("name").
            let names: Vec<_> = presented.iter().filter_map(|name| name.split('"').nth(1)).collect();
            let names = if names.is_empty() { "no name at all".to_owned() } else { names.join(", ") };
            &format!("not for {}, but for {names}: connect by a name in it", expected.to_str())
        }
        // webpki has no public type for it.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "that of an authority (CA:TRUE), which no server may use: sign one for the server with it"
        }
        other => &format!("not valid: {other}"),
    };
    format!("its certificate is {text}")
}
