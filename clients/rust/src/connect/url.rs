//! URLs of servers, as `redis-cli -u` takes them, and their extensions for Sentinel, clusters and unix sockets.

use crate::Error;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::PathBuf;

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_SENTINEL_PORT: u16 = 26379;

/// The address of one server.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Address {
    /// A host name or IP address, and a port.
    Tcp(String, u16),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Address {
    /// Reads `host:port`, `[v6]:port` or `host`.
    pub(crate) fn parse(text: &str, default_port: u16) -> Option<Address> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        } else {
            match text.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        let port = port.map_or(Some(default_port), |port| port.parse().ok())?;
        Some(Address::Tcp(if host.is_empty() { "127.0.0.1" } else { host }.to_owned(), port))
    }
}

/// The user name and the password of the client.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub user: Option<String>,
    pub password: Option<String>,
}

impl fmt::Debug for Credentials {
    /// Does not show the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Which servers there are, and how the one for a key is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Topology {
    Single(Address),
    /// The master of this name, which these sentinels know.
    Sentinel {
        sentinels: Vec<Address>,
        master: String,
        credentials: Credentials,
    },
    /// A cluster, which one of these nodes describes.
    Cluster(Vec<Address>),
}

/// The contents of a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub topology: Topology,
    pub credentials: Credentials,
    pub database: u32,
    pub tls: bool,
    pub insecure: bool,
    pub resp3: bool,
}

/// Parses a URL of one of these forms:
///
/// ```text
/// redis[s]://[[user]:password@]host[:port][/database][?protocol=2|3][#insecure]
/// redis[s]+cluster://[[user]:password@]host[:port][,host[:port]…]
/// redis[s]+sentinel://[[user]:password@]host[:port][,host[:port]…]/master[/database][?sentinel_user=…&sentinel_password=…]
/// unix://[[user]:password@]/path[?db=…&user=…&pass=…]
/// ```
///
/// `valkey` stands for `redis` as well. User and password are percent-encoded.
pub(crate) fn parse(url: &str) -> Result<Target, Error> {
    let fail = |what: &str| Error::Config(format!("{what} in the URL {}", without_password(url)));
    let (scheme, rest) = url.split_once("://").ok_or_else(|| fail("no scheme, such as redis://,"))?;
    let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, fragment)| (rest, Some(fragment)));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    let (credentials, hosts) = match authority.rsplit_once('@') {
        Some((who, hosts)) => (credentials(who).ok_or_else(|| fail("bytes that are not UTF-8"))?, hosts),
        None => (Credentials::default(), authority),
    };
    let scheme = scheme.replace("valkey", "redis");
    let (base, kind) = scheme.split_once('+').unwrap_or((&scheme, ""));
    let mut target = Target {
        topology: Topology::Single(Address::Tcp(String::new(), 0)),
        credentials,
        database: 0,
        tls: base == "rediss",
        insecure: fragment == Some("insecure"),
        resp3: true,
    };
    let mut sentinel = Credentials::default();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let value = decode(value).ok_or_else(|| fail("bytes that are not UTF-8"))?;
        match name {
            "protocol" => target.resp3 = protocol(&value).ok_or_else(|| fail("a protocol that is not 2 or 3"))?,
            "db" => target.database = value.parse().map_err(|_| fail("an invalid database number"))?,
            "user" => target.credentials.user = Some(value),
            "pass" | "password" => target.credentials.password = Some(value),
            "sentinel_user" => sentinel.user = Some(value),
            "sentinel_password" => sentinel.password = Some(value),
            _ => return Err(fail(&format!("unknown option '{name}'"))),
        }
    }
    let addresses = |port| {
        let parsed = hosts.split(',').map(|host| Address::parse(host, port)).collect::<Option<Vec<_>>>();
        parsed.ok_or_else(|| fail("an invalid host or port"))
    };
    let path = path.trim_end_matches('/');
    let mut database = path;
    target.topology = match (base, kind) {
        ("redis" | "rediss", "") => match addresses(DEFAULT_PORT)?.as_slice() {
            [one] => Topology::Single(one.clone()),
            _ => return Err(fail("several hosts, which need redis+cluster:// or redis+sentinel://,")),
        },
        ("redis" | "rediss", "cluster") => Topology::Cluster(addresses(DEFAULT_PORT)?),
        ("redis" | "rediss", "sentinel") => {
            let (master, rest) = path.split_once('/').unwrap_or((path, ""));
            database = rest;
            let master = decode(master).filter(|master| !master.is_empty());
            let master = master.ok_or_else(|| fail("no name of a master, as in redis+sentinel://host/NAME,"))?;
            Topology::Sentinel { sentinels: addresses(DEFAULT_SENTINEL_PORT)?, master, credentials: sentinel }
        }
        ("unix", "") | ("redis", "unix") => {
            database = "";
            let path = decode(path).filter(|path| !path.is_empty()).ok_or_else(|| fail("no path"))?;
            Topology::Single(Address::Unix(PathBuf::from(format!("/{path}"))))
        }
        _ => return Err(fail("an unknown scheme")),
    };
    if !database.is_empty() {
        target.database = database.parse().map_err(|_| fail("an invalid database number"))?;
    }
    if fragment.is_some_and(|fragment| fragment != "insecure") {
        return Err(fail("a fragment that is not #insecure"));
    }
    Ok(target)
}

