//! URLs of servers, as `redis-cli -u` takes them, and their extensions for Sentinel, clusters and unix sockets.

use crate::error::Error;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::collections::HashMap;
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

/// The files of certificates that a URL names: `cacert`, `cert` and `key`.
pub(crate) type Files = [Option<PathBuf>; 3];

const OPTIONS: [&str; 10] =
    ["protocol", "db", "user", "pass", "password", "cacert", "cert", "key", "sentinel_user", "sentinel_password"];

pub(crate) fn parse(url: &str) -> Result<(Target, Files), Error> {
    // Nothing of the URL is repeated, because any part of a wrong one may belong to a password.
    let fail = |what: &str| {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let has_part_of_password = rest.find(['/', '?', '#']).is_some_and(|end| rest.rfind('@') > Some(end));
        Error::Config(match has_part_of_password && scheme != "unix" {
            true => {
                "the URL cannot be understood: write / as %2F, ? as %3F, # as %23 and @ as %40 in its user and password"
                    .to_owned()
            }
            false => format!("{what} in the URL"),
        })
    };
    let text = |text| {
        let decoded = percent_decode_str(text).decode_utf8().map(Cow::into_owned);
        decoded.map_err(|_| fail("bytes that are not UTF-8"))
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(|| fail("no scheme, such as redis://,"))?;
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (credentials, hosts) = match authority.rsplit_once('@') {
        Some((who, hosts)) => {
            // `user:password`, `:password`, or, as redis-cli has it, the password alone.
            let (user, password) = who.split_once(':').unwrap_or(("", who));
            let user = Some(text(user)?).filter(|user| !user.is_empty());
            (Credentials { user, password: Some(text(password)?) }, hosts)
        }
        None => (Credentials::default(), authority),
    };
    let scheme = scheme.replace("valkey", "redis");
    let (base, kind) = scheme.split_once('+').unwrap_or((&scheme, ""));
    let mut options = HashMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| fail("an option without a value"))?;
        if !OPTIONS.contains(&name) {
            // It may be the rest of a password with an `&`.
            let is_secret = query.contains("pass");
            let known = || format!("an option that is not {}", OPTIONS.join(", "));
            return Err(fail(&if is_secret { known() } else { format!("unknown option '{name}'") }));
        }
        options.insert(name, text(value)?);
    }
    let mut option = |name| options.remove(name);
    let resp3 = match option("protocol").as_deref() {
        None | Some("3" | "resp3") => true,
        Some("2" | "resp2") => false,
        Some(_) => return Err(fail("a protocol that is not 2 or 3")),
    };
    let password = option("pass").or(option("password")).or(credentials.password);
    let credentials = Credentials { user: option("user").or(credentials.user), password };
    let sentinel = Credentials { user: option("sentinel_user"), password: option("sentinel_password") };
    let files = ["cacert", "cert", "key"].map(|name| option(name).map(PathBuf::from));
    let addresses = |port| {
        let parsed = hosts.split(',').map(|host| Address::parse(host, port)).collect::<Option<Vec<_>>>();
        parsed.ok_or_else(|| fail("an invalid host or port"))
    };
    if sentinel != Credentials::default() && kind != "sentinel" {
        return Err(fail("sentinel_user or sentinel_password, which need redis+sentinel://,"));
    }
    let path = path.trim_end_matches('/');
    let mut database = path;
    let topology = match (base, kind) {
        ("redis" | "rediss", "") => match addresses(DEFAULT_PORT)?.as_slice() {
            [one] => Topology::Single(one.clone()),
            _ => return Err(fail("several hosts, which need redis+cluster:// or redis+sentinel://,")),
        },
        ("redis" | "rediss", "cluster") => Topology::Cluster(addresses(DEFAULT_PORT)?),
        ("redis" | "rediss", "sentinel") => {
            let (master, rest) = path.split_once('/').unwrap_or((path, ""));
            database = rest;
            if master.is_empty() {
                return Err(fail("no name of a master, as in redis+sentinel://host/NAME,"));
            }
            let (sentinels, master) = (addresses(DEFAULT_SENTINEL_PORT)?, text(master)?);
            Topology::Sentinel { sentinels, master, credentials: sentinel }
        }
        ("unix", "") | ("redis", "unix") if !path.is_empty() => {
            database = "";
            Topology::Single(Address::Unix(PathBuf::from(format!("/{}", text(path)?))))
        }
        _ => return Err(fail("an unknown scheme, or a socket without a path,")),
    };
    let database = match (database, option("db").as_deref()) {
        ("", None) => 0,
        (number, None) | ("", Some(number)) => number.parse().map_err(|_| fail("an invalid database number"))?,
        _ => return Err(fail("two numbers of databases")),
    };
    let (tls, insecure) = (base == "rediss", fragment == "insecure");
    if !(fragment.is_empty() || tls && insecure) {
        return Err(fail("a fragment that is not #insecure, which needs rediss://,"));
    }
    Ok((Target { topology, credentials, database, tls, insecure, resp3 }, files))
}

