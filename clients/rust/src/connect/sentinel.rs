//! Asks sentinels which server is the master, and hears from them that it is another one.

use super::backoff::Backoff;
use super::link::{Link, Subscription};
use super::options::Options;
use super::url::{Address, Credentials, Topology};
use crate::connection_error::{ConnectionError, ConnectionErrorKind};
use crate::error::Error;
use crate::reply::Field;
use futures_util::future::join_all;
use std::convert::Infallible;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The channel on which a sentinel announces a new master.
const SWITCH: &[u8] = b"+switch-master";

/// Asks one sentinel after the other, and returns the address of the first one that knows the master.
pub(super) async fn find_master(
    sentinels: &[Address],
    master: &str,
    credentials: &Credentials,
    options: &Options,
) -> Result<Address, Error> {
    let mut last = Error::Connect(ConnectionError::new(ConnectionErrorKind::Other, master, "no sentinel is known"));
    for sentinel in sentinels {
        match ask(sentinel, master, credentials, options).await {
            Ok(found) => return Ok(found),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Asks one sentinel for the address of the master.
async fn ask(sentinel: &Address, master: &str, credentials: &Credentials, options: &Options) -> Result<Address, Error> {
    let link = Link::open(sentinel, options, credentials, CancellationToken::new()).await?;
    let command = redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master).clone();
    let unknown = || Error::Unavailable(format!("the sentinel {sentinel} does not know a master {master}"));
    let reply = link.ask(&command, options.connect_timeout).await?;
    let (host, port) = <Option<_>>::read(reply)?.ok_or_else(unknown)?;
    Ok(Address::Tcp(host, port))
}

/// Listens to all sentinels as long as the client is there. In a failover that someone asked for, the former master
/// accepts writes for seconds until it becomes a replica, and they are lost.
pub(super) async fn follow(options: Options, alive: CancellationToken, switch: impl Fn(Address)) {
    let Topology::Sentinel { sentinels, master, credentials } = &options.target.topology else { return };
    let listening = sentinels.iter().map(|sentinel| async {
        let mut backoff = Backoff::new();
        loop {
            let _ = listen(sentinel, (master, credentials), &options, &mut backoff, &switch).await;
            sleep(backoff.next()).await;
        }
    });
    tokio::select! {
        _ = join_all(listening) => {}
        () = alive.cancelled() => {}
    }
}

/// Listens to one sentinel until the connection is lost, and calls `switch` with each new master.
async fn listen(
    sentinel: &Address,
    (master, credentials): (&str, &Credentials),
    options: &Options,
    backoff: &mut Backoff,
    switch: &impl Fn(Address),
) -> Result<Infallible, Error> {
    let mut heard = Subscription::open(sentinel, options, credentials, &[SWITCH.to_vec()]).await?;
    backoff.reset();
    loop {
        let message = heard.next().await?;
        let text = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
        // The name of the master, its former address and its new one.
        let [name, _, _, host, port] = text.split(' ').collect::<Vec<_>>()[..] else { continue };
        let Some(port) = port.parse().ok().filter(|_| name == master) else { continue };
        switch(Address::Tcp(host.to_owned(), port));
    }
}
