//! Listens to what the server tells consumers: that a message in flight was taken from its consumer, and why.
//!
//! Each pool has one thread and one connection for this. What it misses, for example while it reconnects, is found when the
//! lease is to be extended.

use super::calm::block_child_signals;
use super::context::{Lease, Loss};
use super::event::Event;
use super::pool::{Pool, Source};
use crate::connect::{lock, Backoff};
use crate::Error;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Listens until the worker stops, or the server does not let the user listen.
pub(super) fn run(pool: &Pool) {
    block_child_signals();
    let mut backoff = Backoff::new();
    while !pool.stop.is_set() {
        let end = listen(pool, &mut backoff);
        pool.has_tried_to_listen.store(true, Ordering::Relaxed);
        if let Err(Error::NoPermission(_)) = end {
            break;
        }
        pool.stop.wait_for(backoff.next());
    }
    pool.listening.fetch_sub(1, Ordering::AcqRel);
}

fn listen(pool: &Pool, backoff: &mut Backoff) -> Result<(), Error> {
    let Some(first) = pool.sources.first() else { return Ok(()) };
    let prefix = format!("__dq@{}__:", pool.client.database()).into_bytes();
    let channels: Vec<Vec<u8>> = pool.sources.iter().map(|source| [&prefix[..], &source.key].concat()).collect();
    // The nodes of a cluster pass messages on to each other.
    let mut link = pool.client.link_for(&first.key, &pool.consumer)?;
    let told = |channel: &[u8], text: &[u8]| {
        let source = pool.sources.iter().position(|source| channel.strip_prefix(&prefix[..]) == Some(&source.key[..]));
        if let Some(number) = source {
            pool.heed(number, &String::from_utf8_lossy(text));
        }
    };
    link.listen(&channels, pool.block, told, || {
        backoff.reset();
        pool.has_tried_to_listen.store(true, Ordering::Relaxed);
        !pool.stop.is_set()
    })
}

impl Pool {
    /// Takes note of a notice: a reason and a receipt, or a reason alone if many messages of the queue were taken.
    fn heed(&self, number: usize, notice: &str) {
        let Some(source) = self.source(number) else { return };
        let (reason, receipt) = notice.split_once(' ').map_or((notice, None), |(reason, of)| (reason, Some(of)));
        let loss = Loss::from_reason(reason);
        let Some(receipt) = receipt else {
            let now = Instant::now();
            for lease in lock(&self.leases).values().filter(|lease| lease.source == number) {
                lease.suspect(loss, now);
            }
            return self.outcomes.nudge();
        };
        let lease = {
            let mut leases = lock(&self.leases);
            let found =
                leases.iter().find(|(_, lease)| lease.source == number && lease.receipt.as_ref() == receipt.as_bytes());
            let job = found.map(|(job, _)| *job);
            job.and_then(|job| leases.remove(&job))
        };
        if let Some(lease) = lease {
            lease.lose(Some(loss));
            self.report_loss(source, &lease);
        }
    }

    /// Reports that a message was lost while it was handled.
    pub(super) fn report_loss(&self, source: &Source, lease: &Lease) {
        source.counters.add(|counters| &counters.leases_lost, 1);
        let reason = lease.loss().unwrap_or(Loss::Ended);
        self.report(&Event::LeaseLost { queue: &source.name, id: &lease.id, receipt: &lease.receipt, reason });
    }
}
