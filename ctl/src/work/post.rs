//! Handles one message: posts it to a URL, and turns the answer into an ack or a nack.

use super::about::{encoded, request_headers};
use super::lack::{is_lack, NotDone};
use super::log::Log;
use super::output::RESULT_BYTES;
use crate::cli::HandlerArgs;
use crate::server;
use crate::text::{exact, millis};
use dq_client::{blocking::Client, Context, Failure, QueueName, Raw};
use nix::sys::signal::{SigSet, Signal};
use serde_json::json;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy, ProxyProtocol};

/// The longest time for a post, unless `--time-limit` says otherwise: a server that never answers must not keep a
/// thread.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The longest delay that a server can ask for with `Retry-After`.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);
/// How much of an answer is kept as the error of the message.
const KEPT: u64 = 900;

/// Posts each message to a URL.
pub struct Post {
    client: Client,
    log: Log,
    agent: Agent,
    url: Uri,
    how: HandlerArgs,
    time_limit: Duration,
}

impl Post {
    /// Refuses a URL that cannot be posted to, before any message spends an attempt on it.
    pub fn new(
        client: &Client,
        url: &str,
        concurrency: usize,
        how: &HandlerArgs,
        log: Log,
    ) -> Result<Post, server::Failure> {
        let wrong = || {
            let url = without_secrets(url);
            server::Failure::usage(format!(
                "{url} is not a URL that can be posted to, such as https://example.org/hook"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(wrong()),
        };
        if uri.host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        let proxy = how.proxy.as_deref().map(proxy).transpose()?;
        let time_limit = how.time_limit.unwrap_or(TIME_LIMIT);
        let mut config = Agent::config_builder()
            .timeout_global(Some(time_limit))
            // Without an option, none: what the environment says of proxies differs from program to program.
            .proxy(proxy.clone())
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(concurrency)
            .max_idle_connections_per_host(concurrency)
            .user_agent(concat!("dqctl/", env!("CARGO_PKG_VERSION")));
        if is_tls || proxy.is_some_and(|proxy| proxy.protocol() == ProxyProtocol::Https) {
            config = config.tls_config(tls()?);
        }
        Ok(Post { client: client.clone(), log, agent: config.build().into(), url: uri, how: how.clone(), time_limit })
    }

    /// Posts a message: `Ok` acknowledges it, with the text of the answer as its result.
    pub fn handle(&self, payload: &[u8], context: &Context) -> Result<Raw, NotDone> {
        block_child_signals();
        let mut request = self.agent.post(&self.url);
        let of_message = context.meta().map(request_headers).unwrap_or_default();
        let is_set = |name: &str| self.how.headers.iter().any(|(set, _)| set.eq_ignore_ascii_case(name));
        for (name, value) in of_message.iter().filter(|(name, _)| !is_set(name)).chain(&self.how.headers) {
            request = request.header(name, value);
        }
        if !is_set("content-type") && !of_message.iter().any(|(name, _)| name == "content-type") {
            request = request.header("Content-Type", "application/octet-stream");
        }
        request = request
            .header("DQ-Queue", encoded(context.queue().as_bytes()))
            .header("DQ-Id", encoded(context.id().as_ref()))
            .header("DQ-Attempt", context.attempt().to_string());
        match request.send(payload) {
            Ok(answer) => Ok(self.verdict(answer, context)?),
            Err(ureq::Error::Timeout(_)) => {
                let limit = exact(millis(self.time_limit));
                Err(Failure::retry(format!("no answer within the time limit of {limit}")).into())
            }
            Err(ureq::Error::Io(error)) if is_lack(&error) => Err(NotDone::Lacking(format!("cannot post: {error}"))),
            Err(error) => Err(Failure::retry(format!("cannot post: {error}")).into()),
        }
    }

    fn verdict(&self, answer: Response<Body>, context: &Context) -> Result<Raw, Failure> {
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(result_of(answer));
        }
        let header = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let delay = header.filter(|_| matches!(status, 429 | 503)).and_then(|value| delay(value, SystemTime::now()));
        let text = error_of(answer);
        if let Some(delay) = delay {
            if status == 429 && self.how.pause_on_429 {
                self.pause(context.queue(), delay);
            }
            return Err(Failure::retry_after(delay, text));
        }
        let is_refusal = (400..500).contains(&status) && !matches!(status, 408 | 425 | 429);
        if is_refusal && !self.how.retry_on.contains(&status) {
            Err(Failure::reject(text))
        } else {
            Err(Failure::retry(text))
        }
    }

    fn pause(&self, queue: &QueueName, delay: Duration) {
        if let Err(error) = self.client.queue::<Raw>(queue).pause(Some(delay)) {
            let text = format!("{queue}: cannot be paused: {error}");
            self.log.warn("not-paused", &text, json!({ "queue": queue.to_string(), "error": error.to_string() }));
        }
    }
}

fn proxy(url: &str) -> Result<Proxy, server::Failure> {
    let proxy = Proxy::new(url).ok();
    proxy.filter(|proxy| matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https)).ok_or_else(|| {
        let url = without_secrets(url);
        server::Failure::usage(format!("{url} is not the URL of an HTTP proxy, such as http://proxy.example.org:3128"))
    })
}

