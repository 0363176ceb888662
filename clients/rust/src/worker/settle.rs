//! Reports the outcomes of messages to the server, and extends the leases of those that are being handled.
//!
//! Each pool has one task for this. While one batch of reports is on its way, the next one accumulates, so under load a
//! round trip carries many.

use super::event::Event;
use super::lease::{Lease, Loss};
use super::pool::{Outcome, Pool, Report, Source, SHORTEST_LEASE};
use crate::connect::{after, lock, Backoff};
use crate::queue::State;
use crate::reply::{self, Field};
use crate::request::{millis, Command, Resend};
use crate::Error;
use futures_util::future::{join_all, BoxFuture};
use futures_util::FutureExt;
use redis::Value;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep_until;

/// The most receipts of one ack, so that each command is short.
const ACKS: usize = 500;
/// How often a report is tried after the request to stop, if the server does not accept it.
const LAST_ATTEMPTS: u32 = 5;

/// Reports until nothing is left to report.
pub(super) async fn run(pool: Arc<Pool>, outcomes: UnboundedReceiver<Outcome>) {
    let again = Again { outcomes: Vec::new(), at: None, backoff: Backoff::new() };
    Settler { pool: &pool, again: Mutex::new(again) }.run(outcomes).await;
}

struct Settler<'a> {
    pool: &'a Pool,
    again: Mutex<Again>,
}

/// Outcomes that the server has not accepted, and when they are sent again.
struct Again {
    outcomes: Vec<Outcome>,
    at: Option<Instant>,
    backoff: Backoff,
}

