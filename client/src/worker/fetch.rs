//! Pops messages of one queue for a pool, on a connection of its own.

use super::calm::block_child_signals;
use super::context::Lease;
use super::event::Event;
use super::permits::Grant;
use super::pool::{Job, Pool, Source};
use crate::connect::{lock, Backoff, Link};
use crate::payload::Raw;
use crate::queue::pop::{self, deliveries};
use crate::queue::Delivery;
use crate::reply;
use crate::Error;
use redis::Value;
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
                match self.pool.client.link_for(&self.source.key) {
                    Ok(link) => self.link = Some(link),
                    Err(error) => {
                        self.pause(&error);
                        continue;
                    }
                }
            }
            let Some(grant) = self.pool.permits.acquire(self.number, |source| self.pool.end_pop(source)) else { break };
            let popped = self.pop(grant);
            let delivered = popped.as_ref().map_or(0, |(messages, _)| messages.len());
            match popped {
                Ok((messages, lease)) => {
                    self.sound();
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
        let lease = pool.lease();
        let Some(link) = &mut self.link else { return Ok((Vec::new(), lease)) };
        if grant.block {
            *lock(&self.source.blocked) = Some((link.address().clone(), link.id()));
        }
        let count = u32::try_from(grant.count).unwrap_or(u32::MAX);
        let command = pop::command(&self.source.key, count, lease, block);
        let sent = link.send(&command.get_packed_command(), block + pool.client.response_timeout());
        let reply = sent.and_then(|()| link.receive());
        *lock(&self.source.blocked) = None;
        if self.follow(&reply) {
            return Ok((Vec::new(), lease));
        }
        Ok((deliveries(reply.and_then(reply::checked)?)?, lease))
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
            drop(pool.outcomes.put(outcomes));
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

fn job(message: Delivery<Raw>, source: usize, now: Instant, lease: Duration) -> Option<Job> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (id, attempt, receipt, payload) = message.into_parts();
    Some(Job {
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        id,
        payload,
        attempt,
        lease: Arc::new(Lease::new(source, receipt?, now, lease)),
    })
}
