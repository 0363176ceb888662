//! Pops messages of one queue for a pool, on a connection of its own, and acks those whose handlers have ended before.

use super::event::Event;
use super::failure::Failure;
use super::handling;
use super::lease::Lease;
use super::outcome::{Outcome, Report};
use super::permits::{Attempt, Grant};
use super::running_pool::{Job, RunningPool, BLOCK};
use super::source::Source;
use crate::connect::{batch, Backoff, Link};
use crate::error::Error;
use crate::payload::Raw;
use crate::queue::{Delivery, Nack};
use crate::reply::{self, Field};
use crate::request::Command;
use crate::sync::lock;
use crate::time::millis;
use redis::{Pipeline, Value};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};
use tokio::time::sleep;

/// How long a pop blocks if a pool has more queues than permits, so that they take turns.
const TURN: Duration = Duration::from_millis(100);
/// A pop that is late by this time leaves its permits to the other queues of the pool.
const OVERDUE: Duration = Duration::from_millis(500);

/// How long pops ask for fewer messages after a reply was lost.
const CAUTIOUS: Duration = Duration::from_secs(60);

/// Pops until the pool is closed.
pub(super) async fn run(pool: Arc<RunningPool>, number: usize) {
    if let Some(source) = pool.sources.get(number) {
        let pool = &pool;
        let fetcher = Fetcher {
            pool,
            source,
            number,
            link: None,
            backoff: Backoff::new(),
            most: None,
            was_closed: false,
            gave_up: false,
        };
        fetcher.run().await;
    }
}

struct Fetcher<'a> {
    pool: &'a Arc<RunningPool>,
    source: &'a Arc<Source>,
    number: usize,
    link: Option<Link>,
    backoff: Backoff,
    /// The most messages of the next pop after replies that were lost, which may have been larger than the server
    /// allows, and when twice as many are tried.
    most: Option<(usize, Instant)>,
    /// Whether the connection before the present one was closed while it was idle.
    was_closed: bool,
    /// Whether the present pop has left its permits to others.
    gave_up: bool,
}

/// What a pop has delivered.
#[derive(Default)]
struct Popped {
    messages: Vec<Delivery<Raw>>,
    /// When that was, at the earliest; `None` if it is not known.
    delivered: Option<Instant>,
    /// The time of the server right after it.
    now: Option<Duration>,
}