impl Settler<'_> {
    async fn run(self, mut inbox: UnboundedReceiver<Outcome>) {
        let mut last_attempts = LAST_ATTEMPTS;
        let mut open = true;
        // When leases are looked at next: none needs anything before.
        let mut check = Instant::now();
        while open || !lock(&self.again).outcomes.is_empty() {
            let mut outcomes = Vec::new();
            let again = lock(&self.again).at;
            let overdue = self.pool.sources.iter().filter_map(|source| source.handoff.overdue_at()).min();
            let next = [overdue, again].into_iter().flatten().fold(check, Instant::min);
            let next = if open { next } else { again.unwrap_or_else(Instant::now) };
            tokio::select! {
                biased;
                count = inbox.recv_many(&mut outcomes, usize::MAX), if open => open = count > 0,
                () = self.pool.ended.cancelled(), if open && !inbox.is_closed() => inbox.close(),
                () = self.pool.changed.notified(), if open => check = Instant::now(),
                () = sleep_until(next.into()) => {}
            }
            if !open {
                last_attempts -= 1;
                if last_attempts == 0 {
                    break;
                }
            }
            let permits = |outcomes: &[Outcome]| outcomes.iter().filter(|outcome| outcome.has_permit).count();
            let all = permits(&outcomes);
            outcomes = self.pool.pass_on(outcomes);
            // Another message is popped only after the report of this one, so that the worker never holds more than it works
            // on. The server of one queue must not delay the pops of other queues, though.
            let reported = if self.pool.sources.len() == 1 { permits(&outcomes) } else { 0 };
            self.pool.permits.release(all - reported);
            let now = Instant::now();
            outcomes.append(&mut self.pool.overdue(now));
            if !open || again.is_some_and(|at| at <= now) {
                let mut again = lock(&self.again);
                outcomes.append(&mut again.outcomes);
                again.at = None;
            }
            let is_due = check <= now;
            if is_due {
                self.watch(now);
            }
            self.settle(outcomes, check).await;
            self.pool.permits.release(reported);
            if is_due {
                check = self.next();
            }
        }
    }

    /// When there is something to do for a lease at the earliest.
    fn next(&self) -> Instant {
        // A lease that begins now has to be extended later than this, and its handler is in time until then.
        let shortest = self.pool.sources.iter().map(|source| source.lease.get() / 4).chain(self.pool.time_limit).min();
        let extension = lock(&self.pool.leases).values().map(|lease| lease.extend_at()).min();
        let latest = after(shortest.unwrap_or(Duration::MAX));
        [extension, self.over_at()].into_iter().flatten().fold(latest, Instant::min)
    }

    /// When the first lease or handler is over.
    fn over_at(&self) -> Option<Instant> {
        lock(&self.pool.leases).values().filter_map(|lease| lease.over_at()).min()
    }

    /// Takes messages from handlers that have run for longer than they may, and marks leases that are over as lost.
    fn watch(&self, now: Instant) {
        let is_over = |lease: &&Arc<Lease>| lease.over_at().is_some_and(|at| at <= now);
        let leases: Vec<_> = lock(&self.pool.leases).values().filter(is_over).cloned().collect();
        let (over, others): (Vec<_>, Vec<_>) = leases.into_iter().partition(|lease| lease.is_over_limit(now));
        self.pool.take_from_handlers(over, Loss::TimeLimit);
        for lease in others {
            // It notes that by itself.
            lease.is_lost();
        }
    }

    /// Reports outcomes and, if that time has come, extends leases, all at once, and watches the time while the server is
    /// silent.
    async fn settle(&self, outcomes: Vec<Outcome>, check: Instant) {
        let now = Instant::now();
        let mut reports = if check <= now { self.extensions(now) } else { Vec::new() };
        let (acks, others): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|outcome| matches!(outcome.report, Report::Ack));
        reports.extend(others.into_iter().map(|outcome| self.report(outcome).boxed()));
        // A repeated ack may find its message gone because the first one was executed.
        let (repeated, first): (Vec<_>, Vec<_>) = acks.into_iter().partition(|ack| ack.repeated);
        for mut acks in [first, repeated] {
            for source in &self.pool.sources {
                let (mut mine, others): (Vec<_>, Vec<_>) =
                    acks.into_iter().partition(|ack| Arc::ptr_eq(&ack.lease.source, source));
                acks = others;
                while !mine.is_empty() {
                    let rest = mine.split_off(mine.len().min(ACKS));
                    reports.push(self.acks(source, std::mem::replace(&mut mine, rest)).boxed());
                }
            }
        }
        if reports.is_empty() {
            return;
        }
        let mut all = pin!(join_all(reports));
        let mut over_at = check;
        let arrived = loop {
            tokio::select! {
                biased;
                arrived = &mut all => break arrived,
                () = sleep_until(over_at.into()) => {
                    self.watch(Instant::now());
                    let latest = Instant::now() + SHORTEST_LEASE / 4;
                    over_at = self.over_at().map_or(latest, |at| at.min(latest));
                }
            }
        };
        let mut again = lock(&self.again);
        if arrived.into_iter().all(|arrived| arrived) {
            again.backoff.reset();
        }
        if !again.outcomes.is_empty() && again.at.is_none() {
            again.at = Some(Instant::now() + again.backoff.next());
        }
    }

    /// Extends the leases half of whose time is over, and those of the same queues that are to be extended soon: one command
    /// for all of a queue.
    fn extensions(&self, now: Instant) -> Vec<BoxFuture<'_, bool>> {
        let mut extensions = Vec::new();
        for source in &self.pool.sources {
            let leases = lock(&self.pool.leases);
            let mine: Vec<_> = leases.values().filter(|lease| Arc::ptr_eq(&lease.source, source)).cloned().collect();
            drop(leases);
            if !mine.iter().any(|lease| lease.extend_at() <= now) {
                continue;
            }
            let soon = now + source.lease.get() / 4;
            let due = mine.into_iter().filter(|lease| lease.extend_at() <= soon);
            let is_single =
                |lease: &Arc<Lease>| source.extends_singly.load(Ordering::Relaxed) || lease.has_checkpoint();
            let (singly, together): (Vec<_>, Vec<_>) = due.partition(is_single);
            extensions.extend(singly.into_iter().map(|lease| self.extend(lease, now).boxed()));
            extensions
                .extend(together.chunks(ACKS).map(|leases| self.extend_all(source, leases.to_vec(), now).boxed()));
        }
        extensions
    }

    async fn send(&self, command: Command) -> Result<Value, Error> {
        self.pool.core.attempt(&command.0, Resend::Harmless, Duration::ZERO).await
    }

    async fn extend(&self, lease: Arc<Lease>, now: Instant) -> bool {
        let (checkpoint, time) = (lease.take_checkpoint(), lease.source.lease.get());
        let command = Command::new("DQ.EXTEND", &lease.source.key).word(lease.receipt.as_ref());
        let command = command.word("LEASE").word(millis(time)).maybe("CHECKPOINT", checkpoint.as_deref());
        let reply = self.send(command).await;
        let arrived = has_arrived(&reply);
        let is_refused = checkpoint.is_some() && reply.is_err() && arrived;
        if reply.is_err() && !is_refused {
            lease.keep_checkpoint(checkpoint);
        }
        self.extended(&lease, (now, time), reply);
        if is_refused {
            // It may be too large. The lease is extended without it.
            lease.try_again_at(now);
        }
        arrived
    }

    /// The reply has a deadline for each lease that could be extended, and null for each other one.
    async fn extend_all(&self, source: &Source, leases: Vec<Arc<Lease>>, now: Instant) -> bool {
        let time = source.lease.get();
        let command = Command::new("DQ.MEXTEND", &source.key).word(leases.len());
        let command = command.words(leases.iter().map(|lease| &lease.receipt)).word("LEASE").word(millis(time));
        let reply = self.send(command).await;
        let arrived = has_arrived(&reply);
        match reply.and_then(reply::list) {
            Ok(replies) => {
                leases.iter().zip(replies).for_each(|(lease, reply)| self.extended(lease, (now, time), Ok(reply)));
            }
            Err(Error::NoPermission(_)) => {
                source.extends_singly.store(true, Ordering::Relaxed);
                self.pool.changed.notify_one();
            }
            Err(error) => {
                leases.iter().for_each(|lease| self.not_extended(lease, time, &error));
                self.refused(source, &error);
            }
        }
        arrived
    }

    /// `at` is when the command was sent: the lease runs at least from then on.
    fn extended(&self, lease: &Lease, (at, time): (Instant, Duration), reply: Result<Value, Error>) {
        match reply {
            Ok(Value::Nil) => {
                // The handler may have ended while this was asked.
                let still_runs = lock(&self.pool.leases).remove(&lease.number).is_some();
                lease.lose(None);
                if still_runs {
                    self.pool.report_loss(lease);
                }
            }
            Ok(deadline) => {
                lease.source.counters.add(|counters| &counters.extended, 1);
                match reply::int(&deadline) {
                    Ok(deadline) => lease.extended((at, Instant::now()), time, deadline),
                    Err(_) => lease.restart(at, time),
                }
            }
            Err(error) => {
                self.not_extended(lease, time, &error);
                self.refused(&lease.source, &error);
            }
        }
    }

    fn not_extended(&self, lease: &Lease, time: Duration, error: &Error) {
        let pause = if error.is_transient() { lock(&self.again).backoff.next() } else { time / 8 };
        lease.try_again_at(Instant::now() + pause);
    }

    async fn acks(&self, source: &Source, outcomes: Vec<Outcome>) -> bool {
        let receipts = outcomes.iter().map(|outcome| &outcome.lease.receipt);
        let reply = self.send(Command::new("DQ.ACK", &source.key).words(receipts)).await;
        self.acked(source, outcomes, reply)
    }

    fn acked(&self, source: &Source, outcomes: Vec<Outcome>, reply: Result<Value, Error>) -> bool {
        let all = u64::try_from(outcomes.len()).unwrap_or_default();
        let is_repeated = outcomes.iter().any(|outcome| outcome.repeated);
        match reply.and_then(|reply| reply::count(&reply)) {
            // If an ack was repeated, the server may have counted the first one.
            Ok(acked) => source.counters.acked(all, if is_repeated { all } else { acked }),
            Err(error) if error.is_transient() => {
                self.send_again(outcomes, error.may_have_been_executed());
                return false;
            }
            Err(error) => self.refused(source, &error),
        }
        true
    }

    /// Reports an outcome that is no ack.
    async fn report(&self, outcome: Outcome) -> bool {
        let (source, receipt) = (Arc::clone(&outcome.lease.source), outcome.lease.receipt.as_ref());
        match &outcome.report {
            Report::Ack => self.acks(&source, vec![outcome]).await,
            Report::Complete(result) => {
                let command = Command::new("DQ.COMPLETE", &source.key).word(receipt).word("RESULT").word(result);
                let reply = self.send(command).await;
                match &reply {
                    // The work is done, and must not be repeated only because its result cannot be stored.
                    Err(error) if !error.is_transient() => {
                        self.refused(&source, error);
                        self.report_instead(Outcome { report: Report::Ack, ..outcome });
                        true
                    }
                    _ => self.acked(&source, vec![outcome], reply),
                }
            }
            Report::Nack { nack, .. } => {
                let reply = self.send(nack.command(&source.key, receipt)).await;
                self.nacked(outcome, reply)
            }
        }
    }

    fn nacked(&self, outcome: Outcome, reply: Result<Value, Error>) -> bool {
        let Report::Nack { nack, error: text } = &outcome.report else { return true };
        let lease = &outcome.lease;
        let state = match reply.and_then(<Option<State>>::read) {
            Ok(state) => state,
            Err(error) if error.is_transient() => {
                self.send_again(vec![outcome], error.may_have_been_executed());
                return false;
            }
            Err(error) => {
                self.refused(&lease.source, &error);
                // A failure counts although its delay or its checkpoint cannot be kept.
                if let Some(plain) = nack.plain() {
                    let error = text.as_ref().map(|text| format!("{error}; the failure was: {text}"));
                    let nack = Box::new(error.iter().fold(plain, |nack, error| nack.error(error)));
                    self.report_instead(Outcome { report: Report::Nack { nack, error }, ..outcome });
                }
                return true;
            }
        };
        let counters = &lease.source.counters;
        let Some(error) = text else {
            counters.add(|counters| &counters.given_back, 1);
            return true;
        };
        match state {
            Some(State::Dead) => counters.add(|counters| &counters.died, 1),
            // The first of two executions may have counted.
            None if !outcome.repeated => counters.add(|counters| &counters.late, 1),
            _ => counters.add(|counters| &counters.retried, 1),
        }
        let (queue, id, attempt) = (&lease.source.name, &lease.id, lease.attempt);
        self.pool.report(&Event::Failed { queue, id, attempt, error, state });
        true
    }

    fn send_again(&self, outcomes: Vec<Outcome>, repeated: bool) {
        lock(&self.again).outcomes.extend(outcomes.into_iter().map(|outcome| outcome.again(repeated)));
    }

    /// Reports this at once, in place of what the server has refused.
    fn report_instead(&self, outcome: Outcome) {
        let mut again = lock(&self.again);
        again.outcomes.push(outcome.again(false));
        again.at = Some(Instant::now());
    }

    fn refused(&self, source: &Source, error: &Error) {
        if !error.is_transient() {
            self.pool.report(&Event::Refused { queue: &source.name, error });
        }
    }
}

/// Whether the server has answered.
fn has_arrived(reply: &Result<Value, Error>) -> bool {
    !reply.as_ref().is_err_and(Error::is_transient)
}

impl Outcome {
    /// To be sent again; its permit has been released.
    pub(super) fn again(self, repeated: bool) -> Outcome {
        Outcome { repeated: self.repeated || repeated, has_permit: false, ..self }
    }
}