fn protocol(value: &str) -> Option<bool> {
    match value {
        "2" | "resp2" => Some(false),
        "3" | "resp3" => Some(true),
        _ => None,
    }
}

/// `user:password`, `:password`, or, as redis-cli has it, the password alone.
fn credentials(text: &str) -> Option<Credentials> {
    let (user, password) = text.split_once(':').unwrap_or(("", text));
    let user = decode(user)?;
    Some(Credentials { user: Some(user).filter(|user| !user.is_empty()), password: Some(decode(password)?) })
}

fn decode(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// The URL without its password, for messages.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let end = rest.find('/').unwrap_or(rest.len());
    let start = rest.get(..end).and_then(|authority| authority.rfind('@')).map_or(0, |at| at + 1);
    format!("{scheme}://{}", rest.get(start..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{parse, Address, Topology};

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp(host.to_owned(), port)
    }

    #[test]
    fn all_kinds_of_urls_are_understood() {
        let single = |url: &str| match parse(url).unwrap().topology {
            Topology::Single(address) => address,
            other => panic!("{other:?}"),
        };
        assert_eq!(single("redis://"), tcp("127.0.0.1", 6379));
        assert_eq!(single("valkey://db.example:7000/3"), tcp("db.example", 7000));
        assert_eq!(single("rediss://[::1]:1"), tcp("::1", 1));
        assert_eq!(single("unix:///run/redis.sock?db=2"), Address::Unix("/run/redis.sock".into()));
        let target = parse("rediss://al%40ice:s%3Acret@h/5?protocol=2#insecure").unwrap();
        assert_eq!(target.credentials.user.as_deref(), Some("al@ice"));
        assert_eq!(target.credentials.password.as_deref(), Some("s:cret"));
        assert_eq!((target.database, target.tls, target.insecure, target.resp3), (5, true, true, false));
        let target = parse("redis://:only@h").unwrap();
        assert_eq!((target.credentials.user, target.credentials.password.as_deref()), (None, Some("only")));
        let cluster = parse("redis+cluster://a,b:7001").unwrap().topology;
        assert_eq!(cluster, Topology::Cluster(vec![tcp("a", 6379), tcp("b", 7001)]));
        let target = parse("redis+sentinel://:pw@a,b:7001/mymaster/2?sentinel_password=s").unwrap();
        let Topology::Sentinel { sentinels, master, credentials } = target.topology else { panic!() };
        assert_eq!((sentinels, master.as_str()), (vec![tcp("a", 26379), tcp("b", 7001)], "mymaster"));
        assert_eq!((credentials.password.as_deref(), target.database), (Some("s"), 2));
    }

    #[test]
    fn an_error_names_the_url_without_the_password() {
        for url in
            ["redis://u:secret@h:x", "http://u:secret@h", "redis://u:secret@h/x?pass=secret", "redis://:secret@a,b"]
        {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret") && error.contains("://"), "{error}");
        }
    }
}
