//! Pops messages of one queue for a pool, on a connection of its own, and acks those whose handlers have ended before.

use super::event::Event;
use super::lease::Lease;
use super::permits::{Attempt, Grant};
use super::pool::{Job, Outcome, Pool, Source, BLOCK};
use crate::connect::{lock, Backoff, Link};
use crate::payload::Raw;
use crate::queue::{Delivery, Nack};
use crate::reply::{self, Field, Fields};
use crate::request::{millis, Command};
use crate::Error;
use redis::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a pop blocks if a pool has more queues than permits, so that they take turns.
const TURN: Duration = Duration::from_millis(100);

/// Pops until the pool is closed.
pub(super) async fn run(pool: Arc<Pool>, number: usize) {
    if let Some(source) = pool.sources.get(number) {
        let fetcher = Fetcher { pool: &pool, source, number, link: None, backoff: Backoff::new(), interrupted: false };
        fetcher.run().await;
    }
}

struct Fetcher<'a> {
    pool: &'a Arc<Pool>,
    source: &'a Arc<Source>,
    number: usize,
    link: Option<Link>,
    backoff: Backoff,
    interrupted: bool,
}

impl Fetcher<'_> {
    async fn run(mut self) {
        while !self.pool.stop.is_set() {
            if let Err(error) = self.round().await {
                self.pause(&error).await;
            }
        }
        // No pop follows that could take the acks of handlers which end from now on.
        self.pool.settle_all(self.source.handoff.close());
    }

    /// Pops once, when there are permits, on a connection that is opened if there is none.
    async fn round(&mut self) -> Result<(), Error> {
        if self.link.is_none() {
            self.link = Some(self.connect().await?);
        }
        self.source.handoff.open();
        // Handlers that end because the worker stops make room as well.
        let Some(grant) = self.acquire().await.filter(|_| !self.pool.stop.is_set()) else { return Ok(()) };
        let (acks, lease) = (self.source.handoff.close(), self.source.lease());
        let popped = self.ack_and_pop(acks, grant, lease).await;
        let messages = popped.inspect_err(|_| self.pool.permits.popped(self.number, grant, 0))?;
        self.backoff.reset();
        if std::mem::take(&mut self.interrupted) {
            self.pool.report(&Event::Resumed { queue: &self.source.name });
        }
        let delivered = messages.len();
        self.pass_on(messages, lease).await;
        self.pool.permits.popped(self.number, grant, delivered);
        Ok(())
    }

    /// Waits for permits. Returns `None` if the pool is stopping.
    async fn acquire(&self) -> Option<Grant> {
        let permits = &self.pool.permits;
        permits.enter(self.number);
        loop {
            match permits.attempt(self.number) {
                Attempt::Granted(grant) => return Some(grant),
                Attempt::Closed => return None,
                Attempt::Wait(longest, to_end) => {
                    for source in to_end.into_iter().filter_map(|number| self.pool.sources.get(number)) {
                        self.pool.end_pop(source).await;
                    }
                    // Nothing may wait for the next pop.
                    self.pool.settle_all(self.source.handoff.take_back());
                    permits.turn(self.number, longest).await;
                }
            }
        }
    }

    /// Opens a connection, and asks the queue how long its leases are unless the program says it. Without the right to ask, they
    /// last as long as by default.
    async fn connect(&self) -> Result<Link, Error> {
        let link = self.pool.core.link_for(&self.source.key, &self.pool.consumer).await?;
        if lock(&self.source.lengths).0.is_none() {
            let time = self.pool.core.options.response_timeout;
            let asked = link.exchange(redis::cmd("DQ.INFO").arg(&self.source.key), time).await;
            self.pool.core.note(&link.address, &asked);
            let lease_of = |reply| reply::optional(reply, |info| Fields::from(info)?.get("lease"));
            let lease = match asked.and_then(reply::checked).and_then(lease_of) {
                Err(error) if error.is_transient() => return Err(error),
                // An error is such as that of a moved queue, or of a key of another type: the pop reports it.
                lease => lease.unwrap_or_default(),
            };
            lock(&self.source.lengths).1 = lease;
            // The task that extends may sleep for longer than such a lease.
            self.pool.changed.notify_one();
        }
        *lock(&self.source.contact) = Some(Instant::now());
        Ok(link)
    }

    /// Acks, and pops as many messages as there are permits.
    async fn ack_and_pop(
        &self,
        acks: Vec<Outcome>,
        grant: Grant,
        lease: Duration,
    ) -> Result<Vec<Delivery<Raw>>, Error> {
        if !acks.is_empty() {
            // It does not block, so that an ack which fails is sent again at once.
            let command = Command::new("DQ.ACKPOP", &self.source.key).word(acks.len());
            let command = command.words(acks.iter().map(|ack| &ack.lease.receipt));
            let reply = self.exchange(self.options(command, grant, lease), Duration::ZERO).await;
            match reply.and_then(<(u64, Vec<_>)>::read) {
                Ok((acked, messages)) => {
                    lock(&self.source.counters).ack(u64::try_from(acks.len()).unwrap_or_default(), acked);
                    if !messages.is_empty() {
                        return Ok(messages);
                    }
                }
                Err(error) => {
                    // They may not have been made, and are sent alone.
                    let repeated = error.may_have_been_executed();
                    self.pool.settle_all(acks.into_iter().map(|ack| ack.again(repeated)).collect());
                    if !matches!(error, Error::NoPermission(_)) {
                        // The pop alone fails too if the queue moved or cannot be reached.
                        return Err(error);
                    }
                    self.source.handoff.refuse();
                }
            }
        }
        self.pop(grant, lease).await
    }

    /// The options of a pop.
    fn options(&self, command: Command, grant: Grant, lease: Duration) -> Command {
        let command = command.word("COUNT").word(grant.count).word("LEASE").word(millis(lease));
        command.words(self.pool.spec.meta.then_some("META")).word("AS").word(&self.pool.consumer)
    }

    async fn pop(&self, grant: Grant, lease: Duration) -> Result<Vec<Delivery<Raw>>, Error> {
        let pool = self.pool;
        let Some(link) = &self.link else { return Ok(Vec::new()) };
        let turns = pool.sources.len() > 1 && !pool.permits.suffice();
        let block = match grant.block {
            false => Duration::ZERO,
            true if turns => TURN,
            true => BLOCK,
        };
        // Even one that does not block is put off while writes are paused.
        *lock(&self.source.popping) = Some((link.address.clone(), link.id));
        let command = self.options(Command::new("DQ.POP", &self.source.key), grant, lease);
        let command = command.maybe("BLOCK", Some(block).filter(|block| !block.is_zero()).map(millis));
        let reply = self.exchange(command, block).await;
        *lock(&self.source.popping) = None;
        Field::read(reply?)
    }

    /// Sends a command that blocks for up to this time.
    async fn exchange(&self, command: Command, block: Duration) -> Result<Value, Error> {
        let Some(link) = &self.link else { return Ok(Value::Nil) };
        let reply = link.exchange(&command.0, block + self.pool.core.options.response_timeout).await;
        if reply.is_ok() {
            *lock(&self.source.contact) = Some(Instant::now());
        }
        self.pool.core.note(&link.address, &reply);
        reply.and_then(reply::checked)
    }

    async fn pass_on(&self, messages: Vec<Delivery<Raw>>, lease: Duration) {
        if messages.is_empty() {
            return;
        }
        let pool = self.pool;
        lock(&self.source.counters).delivered += u64::try_from(messages.len()).unwrap_or_default();
        let now = Instant::now();
        let jobs: Vec<Job> = messages.into_iter().filter_map(|message| job(message, self.source, now, lease)).collect();
        // If the worker has ended without this pop, nobody else reports any more.
        if pool.ended.is_cancelled() {
            let nack = |job: &Job| Nack::give_back().command(&self.source.key, job.lease.receipt.as_ref()).0;
            pool.core.batch(&jobs.iter().map(nack).collect::<Vec<_>>()).await;
            return;
        }
        let mut leases = lock(&pool.leases);
        for job in &jobs {
            leases.insert(job.lease.number, Arc::clone(&job.lease));
        }
        drop(leases);
        pool.handlers.begin(pool, jobs);
    }

    /// After an error: waits before the next attempt, which opens a new connection.
    async fn pause(&mut self, error: &Error) {
        self.link = None;
        if self.pool.stop.is_set() {
            return;
        }
        // During a resharding, one node may still send to the other what that one does not have yet.
        if !error.is_redirection() && !std::mem::replace(&mut self.interrupted, true) {
            lock(&self.source.counters).interrupted += 1;
            self.pool.report(&Event::Interrupted { queue: &self.source.name, error });
        }
        self.pool.stop.pause(self.backoff.next()).await;
    }
}

fn job(message: Delivery<Raw>, source: &Arc<Source>, now: Instant, lease: Duration) -> Option<Job> {
    let Delivery { id, attempt, receipt, meta, bytes: payload, .. } = message;
    Some(Job { payload, meta, lease: Arc::new(Lease::new(source, (id, attempt, receipt?), now, lease)) })
}
