//! Asks sentinels which server is the master, and hears from them that it is another one.

use super::backoff::Backoff;
use super::core::Core;
use super::link::{Link, Subscription};
use super::options::Options;
use super::url::{Address, Credentials, Topology};
use crate::reply::Field;
use crate::Error;
use futures_util::future::join_all;
use std::sync::Weak;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The channel on which a sentinel tells of a new master.
const SWITCH: &[u8] = b"+switch-master";

/// Asks one sentinel after the other, and returns the address of the first one that knows the master.
pub(super) async fn find_master(
    sentinels: &[Address],
    master: &str,
    credentials: &Credentials,
    options: &Options,
) -> Result<Address, Error> {
    let mut last = Error::Connect(format!("there is no sentinel for {master}"));
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

/// Listens to all sentinels as long as the client is there. In a failover that someone asked for, the former master accepts
/// writes for seconds until it becomes a replica, and they are lost.
pub(super) async fn follow(core: Weak<Core>, options: Options, alive: CancellationToken) {
    let Topology::Sentinel { sentinels, master, credentials } = &options.target.topology else { return };
    let listening = sentinels.iter().map(|sentinel| async {
        let mut backoff = Backoff::new();
        loop {
            if listen(&core, sentinel, (master, credentials), &options, &mut backoff).await.is_ok() {
                return;
            }
            sleep(backoff.next()).await;
        }
    });
    tokio::select! {
        _ = join_all(listening) => {}
        () = alive.cancelled() => {}
    }
}

/// Listens to one sentinel until the connection is lost, or the client is gone.
async fn listen(
    core: &Weak<Core>,
    sentinel: &Address,
    (master, credentials): (&str, &Credentials),
    options: &Options,
    backoff: &mut Backoff,
) -> Result<(), Error> {
    let mut heard = Subscription::open(sentinel, options, credentials, &[SWITCH.to_vec()]).await?;
    backoff.reset();
    loop {
        let message = heard.next().await?;
        let text = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
        // The name of the master, its former address and its new one.
        let [name, _, _, host, port] = text.split(' ').collect::<Vec<_>>()[..] else { continue };
        let Some(port) = port.parse().ok().filter(|_| name == master) else { continue };
        let Some(core) = core.upgrade() else { return Ok(()) };
        core.switch(Address::Tcp(host.to_owned(), port));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use redis::cmd;
    use std::future::Future;
    use std::sync::Arc;

    /// Runs a test with a client that was told of a second master after the first one. No sentinel can be asked.
    fn after_a_switch<F: Future<Output = ()>>(test: impl FnOnce(Arc<Core>, Address, Address) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let core = Core::new(Options::from_url("redis+sentinel://127.0.0.1:1/jobs").unwrap());
            let master = |port| Address::Tcp("127.0.0.1".to_owned(), port);
            let (former, present) = (master(2), master(3));
            core.switch(former.clone());
            core.switch(present.clone());
            test(core, former, present).await;
        });
    }

    #[test]
    fn the_end_of_a_former_master_keeps_the_present_one() {
        after_a_switch(|core, former, present| async move {
            core.note(&former, &Err(Error::Lost(former.to_string())));
            assert_eq!(core.route(None).await.unwrap(), present);
            core.note(&present, &Err(Error::Lost(present.to_string())));
            assert!(core.route(None).await.is_err());
        });
    }

    #[test]
    fn no_connection_is_opened_to_a_former_master() {
        after_a_switch(|core, former, present| async move {
            let error = core.call_on(&former, &cmd("PING")).await.unwrap_err();
            assert!(matches!(&error, Error::Connect(text) if text.contains("another server is the master")), "{error}");
            assert_eq!(core.route(None).await.unwrap(), present);
        });
    }
}
