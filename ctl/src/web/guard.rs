//! Which requests are answered.
//!
//! A browser sends requests on behalf of any page that its user visits. So a page from elsewhere must neither read nor
//! change anything here:
//!
//! - Host names that are not known are refused, because their owner may have pointed them here (DNS rebinding).
//! - `Authorization`, `X-DQ-Token` and `X-DQ` are headers that a page from elsewhere cannot send unless this server
//!   allows it, which it never does.
//! - `Origin` and `Sec-Fetch-Site`, in which browsers name the page, must be that of this server.

use crate::cli::WebArgs;
use crate::http::{Request, Response};
use crate::server::Failure;
use std::hint::black_box;
use std::net::{IpAddr, ToSocketAddrs};

/// The rules by which requests are answered.
pub struct Guard {
    /// Host names in lower case, without ports.
    hosts: Vec<String>,
    /// The names of `--host`: a proxy may serve them at any port, with or without TLS.
    proxied: Vec<String>,
    token: Option<String>,
    allow_writes: bool,
}

impl Guard {
    /// Fails if anybody beyond this machine could use the page without a token.
    pub fn new(args: &WebArgs) -> Result<Guard, Failure> {
        if args.token.as_deref() == Some("") {
            return Err(Failure::usage("the token of --token is empty: choose a long random one"));
        }
        let addresses = args.listen.to_socket_addrs().map_err(|error| {
            Failure::failed(format!("cannot listen on {}: {error}; name another one with --listen", args.listen))
        })?;
        let mut hosts = vec!["localhost".to_owned()];
        for address in addresses {
            if args.token.is_none() && !is_loopback(address.ip()) {
                return Err(Failure::usage(format!(
                    "{} can be reached from other machines: give a token with --token, or listen on 127.0.0.1",
                    args.listen
                )));
            }
            hosts.push(address.ip().to_string());
        }
        hosts.extend(host_of(&args.listen).map(|host| host.to_ascii_lowercase()));
        let proxied: Vec<String> = args.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        hosts.extend(proxied.iter().cloned());
        Ok(Guard { hosts, proxied, token: args.token.clone(), allow_writes: args.allow_writes })
    }

    /// Whether the request names a host that is known. The error is what to answer.
    pub fn host(&self, request: &Request) -> Result<(), Response> {
        let host = request.header("host").and_then(host_of);
        let host = host.ok_or_else(|| Response::refusal(400, "the request needs one header Host"))?;
        let is_known = self.hosts.iter().any(|known| host.eq_ignore_ascii_case(known)) || is_address_of(host, request);
        if is_known {
            return Ok(());
        }
        Err(Response::refusal(421, "this host name is not known: if it is yours, name it with --host"))
    }

    /// Whether a request to the API is answered. The error is what to answer.
    pub fn api(&self, request: &Request) -> Result<(), Response> {
        if !self.is_from_here(request) {
            return Err(Response::refusal(403, "the request comes from a page of another origin"));
        }
        if !self.has_token(request) {
            let text = "the token is missing or wrong: send it as 'Authorization: Bearer TOKEN' or 'X-DQ-Token: TOKEN'";
            return Err(Response::refusal(401, text).with("WWW-Authenticate", "Bearer realm=\"dqctl web\""));
        }
        match request.method.as_str() {
            "GET" | "HEAD" => Ok(()),
            "POST" if request.header("x-dq") != Some("1") => {
                Err(Response::refusal(403, "a request that changes something needs the header 'X-DQ: 1'"))
            }
            "POST" if !self.allow_writes => {
                Err(Response::refusal(403, "read-only: start dqctl web with --allow-writes to change something"))
            }
            "POST" => Ok(()),
            _ => Err(Response::refusal(405, "only GET and POST").with("Allow", "GET, HEAD, POST")),
        }
    }

    /// Whether the page that sent the request, if a browser names it, is that of this server.
    fn is_from_here(&self, request: &Request) -> bool {
        let is_same_site = match request.header("sec-fetch-site") {
            Some(site) => matches!(site, "same-origin" | "none"),
            None => !request.has("sec-fetch-site"),
        };
        let is_same_origin = match request.header("origin") {
            Some(origin) => {
                let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
                authority.is_some_and(|authority| {
                    request.header("host").is_some_and(|host| authority.eq_ignore_ascii_case(host))
                        || host_of(authority)
                            .is_some_and(|host| self.proxied.iter().any(|known| host.eq_ignore_ascii_case(known)))
                })
            }
            None => !request.has("origin"),
        };
        is_same_site && is_same_origin
    }

    fn has_token(&self, request: &Request) -> bool {
        let Some(token) = &self.token else { return true };
        // A proxy may use the other header for itself.
        if let Some(sent) = request.header("x-dq-token") {
            return is_equal(sent.as_bytes(), token.as_bytes());
        }
        let sent = request.header("authorization").and_then(|value| value.split_once(' '));
        sent.is_some_and(|(scheme, sent)| {
            scheme.eq_ignore_ascii_case("bearer") && is_equal(sent.trim().as_bytes(), token.as_bytes())
        })
    }
}

/// Compares in a time that depends only on the lengths.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |differing, (one, other)| black_box(differing | (one ^ other)));
    one.len() == other.len() && differing == 0
}

/// The host of `host:port` or `host`; that of an IPv6 address without its brackets.
fn host_of(authority: &str) -> Option<&str> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            Some(host).filter(|_| port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => Some(host).filter(|_| is_port(port)),
            None => Some(authority),
        },
    };
    host.filter(|host| !host.is_empty())
}

/// Whether a host is the very address that the client reached. No name has to be resolved for it.
fn is_address_of(host: &str, request: &Request) -> bool {
    host.parse().is_ok_and(|address: IpAddr| {
        address.to_canonical() == request.local.ip().to_canonical() || is_loopback(address)
    })
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::{host_of, is_equal};

    #[test]
    fn hosts_are_read_with_and_without_ports() {
        assert_eq!(host_of("localhost:8480"), Some("localhost"));
        assert_eq!(host_of("localhost"), Some("localhost"));
        assert_eq!(host_of("[::1]:8480"), Some("::1"));
        assert_eq!(host_of("[::1]"), Some("::1"));
        for wrong in ["", ":8480", "[::1", "[::1]8480", "::1", "a:b", "localhost:80:80", "[]"] {
            assert_eq!(host_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tokens_are_equal_in_all_bytes() {
        assert!(is_equal(b"secret", b"secret") && is_equal(b"", b""));
        for wrong in [&b"secre"[..], b"secret2", b"Secret", b""] {
            assert!(!is_equal(wrong, b"secret"));
        }
    }
}
