//! Which nodes a cluster has, and which of them has which slots.

use super::core::{lock, Core};
use super::routing::Slots;
use super::url::{Address, Topology};
use crate::Error;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::time::Duration;
use tokio::time::timeout;

/// How long a node of a cluster may take to describe it before another one is asked as well.
const SILENT_AFTER: Duration = Duration::from_millis(200);

impl Core {
    /// The servers that have keys.
    pub async fn servers(&self) -> Result<Vec<Address>, Error> {
        match &self.options.target.topology {
            Topology::Cluster(_) => self.with_slots(Slots::nodes).await,
            Topology::Single(_) | Topology::Sentinel { .. } => Ok(vec![self.route(None).await?]),
        }
    }

    pub(super) async fn with_slots<T>(&self, read: impl FnOnce(&Slots) -> T) -> Result<T, Error> {
        if let Some(slots) = lock(&self.slots).as_ref() {
            return Ok(read(slots));
        }
        // Without the lock, so that a node that does not answer delays only the callers that ask.
        let slots = self.ask_slots().await?;
        let found = read(&slots);
        *lock(&self.slots) = Some(slots);
        Ok(found)
    }

    /// Asks the known nodes which node has which slots, one after the other, and the next one as well if one is silent.
    async fn ask_slots(&self) -> Result<Slots, Error> {
        let Topology::Cluster(seeds) = &self.options.target.topology else { return Ok(Slots::default()) };
        let mut nodes: Vec<Address> = lock(&self.nodes).keys().cloned().collect();
        nodes.extend(seeds.iter().filter(|seed| !nodes.contains(seed)).cloned().collect::<Vec<_>>());
        let (mut nodes, mut asked) = (nodes.iter(), FuturesUnordered::new());
        let mut last = Error::Connect("no node of the cluster is known".to_owned());
        loop {
            asked.extend(nodes.next().map(|node| self.ask_slots_of(node)));
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

    async fn ask_slots_of(&self, node: &Address) -> Result<Slots, Error> {
        let reply = self.call_on(node, redis::cmd("CLUSTER").arg("SLOTS")).await?;
        let slots = Slots::read(reply, node)?;
        if slots.nodes().is_empty() {
            return Err(Error::Unavailable(format!("CLUSTERDOWN {node} knows no node with slots")));
        }
        Ok(slots)
    }
}
