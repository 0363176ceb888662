//! Which nodes a cluster has, and which of them has which slots.

use super::routing::Slots;
use super::servers::Servers;
use super::url::{Address, Topology};
use crate::connection_error::{ConnectionError, ConnectionErrorKind};
use crate::error::Error;
use crate::sync::lock;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::time::Duration;
use tokio::time::timeout;

/// How long a node of a cluster may take to describe it before another one is asked as well.
const SILENT_AFTER: Duration = Duration::from_millis(200);

/// Reads the layout of a cluster, which a node is asked for if it is not known.
pub(super) async fn with_slots<T>(servers: &Servers, read: impl FnOnce(&Slots) -> T) -> Result<T, Error> {
    if let Some(slots) = lock(&servers.slots).as_ref() {
        return Ok(read(slots));
    }
    // Without the lock, so that a node that does not answer delays only the callers that ask.
    let slots = ask(servers).await?;
    let found = read(&slots);
    *lock(&servers.slots) = Some(slots);
    Ok(found)
}

/// Asks the known nodes which node has which slots, one after the other, and the next one as well if one is silent.
async fn ask(servers: &Servers) -> Result<Slots, Error> {
    let Topology::Cluster(seeds) = &servers.options.target.topology else { return Ok(Slots::default()) };
    let mut nodes = servers.connected();
    nodes.extend(seeds.iter().filter(|seed| !nodes.contains(seed)).cloned().collect::<Vec<_>>());
    let (mut nodes, mut asked) = (nodes.iter(), FuturesUnordered::new());
    let mut last = Error::Connect(ConnectionError::new(ConnectionErrorKind::Other, "the cluster", "no node is known"));
    loop {
        asked.extend(nodes.next().map(|node| ask_node(servers, node)));
        let answer = timeout(SILENT_AFTER, asked.next());
        // The last ones get all the time that they need.
        let answer = if nodes.len() > 0 { answer.await.ok() } else { Some(asked.next().await) };
        match answer {
            Some(Some(Ok(slots))) => return Ok(slots),
            Some(Some(Err(error))) => last = error,
            Some(None) => return Err(last),
            None => {}
        }
    }
}

async fn ask_node(servers: &Servers, node: &Address) -> Result<Slots, Error> {
    let reply = servers.call(node, redis::cmd("CLUSTER").arg("SLOTS")).await?;
    let slots = Slots::read(reply, node)?;
    if slots.nodes().is_empty() {
        return Err(Error::Unavailable(format!("CLUSTERDOWN {node} knows no node with slots")));
    }
    Ok(slots)
}
