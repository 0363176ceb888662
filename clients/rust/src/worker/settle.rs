//! Reports the outcomes of messages to the server, and extends the leases of those that are being handled.
//!
//! Each pool has one task for this. While one batch of reports is on its way, the next one accumulates, so under load a
//! round trip carries many.

use super::context::Failure;
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
use std::collections::HashMap;
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
        let shortest = self.pool.sources.iter().map(|source| source.lease() / 4).chain(self.pool.spec.time_limit).min();
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
        let mut over = Vec::new();
        for lease in lock(&self.pool.leases).values() {
            match lease.is_over_limit(now) {
                true => over.push(Arc::clone(lease)),
                // It notes by itself that it is over.
                false => drop(lease.is_lost()),
            }
        }
        self.pool.take_from_handlers(over, Loss::TimeLimit);
    }

    /// Reports outcomes and, if that time has come, extends leases, all at once, and watches the time while the server is
    /// silent.
    async fn settle(&self, outcomes: Vec<Outcome>, check: Instant) {
        let now = Instant::now();
        let mut reports = if check <= now { self.extensions(now) } else { Vec::new() };
        reports.extend(self.reports(outcomes));
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

    /// The commands that report outcomes. Acks of one queue go together, but not with repeated ones, whose messages may be gone
    /// because the first command was executed.
    fn reports(&self, outcomes: Vec<Outcome>) -> Vec<BoxFuture<'_, bool>> {
        let (mut reports, mut acks) = (Vec::new(), HashMap::<_, Vec<_>>::new());
        for outcome in outcomes {
            if !matches!(outcome.report, Report::Ack) {
                reports.push(self.report(vec![outcome]).boxed());
                continue;
            }
            let alike = acks.entry((Arc::as_ptr(&outcome.lease.source), outcome.repeated)).or_default();
            alike.push(outcome);
            if alike.len() == ACKS {
                reports.push(self.report(std::mem::take(alike)).boxed());
            }
        }
        reports.extend(acks.into_values().map(|acks| self.report(acks).boxed()));
        reports
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
            let soon = now + source.lease() / 4;
            let due = mine.into_iter().filter(|lease| lease.extend_at() <= soon);
            let is_single =
                |lease: &Arc<Lease>| source.extends_singly.load(Ordering::Relaxed) || lease.has_checkpoint();
            let (singly, together): (Vec<_>, Vec<_>) = due.partition(is_single);
            let commands = singly.chunks(1).chain(together.chunks(ACKS));
            extensions.extend(commands.map(|leases| self.extend(leases.to_vec(), now).boxed()));
        }
        extensions
    }

    async fn send(&self, command: Command) -> Result<Value, Error> {
        self.pool.core.attempt(&command.0, Resend::Harmless, Duration::ZERO).await
    }

    /// Extends leases of one queue. One alone takes along what its handler has stored.
    async fn extend(&self, leases: Vec<Arc<Lease>>, now: Instant) -> bool {
        let [first, others @ ..] = leases.as_slice() else { return true };
        let (source, time, is_single) = (&first.source, first.source.lease(), others.is_empty());
        let checkpoint = if is_single { first.take_checkpoint() } else { None };
        let command = match is_single {
            true => Command::new("DQ.EXTEND", &source.key),
            false => Command::new("DQ.MEXTEND", &source.key).word(leases.len()),
        };
        let command = command.words(leases.iter().map(|lease| &lease.receipt)).word("LEASE").word(millis(time));
        let reply = self.send(command.maybe("CHECKPOINT", checkpoint.as_deref())).await;
        // Several have an array with the reply for each.
        match if is_single { reply.map(|reply| vec![reply]) } else { reply.and_then(reply::list) } {
            Ok(replies) => {
                leases.iter().zip(replies).for_each(|(lease, reply)| self.extended(lease, (now, time), &reply))
            }
            Err(Error::NoPermission(_)) if !is_single => {
                source.extends_singly.store(true, Ordering::Relaxed);
                self.pool.changed.notify_one();
            }
            Err(error) => {
                let pause = match error.is_transient() {
                    true => lock(&self.again).backoff.next(),
                    // The checkpoint may be too large. The lease is extended without it.
                    false if checkpoint.is_some() => Duration::ZERO,
                    false => time / 8,
                };
                leases.iter().for_each(|lease| lease.try_again_at(Instant::now() + pause));
                self.refused(source, &error);
                if error.is_transient() {
                    first.keep_checkpoint(checkpoint);
                    return false;
                }
            }
        }
        true
    }

    /// The reply is the new end of the lease, or null if it is lost. `at` is when the command was sent: the lease runs at
    /// least from then on.
    fn extended(&self, lease: &Lease, (at, time): (Instant, Duration), reply: &Value) {
        if *reply == Value::Nil {
            // The handler may have ended while this was asked.
            let still_runs = lock(&self.pool.leases).remove(&lease.number).is_some();
            lease.lose(None);
            if still_runs {
                self.pool.report_loss(lease);
            }
            return;
        }
        lock(&lease.source.counters).extended += 1;
        match reply::int(reply) {
            Ok(deadline) => lease.extended((at, Instant::now()), time, deadline),
            Err(_) => lease.restart(at, time),
        }
    }

    /// Reports an outcome, or several acks of one queue. Returns whether the server has answered.
    async fn report(&self, outcomes: Vec<Outcome>) -> bool {
        let Some(Outcome { lease, report, .. }) = outcomes.first() else { return true };
        let (source, receipt) = (Arc::clone(&lease.source), lease.receipt.as_ref());
        let command = match report {
            Report::Ack => {
                Command::new("DQ.ACK", &source.key).words(outcomes.iter().map(|outcome| &outcome.lease.receipt))
            }
            Report::Complete(result) => {
                Command::new("DQ.COMPLETE", &source.key).word(receipt).word("RESULT").word(result)
            }
            Report::Nack(failure) => failure.nack.command(&source.key, receipt),
        };
        match self.send(command).await.and_then(|reply| self.reported(&outcomes, reply)) {
            Ok(()) => {}
            Err(error) if error.is_transient() => {
                let again = outcomes.into_iter().map(|outcome| outcome.again(error.may_have_been_executed()));
                lock(&self.again).outcomes.extend(again);
                return false;
            }
            Err(error) => {
                self.refused(&source, &error);
                let instead: Vec<_> = outcomes.into_iter().filter_map(|outcome| outcome.instead(&error)).collect();
                if !instead.is_empty() {
                    let mut again = lock(&self.again);
                    again.outcomes.extend(instead);
                    again.at = Some(Instant::now());
                }
            }
        }
        true
    }

    /// Counts what the server has accepted.
    fn reported(&self, outcomes: &[Outcome], reply: Value) -> Result<(), Error> {
        let Some(Outcome { lease, report, repeated, .. }) = outcomes.first() else { return Ok(()) };
        let counters = &lease.source.counters;
        let Report::Nack(failure) = report else {
            let (all, acked) = (u64::try_from(outcomes.len()).unwrap_or_default(), reply::count(&reply)?);
            // If an ack was repeated, the server may have counted the first one.
            lock(counters).ack(all, if *repeated { all } else { acked });
            return Ok(());
        };
        let state = <Option<State>>::read(reply)?;
        let Some(error) = &failure.text else {
            lock(counters).given_back += 1;
            return Ok(());
        };
        match state {
            Some(State::Dead) => lock(counters).died += 1,
            // The first of two executions may have counted.
            None if !repeated => lock(counters).late += 1,
            _ => lock(counters).retried += 1,
        }
        let (queue, id, attempt) = (&lease.source.name, &lease.id, lease.attempt);
        self.pool.report(&Event::Failed { queue, id, attempt, error, state });
        Ok(())
    }

    fn refused(&self, source: &Source, error: &Error) {
        if !error.is_transient() {
            self.pool.report(&Event::Refused { queue: &source.name, error });
        }
    }
}

impl Outcome {
    /// To be sent again; its permit has been released.
    pub(super) fn again(self, repeated: bool) -> Outcome {
        Outcome { repeated: self.repeated || repeated, has_permit: false, ..self }
    }

    /// What is reported in place of this, which the server has refused.
    fn instead(self, error: &Error) -> Option<Outcome> {
        let report = match &self.report {
            Report::Ack => return None,
            // The work is done, and must not be repeated only because its result cannot be stored.
            Report::Complete(_) => Report::Ack,
            // A failure counts although its delay or its checkpoint cannot be kept.
            Report::Nack(Failure { nack, text }) => {
                let (nack, text) = (nack.plain()?, text.as_ref());
                let text = text.map(|text| format!("{error}; the failure was: {text}"));
                Report::Nack(text.map_or_else(Failure::give_back, |text| Failure::new(nack, text)))
            }
        };
        Some(Outcome { report, ..self }.again(false))
    }
}
