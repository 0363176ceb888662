//! Asks sentinels which server is the master.

use super::link::Link;
use super::options::Options;
use super::url::{Address, Credentials};
use crate::reply::Field;
use crate::Error;

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
            Ok(address) => return Ok(address),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn ask(sentinel: &Address, master: &str, credentials: &Credentials, options: &Options) -> Result<Address, Error> {
    let link = Link::open(sentinel, options, credentials).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
    let address = link.ask(&command, options.connect_timeout).await?;
    let unknown = || Error::Unavailable(format!("the sentinel {sentinel} does not know a master {master}"));
    let (host, port) = <Option<_>>::read(address)?.ok_or_else(unknown)?;
    Ok(Address::Tcp(host, port))
}
