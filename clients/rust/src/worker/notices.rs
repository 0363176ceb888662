//! Listens to what the server sends to consumers: that a message in flight was taken from its consumer, and why.
//!
//! Each pool has one connection for this. What it misses, for example while it reconnects, is found when the lease is to be
//! extended.

use super::event::Event;
use super::lease::{Lease, Loss};
use super::pool::{Pool, Source};
use crate::connect::{lock, Backoff};
use crate::Error;
use futures_util::StreamExt;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// Listens until the worker stops, or the server does not let the user listen.
pub(super) async fn run(pool: Arc<Pool>) {
    let listening = async {
        let mut backoff = Backoff::new();
        while !matches!(listen(&pool, &mut backoff).await, Err(Error::NoPermission(_))) {
            tokio::time::sleep(backoff.next()).await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = pool.stop.asked() => {}
    }
}

async fn listen(pool: &Pool, backoff: &mut Backoff) -> Result<(), Error> {
    let Some(first) = pool.sources.first() else { return Ok(()) };
    let prefix = format!("__dq@{}__:", pool.core.options.target.database).into_bytes();
    let channels: Vec<Vec<u8>> = pool.sources.iter().map(|source| [&prefix[..], &source.key].concat()).collect();
    // The nodes of a cluster pass messages on to each other.
    let subscribed = pool.core.subscribe(&first.key, &channels).await;
    pool.has_tried_to_listen.store(true, Ordering::Relaxed);
    let mut messages = subscribed?.into_on_message();
    backoff.reset();
    while let Some(message) = messages.next().await {
        let channel: Vec<u8> = message.get_channel().map_err(|error| Error::Protocol(error.to_string()))?;
        if let Some(source) =
            pool.sources.iter().find(|source| channel.strip_prefix(&prefix[..]) == Some(&source.key[..]))
        {
            pool.note(source, &String::from_utf8_lossy(message.get_payload_bytes()));
        }
    }
    Ok(())
}

impl Pool {
    /// Takes note of a notice: a reason and a receipt, or a reason alone if many messages of the queue were taken.
    fn note(&self, source: &Arc<Source>, notice: &str) {
        let (reason, receipt) = notice.split_once(' ').map_or((notice, None), |(reason, of)| (reason, Some(of)));
        let loss = reason.parse().unwrap_or(Loss::Ended);
        let of_queue = |lease: &&Arc<Lease>| Arc::ptr_eq(&lease.source, source);
        let Some(receipt) = receipt else {
            let now = Instant::now();
            lock(&self.leases).values().filter(of_queue).for_each(|lease| lease.suspect(loss, now));
            return self.changed.notify_one();
        };
        let lease = {
            let mut leases = lock(&self.leases);
            let found = leases.values().filter(of_queue).find(|lease| lease.receipt.as_ref() == receipt.as_bytes());
            let number = found.map(|lease| lease.number);
            number.and_then(|number| leases.remove(&number))
        };
        if let Some(lease) = lease {
            lease.lose(Some(loss));
            self.report_loss(&lease);
        }
    }

    /// Reports that a message was lost while it was handled.
    pub(super) fn report_loss(&self, lease: &Lease) {
        lock(&lease.source.counters).leases_lost += 1;
        let reason = lease.loss().unwrap_or(Loss::Ended);
        self.report(&Event::LeaseLost { queue: &lease.source.name, id: &lease.id, receipt: &lease.receipt, reason });
    }
}