/// A URL for messages: without its user and its query, which may hold a password or a token.
pub fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let shown = rest.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}{}{shown}", if scheme.is_empty() { "" } else { "://" })
}

/// The processes of other queues must not interrupt the wait for an answer. This thread starts none.
fn block_child_signals() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    let _ = signals.thread_block();
}

/// TLS with the certificates that the system trusts.
fn tls() -> Result<TlsConfig, server::Failure> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(server::Failure::failed(
            "the system has no certificates for https: install ca-certificates, or name a file in SSL_CERT_FILE",
        ));
    }
    let certificates = found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates.collect())))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

/// The text of an answer as a result. If it is too long or incomplete, there is no result; the message is still
/// accepted.
fn result_of(answer: Response<Body>) -> Raw {
    let mut text = Vec::new();
    let limit = u64::try_from(RESULT_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    match answer.into_body().into_reader().take(limit).read_to_end(&mut text) {
        Ok(length) if length <= RESULT_BYTES => Raw(text),
        Ok(_) | Err(_) => Raw(Vec::new()),
    }
}

/// The status, and the beginning of what the server says about it.
fn error_of(answer: Response<Body>) -> String {
    let status = answer.status();
    let mut text = Vec::new();
    // Without the rest of the text, the status is still an error.
    let _ = answer.into_body().into_reader().take(KEPT).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    match text.trim() {
        "" => status.to_string(),
        text => format!("{status}: {text}"),
    }
}

/// The delay of a `Retry-After`: seconds, or a date. `None` if it is neither, or if it asks for none: then the backoff
/// of the queue is waited for.
fn delay(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let delay = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.parse().map_or(LONGEST_DELAY, Duration::from_secs)
    } else {
        let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
        SystemTime::from(date).duration_since(now).unwrap_or_default()
    };
    Some(delay.min(LONGEST_DELAY)).filter(|delay| !delay.is_zero())
}

#[cfg(test)]
mod tests {
    use super::{delay, without_secrets, LONGEST_DELAY};
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_server_asks_for_a_delay_in_seconds_or_with_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(1_445_412_480 - 60);
        assert_eq!(delay("120", now), Some(Duration::from_secs(120)));
        assert_eq!(delay("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_secs(60)));
        assert_eq!((delay("Wed, 21 Oct 2015 07:20:00 GMT", now), delay("0", now)), (None, None));
        assert_eq!(delay("99999999999999999999999", now), Some(LONGEST_DELAY));
        assert_eq!(delay("86400", now), Some(LONGEST_DELAY));
        assert_eq!((delay("soon", now), delay("", now), delay("-1", now)), (None, None, None));
    }

    #[test]
    fn a_url_is_shown_without_user_and_query() {
        for (url, shown) in [
            ("https://user:pa/ss@a.example/hook?token=t", "https://a.example/hook"),
            ("ftp://a.example", "ftp://a.example"),
            ("user:secret@a.example", "a.example"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
