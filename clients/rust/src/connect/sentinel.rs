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
        let asking = async {
            let link = Link::open(sentinel, options, credentials).await?;
            let command = redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(master).clone();
            let unknown = || Error::Unavailable(format!("the sentinel {sentinel} does not know a master {master}"));
            <Option<_>>::read(link.ask(&command, options.connect_timeout).await?)?.ok_or_else(unknown)
        };
        match asking.await {
            Ok((host, port)) => return Ok(Address::Tcp(host, port)),
            Err(error) => last = error,
        }
    }
    Err(last)
}