#[cfg(test)]
mod tests {
    use super::{parse, Address, Topology};

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp(host.to_owned(), port)
    }

    #[test]
    fn all_kinds_of_urls_are_understood() {
        let target = |url: &str| parse(url).unwrap().0;
        let single = |url: &str| match target(url).topology {
            Topology::Single(address) => address,
            other => panic!("{other:?}"),
        };
        assert_eq!(single("redis://"), tcp("127.0.0.1", 6379));
        assert_eq!(single("valkey://db.example:7000/3"), tcp("db.example", 7000));
        assert_eq!(single("rediss://[::1]:1"), tcp("::1", 1));
        assert_eq!(single("unix:///run/redis.sock?db=2"), Address::Unix("/run/redis.sock".into()));
        let read = target("rediss://al%40ice:s%3Acret@h/5?protocol=2#insecure");
        assert_eq!(read.credentials.user.as_deref(), Some("al@ice"));
        assert_eq!(read.credentials.password.as_deref(), Some("s:cret"));
        assert_eq!((read.database, read.tls, read.insecure, read.resp3), (5, true, true, false));
        let read = target("redis://:only@h");
        assert_eq!((read.credentials.user, read.credentials.password.as_deref()), (None, Some("only")));
        let cluster = target("redis+cluster://a,b:7001").topology;
        assert_eq!(cluster, Topology::Cluster(vec![tcp("a", 6379), tcp("b", 7001)]));
        let read = target("redis+sentinel://:pw@a,b:7001/mymaster/2?sentinel_password=s");
        let Topology::Sentinel { sentinels, master, credentials } = read.topology else { panic!() };
        assert_eq!((sentinels, master.as_str()), (vec![tcp("a", 26379), tcp("b", 7001)], "mymaster"));
        assert_eq!((credentials.password.as_deref(), read.database), (Some("s"), 2));
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        for (url, named) in [
            ("redis://h/abc", "database"),
            ("redis://h/-1", "database"),
            ("redis://h?db=", "database"),
            ("redis://h/1?db=2", "two numbers of databases"),
            ("redis://h#insecure", "rediss://"),
            ("redis://h?sentinel_password=s", "redis+sentinel://"),
            ("redis://h?family=6", "family"),
            ("redis://h?pass=ab&cd=ef", "an option that is not protocol"),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(named), "{url}: {error}");
        }
    }

    #[test]
    fn certificates_are_named_in_the_url() {
        let (target, files) = parse("rediss://h?cacert=/etc/a%20b.pem&cert=c.pem&key=k.pem").unwrap();
        assert!(target.tls);
        let path = |file: Option<std::path::PathBuf>| file.unwrap().to_string_lossy().into_owned();
        assert_eq!(files.map(path), ["/etc/a b.pem", "c.pem", "k.pem"]);
    }

    #[test]
    fn what_must_be_percent_encoded_is_said_and_never_printed() {
        for url in [
            "redis://user:pa#secret@h",
            "redis://user:pa/secret@h",
            "redis://user:secret/pa@h:6379/0",
            "redis://secret?x=pa@h",
            "redis://secret?pa@h",
            "redis://:12/secret@h",
            "redis://user:secret?db=1@h",
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret") && !error.contains("pa#") && error.contains("%23"), "{error}");
        }
        for url in ["redis://:secret", "redis://user:secret", "redis+cluster://a:1,b:secret"] {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_error_does_not_repeat_the_password() {
        for url in
            ["redis://u:secret@h:x", "http://u:secret@h", "redis://u:secret@h/x?pass=secret", "redis://:secret@a,b"]
        {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret") && !error.contains("u:"), "{error}");
        }
    }
}