impl Fetcher<'_> {
    async fn run(mut self) {
        while !self.pool.stop.is_set() {
            if let Err(error) = self.round().await {
                self.pause(&error).await;
            }
        }
        // No pop follows that could take the acks of handlers which end from now on.
        self.source.settle_all(self.source.handoff.close());
    }

    /// Pops once, when there are permits, on a connection that is opened if there is none.
    async fn round(&mut self) -> Result<(), Error> {
        if self.link.is_none() {
            // One that is being opened has nothing to give back.
            let opened = tokio::select! {
                opened = self.connect() => opened,
                () = self.pool.stop.asked() => return Ok(()),
            };
            // The server is not there, so the size of a reply has not ended the former one.
            self.link = Some(opened.inspect_err(|_| self.most = None)?);
        }
        self.source.handoff.open();
        // Handlers that end because the worker stops make room as well.
        let Some(grant) = self.acquire().await.filter(|_| !self.pool.stop.is_set()) else { return Ok(()) };
        let (acks, grant) = (self.source.handoff.close(), self.narrowed(grant));
        self.gave_up = false;
        let popped = match self.ack_and_pop(acks, grant).await {
            Ok(popped) => popped,
            Err(error) => {
                self.free(grant, 0);
                return self.failed(error, grant);
            }
        };
        self.was_closed = false;
        self.backoff.reset();
        if self.source.is_interrupted.swap(false, Ordering::Relaxed) {
            let source = Arc::clone(self.source);
            self.pool.reporter.report(move |emit| emit(&Event::Resumed { queue: &source.name }));
        }
        let delivered = popped.messages.len();
        self.pass_on(popped).await;
        self.free(grant, delivered);
        Ok(())
    }

    /// Decides what follows a pop that failed.
    fn failed(&mut self, error: Error, grant: Grant) -> Result<(), Error> {
        // Neither the size of one message nor a new master is a reason to ask for fewer.
        let is_in_use = self.link.as_ref().is_none_or(|link| link.is_in_use().is_ok());
        if matches!(error, Error::Lost(_)) && grant.count > 1 && is_in_use {
            self.most = Some(((grant.count / 2).max(1), Instant::now() + CAUTIOUS));
        }
        // Nothing was sent on a connection that was closed while it was idle, and nobody need hear of it.
        if matches!(error, Error::Connect(_)) && !std::mem::replace(&mut self.was_closed, true) {
            self.link = None;
            return Ok(());
        }
        Err(error)
    }

    /// Asks for fewer messages than there are permits, if the replies to pops of more were lost.
    fn narrowed(&mut self, grant: Grant) -> Grant {
        let now = Instant::now();
        if let Some((most, _)) = self.most.filter(|(_, until)| *until <= now) {
            self.most = Some((most.saturating_mul(2), now + CAUTIOUS));
        }
        let count = self.most.map_or(grant.count, |(most, _)| most.min(grant.count));
        self.pool.permits.release(grant.count - count);
        // After an interruption, it is to be known at once that messages can be popped again.
        Grant { count, block: grant.block && !self.source.is_interrupted.load(Ordering::Relaxed) }
    }

    /// After a pop: frees the permits that it has not used, unless it has given them up.
    fn free(&self, grant: Grant, delivered: usize) {
        if !self.gave_up {
            self.pool.permits.popped(self.number, grant, delivered);
        }
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
                        // Without waiting for it: its server may hang.
                        self.pool.begin_to_end_pop(source);
                    }
                    // Nothing may wait for the next pop.
                    self.source.settle_all(self.source.handoff.take_back());
                    permits.turn(self.number, longest).await;
                }
            }
        }
    }

    /// Opens a connection.
    async fn connect(&self) -> Result<Link, Error> {
        let link = self.pool.core.link_for(self.source.name.as_bytes(), &self.pool.consumer).await?;
        self.source.may_ask_time.store(true, Ordering::Relaxed);
        if !self.source.is_interrupted.load(Ordering::Relaxed) {
            *lock(&self.source.contact) = Some(Instant::now());
        }
        Ok(link)
    }

    /// Acks, and pops as many messages as there are permits.
    async fn ack_and_pop(&mut self, acks: Vec<Outcome>, grant: Grant) -> Result<Popped, Error> {
        if acks.is_empty() {
            return self.pop(grant).await;
        }
        // It does not block, so that an ack which fails is sent again at once.
        let command = Command::new("DQ.ACKPOP", &self.source.name).word(acks.len());
        let command = command.words(acks.iter().map(|ack| &ack.lease.receipt));
        let replied = self.exchange(self.options(command, grant), grant, Duration::ZERO).await;
        let read = replied.and_then(|(reply, popped)| Ok((<(u64, Vec<_>)>::read(reply)?, popped)));
        match read {
            Ok(((acked, messages), popped)) => {
                self.source.answered(&acks);
                lock(&self.source.counters).ack(u64::try_from(acks.len()).unwrap_or_default(), acked);
                // Without permits, no pop may follow.
                if !messages.is_empty() || self.gave_up {
                    return Ok(Popped { messages, ..popped });
                }
            }
            Err(error) => {
                // They may not have been made, and are sent alone.
                let repeated = error.may_have_been_executed();
                self.source.settle_all(acks.into_iter().map(|ack| ack.again(repeated)).collect());
                if !matches!(error, Error::NoPermission(_)) {
                    // The pop alone fails too if the queue moved or cannot be reached.
                    return Err(error);
                }
                self.source.handoff.refuse();
            }
        }
        self.pop(grant).await
    }

    /// The options of a pop. It asks for the end of each lease: a message may have a lease of its own, and the queue a
    /// limit.
    fn options(&self, command: Command, grant: Grant) -> Command {
        let command = command.word("COUNT").word(grant.count).maybe("LEASE", self.source.asked_lease().map(millis));
        command.word("META").word("AS").word(&self.pool.consumer)
    }

    async fn pop(&mut self, grant: Grant) -> Result<Popped, Error> {
        let turns = self.pool.sources.len() > 1 && !self.pool.permits.suffice();
        let block = match grant.block {
            false => Duration::ZERO,
            true if turns => TURN,
            true => BLOCK,
        };
        let command = self.options(Command::new("DQ.POP", &self.source.name), grant);
        let command = command.maybe("BLOCK", Some(block).filter(|block| !block.is_zero()).map(millis));
        let (reply, popped) = self.exchange(command, grant, block).await?;
        Ok(Popped { messages: Field::read(reply)?, ..popped })
    }

    /// Sends a pop that blocks for up to this time. The time of the server before and after it says when its messages
    /// were delivered: the reply may be late, and leases do not wait for it.
    async fn exchange(&mut self, command: Command, grant: Grant, block: Duration) -> Result<(Value, Popped), Error> {
        let Some(link) = self.link.clone() else { return Ok((Value::Nil, Popped::default())) };
        let may_ask_time = self.source.may_ask_time.load(Ordering::Relaxed);
        let mut all = Pipeline::new();
        if may_ask_time && !block.is_zero() {
            all.cmd("TIME");
        }
        all.add_command(command.0);
        if may_ask_time {
            all.cmd("TIME");
        }
        // Even a pop that does not block is put off while writes are paused.
        *lock(&self.source.popping) = Some((link.address.clone(), link.id));
        let sent = Instant::now();
        let mut exchange = pin!(link.exchange_all(&all, block + self.pool.core.options().response_timeout));
        let in_time = tokio::select! {
            replies = &mut exchange => Some(replies),
            () = self.source.hangs.notified() => None,
            () = sleep(block + OVERDUE) => None,
        };
        let replies = match in_time {
            Some(replies) => replies,
            None => {
                if self.pool.sources.len() > 1 {
                    self.free(grant, 0);
                    self.gave_up = true;
                }
                exchange.await
            }
        };
        *lock(&self.source.popping) = None;
        if let Err(error @ Error::Connect(_)) = replies {
            return Err(error);
        }
        let (reply, before, now) = match replies {
            Ok(mut replies) => {
                let now = if may_ask_time { replies.pop().and_then(reply::time) } else { None };
                (Ok(replies.pop().unwrap_or_default()), replies.pop().and_then(reply::time), now)
            }
            Err(error) => (Err(error), None, None),
        };
        self.pool.core.note(&link.address, &reply);
        let reply = reply.and_then(reply::checked)?;
        *lock(&self.source.contact) = Some(Instant::now());
        let blocked = before.zip(now).and_then(|(before, now)| now.checked_sub(before));
        let mut delivered = match blocked {
            Some(blocked) if blocked <= sent.elapsed() => Some(sent + blocked),
            // The clock of the server was set.
            Some(_) => None,
            None => Some(sent).filter(|_| block.is_zero()),
        };
        if may_ask_time && now.is_none() {
            // Nor is it known how long the leases are.
            self.source.may_ask_time.store(false, Ordering::Relaxed);
            delivered = None;
        }
        Ok((reply, Popped { messages: Vec::new(), delivered, now }))
    }

    async fn pass_on(&self, popped: Popped) {
        if popped.messages.is_empty() {
            return;
        }
        let pool = self.pool;
        lock(&self.source.counters).delivered += u64::try_from(popped.messages.len()).unwrap_or_default();
        let mut jobs = self.jobs(popped);
        // If the worker has ended without this pop, nobody else reports any more.
        if pool.ended.is_cancelled() {
            let nack = |job: &Job| Nack::give_back().command(&self.source.name, job.lease.receipt.as_ref()).0;
            batch(&pool.core, &jobs.iter().map(nack).collect::<Vec<_>>()).await;
            return;
        }
        let mut leases = lock(&self.source.leases);
        for job in &jobs {
            leases.insert(job.lease.number, Arc::clone(&job.lease));
        }
        drop(leases);
        if let Some(first) = jobs.iter().filter_map(|job| job.lease.extend_at()).min() {
            self.source.wake_before(first);
        }
        if self.gave_up {
            let begin = pool.permits.reclaim(jobs.len());
            jobs.drain(begin..)
                .for_each(|job| pool.end(&job.source, job.lease, Report::Nack(Failure::give_back()), false));
        }
        handling::begin(pool, jobs);
    }

    /// Messages with their leases, which run since their delivery.
    fn jobs(&self, popped: Popped) -> Vec<Job> {
        let (received, wants_meta) = (Instant::now(), self.pool.spec.meta);
        let mut jobs = Vec::new();
        for Delivery { id, attempt, receipt, meta, bytes, .. } in popped.messages {
            let Some(receipt) = receipt else { continue };
            let deadline = meta.as_ref().and_then(|meta| meta.deadline?.duration_since(UNIX_EPOCH).ok());
            let time = deadline.zip(popped.now).map(|(end, now)| end.saturating_sub(now));
            time.into_iter().for_each(|time| self.source.learn(time));
            let time = time.unwrap_or_else(|| self.source.lease());
            let begun = popped.delivered.unwrap_or(received);
            let lease = Arc::new(Lease::new((id, attempt, receipt), begun, time));
            if popped.delivered.is_none() {
                // Only an extension shows whether it is not over yet.
                lease.try_again_at(received);
            }
            let (meta, source) = (meta.filter(|_| wants_meta), Arc::clone(self.source));
            jobs.push(Job { payload: bytes, meta, source, lease });
        }
        jobs
    }

    /// After an error: waits before the next attempt, which opens a new connection.
    async fn pause(&mut self, error: &Error) {
        self.link = None;
        if self.pool.stop.is_set() {
            return;
        }
        // During a resharding, one node may still send to the other what that one does not have yet.
        if !error.is_redirection() && !self.source.is_interrupted.swap(true, Ordering::Relaxed) {
            lock(&self.source.counters).interrupted += 1;
            let (source, error) = (Arc::clone(self.source), error.clone());
            self.pool.reporter.report(move |emit| {
                emit(&Event::Interrupted { queue: &source.name, error: &error });
            });
        }
        self.pool.stop.pause(self.backoff.next()).await;
    }
}
