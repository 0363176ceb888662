//! Listens to what the server sends to consumers: that a message in flight was taken from its consumer, and why.
//!
//! Each pool has one connection for this. What it misses, for example while it reconnects, is found when the lease is
//! to be extended.

use super::lease::Lease;
use super::loss::Loss;
use super::running_pool::RunningPool;
use super::source::Source;
use crate::connect::Backoff;
use crate::error::Error;
use crate::sync::lock;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// Listens until the worker stops, or the server does not let the user listen.
pub(super) async fn run(pool: Arc<RunningPool>) {
    let listening = async {
        let mut backoff = Backoff::new();
        // The nodes of a cluster pass messages on to each other. If one of them hangs, another one is listened to.
        for source in pool.sources.iter().cycle() {
            if matches!(listen(&pool, source, &mut backoff).await, Error::NoPermission(_)) {
                return;
            }
            tokio::time::sleep(backoff.next()).await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = pool.stop.asked() => {}
    }
}

/// Listens to the server of a queue. Returns why that has ended.
async fn listen(pool: &RunningPool, at: &Source, backoff: &mut Backoff) -> Error {
    let prefix = format!("__dq@{}__:", pool.core.options().target.database).into_bytes();
    let channels: Vec<Vec<u8>> =
        pool.sources.iter().map(|source| [&prefix[..], source.name.as_bytes()].concat()).collect();
    let retired = pool.core.retired();
    let subscribed = pool.core.subscribe(at.name.as_bytes(), &channels).await;
    pool.has_tried_to_listen.store(true, Ordering::Relaxed);
    let mut messages = match subscribed {
        Ok(messages) => messages,
        Err(error) => return error,
    };
    backoff.reset();
    loop {
        let message = tokio::select! {
            message = messages.next() => message,
            () = retired.cancelled() => return Error::Unavailable("another server is the master now".to_owned()),
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => return error,
        };
        let channel: Vec<u8> = message.get_channel().unwrap_or_default();
        if let Some(source) =
            pool.sources.iter().find(|source| channel.strip_prefix(&prefix[..]) == Some(source.name.as_bytes()))
        {
            note(pool, source, &String::from_utf8_lossy(message.get_payload_bytes()));
        }
    }
}

/// Takes note of a notice: a reason and a receipt, or a reason alone if many messages of the queue were taken.
fn note(pool: &RunningPool, source: &Arc<Source>, notice: &str) {
    let (reason, receipt) = notice.split_once(' ').map_or((notice, None), |(reason, of)| (reason, Some(of)));
    let loss = reason.parse().unwrap_or(Loss::Ended);
    let Some(receipt) = receipt else {
        let now = Instant::now();
        lock(&source.leases).values().for_each(|lease| lease.suspect(loss, now));
        return source.wake_before(now);
    };
    let lease = {
        let mut leases = lock(&source.leases);
        let is_named = |lease: &&Arc<Lease>| lease.receipt.as_ref() == receipt.as_bytes();
        let number = leases.values().find(is_named).map(|lease| lease.number);
        number.and_then(|number| leases.remove(&number))
    };
    if let Some(lease) = lease {
        lease.lose(Some(loss));
        pool.report_loss(source, &lease);
    }
}
