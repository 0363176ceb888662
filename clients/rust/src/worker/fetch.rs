//! Pops messages of one queue for a pool, on a connection of its own, and acks those whose handlers have ended before.

use super::calm::block_child_signals;
use super::context::Lease;
use super::event::Event;
use super::permits::Grant;
use super::pool::{Job, Outcome, Pool, Source};
use crate::connect::{lock, Backoff, Link};
use crate::payload::Raw;
use crate::queue::pop::{self, deliveries};
use crate::queue::{Delivery, Nack};
use crate::reply::{self, Fields};
use crate::Error;
use redis::{Cmd, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a pop blocks if a pool has more queues than permits, so that they take turns.
const TURN: Duration = Duration::from_millis(100);

/// Pops until the pool is closed.
pub(super) fn run(pool: &Pool, number: usize) {
    block_child_signals();
    if let Some(source) = pool.source(number) {
        Fetcher { pool, source, number, link: None, backoff: Backoff::new(), interrupted: false }.run();
    }
    pool.fetchers.fetch_sub(1, Ordering::AcqRel);
}

struct Fetcher<'a> {
    pool: &'a Pool,
    source: &'a Source,
    number: usize,
    link: Option<Link>,
    backoff: Backoff,
    interrupted: bool,
}

impl Fetcher<'_> {
    fn run(mut self) {
        while !self.pool.stop.is_set() {
            if self.link.is_none() {
                let link = self.pool.client.link_for(&self.source.key, &self.pool.consumer);
                match link.and_then(|link| self.learn_lease(link)) {
                    Ok(link) => self.link = Some(link),
                    Err(error) => {
                        self.pause(&error);
                        continue;
                    }
                }
            }
            self.source.handoff.open();
            let end_pop = |source| drop(self.pool.source(source).and_then(|source| self.pool.end_pop(source)));
            let grant = self.pool.permits.acquire(self.number, end_pop, || self.pool.pop_is_delayed(self.number));
            let Some(grant) = grant else { break };
            let acks = self.source.handoff.close();
            let popped = self.ack_and_pop(acks, grant);
            let delivered = popped.as_ref().map_or(0, |(messages, _)| messages.len());
            match popped {
                Ok((messages, lease)) => {
                    self.sound();
                    // The handlers of these messages may end before this thread waits.
                    self.source.handoff.open();
                    self.pass_on(messages, lease);
                }
                Err(error) => {
                    self.pool.permits.popped(self.number, grant, 0);
                    self.pause(&error);
                    continue;
                }
            }
            self.pool.permits.popped(self.number, grant, delivered);
        }
        // No pop follows that could take the acks of handlers which end from now on.
        self.pool.settle_all(self.source.handoff.close());
    }

    /// Asks the queue how long its leases are, on a new connection. Without the right to ask, they last as long as by default.
    fn learn_lease(&self, mut link: Link) -> Result<Link, Error> {
        if self.source.lease.is_of_queue() {
            let asked = link.ask(redis::cmd("DQ.INFO").arg(&self.source.key), self.pool.client.response_timeout());
            let lease = match asked.and_then(|reply| reply::optional(reply, |info| Fields::from(info)?.int("lease"))) {
                Ok(lease) => lease.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or_default())),
                Err(error) if error.is_transient() => return Err(error),
                // Such as that of a moved queue, or of a key of another type: the pop reports it.
                Err(_) => None,
            };
            self.source.lease.learn(lease);
            // The thread that extends may sleep for longer than such a lease.
            self.pool.outcomes.nudge();
        }
        *lock(&self.source.contact) = Some(Instant::now());
        Ok(link)
    }

    /// Acks, and pops as many messages as there are permits. Returns the messages, and how long their leases are.
    fn ack_and_pop(&mut self, acks: Vec<Outcome>, grant: Grant) -> Result<(Vec<Delivery<Raw>>, Duration), Error> {
        if !acks.is_empty() {
            // It does not block, so that an ack which fails is sent again at once.
            let lease = self.source.lease.get();
            let receipts = acks.iter().map(|ack| ack.receipt.as_ref());
            let command =
                pop::after_acks(&self.source.key, receipts, count(grant), lease, self.pool.meta, &self.pool.consumer);
            let reply = self.exchange(&command, Duration::ZERO);
            match self.acked(acks, reply) {
                Ok(messages) if messages.is_empty() => {}
                Ok(messages) => return Ok((messages, lease)),
                // The pop alone fails too if the queue moved or cannot be reached.
                Err(Error::NoPermission(_)) => self.source.handoff.refuse(),
                Err(error) => return Err(error),
            }
            if self.link.is_none() {
                return Ok((Vec::new(), lease));
            }
        }
        self.pop(grant)
    }

    /// The messages of a pop that made these acks. Acks that may not have been made are sent alone.
    fn acked(&self, acks: Vec<Outcome>, reply: Option<Result<Value, Error>>) -> Result<Vec<Delivery<Raw>>, Error> {
        match reply.map(|reply| reply.and_then(pop::acked)) {
            Some(Ok((acked, messages))) => {
                let all = u64::try_from(acks.len()).unwrap_or_default();
                self.source.counters.acked(all, acked);
                Ok(messages)
            }
            None => {
                self.pool.settle_all(acks);
                Ok(Vec::new())
            }
            Some(Err(error)) => {
                let repeated = error.may_have_been_executed();
                self.pool.settle_all(acks.into_iter().map(|ack| ack.again(repeated)).collect());
                Err(error)
            }
        }
    }

    /// The messages, and how long their leases are.
    fn pop(&mut self, grant: Grant) -> Result<(Vec<Delivery<Raw>>, Duration), Error> {
        let pool = self.pool;
        let turns = pool.sources.len() > 1 && !pool.permits.suffice();
        let block = match grant.block {
            false => Duration::ZERO,
            true if turns => TURN,
            true => pool.block,
        };
        let lease = self.source.lease.get();
        // Even one that does not block is put off while writes are paused.
        *lock(&self.source.popping) = self.link.as_ref().map(|link| (link.address().clone(), link.id()));
        let command = pop::command(&self.source.key, count(grant), lease, block, pool.meta, &pool.consumer);
        let reply = self.exchange(&command, block);
        *lock(&self.source.popping) = None;
        Ok((reply.map_or(Ok(Vec::new()), |reply| deliveries(reply?))?, lease))
    }

    /// Sends a command that blocks for up to this time. Returns `None` if the queue has moved to another server.
    fn exchange(&mut self, command: &Cmd, block: Duration) -> Option<Result<Value, Error>> {
        let link = self.link.as_mut()?;
        let sent = link.send(&command.get_packed_command(), block + self.pool.client.response_timeout());
        let reply = sent.and_then(|()| link.receive());
        if reply.is_ok() {
            *lock(&self.source.contact) = Some(Instant::now());
        }
        (!self.follow(&reply)).then(|| reply.and_then(reply::checked))
    }

    /// Whether the queue has moved to another server, where it is to be popped.
    fn follow(&mut self, reply: &Result<Value, Error>) -> bool {
        let Some(link) = &self.link else { return false };
        let moved = self.pool.client.heed(link.address(), reply);
        if moved || reply.is_err() {
            self.link = None;
        }
        if moved {
            // During a resharding, one node may still send to the other what that one does not have yet.
            self.pool.stop.wait_for(self.backoff.next());
        }
        moved
    }

    fn pass_on(&self, messages: Vec<Delivery<Raw>>, lease: Duration) {
        if messages.is_empty() {
            return;
        }
        let pool = self.pool;
        self.source.counters.add(|counters| &counters.delivered, u64::try_from(messages.len()).unwrap_or_default());
        let now = Instant::now();
        let jobs: Vec<Job> = messages.into_iter().filter_map(|message| job(message, self.number, now, lease)).collect();
        let mut leases = lock(&pool.leases);
        for job in &jobs {
            leases.insert(job.number, Arc::clone(&job.lease));
        }
        drop(leases);
        if let Err(jobs) = pool.jobs.put(jobs) {
            let outcomes = jobs.into_iter().map(|job| pool.give_back(job)).collect();
            // If the worker has ended without this pop, nobody else reports any more.
            if let Err(outcomes) = pool.outcomes.put(outcomes) {
                let nack = |outcome: &Outcome| Nack::give_back().command(&self.source.key, outcome.receipt.as_ref());
                drop(pool.client.batch(&outcomes.iter().map(nack).collect::<Vec<_>>()));
            }
        }
    }

    fn sound(&mut self) {
        if self.link.is_some() {
            self.backoff.reset();
        }
        if self.interrupted && self.link.is_some() {
            self.interrupted = false;
            self.pool.report(&Event::Resumed { queue: &self.source.name });
        }
    }

    /// After an error: waits before the next attempt, which opens a new connection.
    fn pause(&mut self, error: &Error) {
        self.link = None;
        if self.pool.stop.is_set() {
            return;
        }
        if !self.interrupted {
            self.interrupted = true;
            self.source.counters.add(|counters| &counters.interrupted, 1);
            self.pool.report(&Event::Interrupted { queue: &self.source.name, error });
        }
        self.pool.stop.wait_for(self.backoff.next());
    }
}

fn count(grant: Grant) -> u32 {
    u32::try_from(grant.count).unwrap_or(u32::MAX)
}

fn job(message: Delivery<Raw>, source: usize, now: Instant, lease: Duration) -> Option<Job> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (id, attempt, receipt, payload, meta) = message.into_parts();
    Some(Job {
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        payload,
        meta,
        lease: Arc::new(Lease::new(source, (id, attempt, receipt?), now, lease)),
    })
}
