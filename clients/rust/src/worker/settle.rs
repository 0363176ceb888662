//! Reports the outcomes of messages to the server, and extends the leases of those that are being handled.
//!
//! Each queue of a pool has a task for this, so that the server of one does not hold up the others. While one batch of
//! reports is on its way, the next one accumulates, so under load a round trip carries many.

use super::event::Event;
use super::lease::Lease;
use super::loss::Loss;
use super::outcome::{Outcome, Report};
use super::running_pool::RunningPool;
use super::source::{Source, SHORTEST_LEASE};
use crate::connect::{Backoff, Clock, Executed};
use crate::error::Error;
use crate::queue::State;
use crate::reply::{self, Field};
use crate::request::{Command, Resend};
use crate::sync::lock;
use crate::time::{after, millis};
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
const LAST_ATTEMPTS: u32 = 8;

/// How long the task that looks at the leases sleeps at most.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// Reports until nothing is left to report.
pub(super) async fn run(pool: Arc<RunningPool>, source: Arc<Source>, outcomes: UnboundedReceiver<Outcome>) {
    let again = Again { outcomes: Vec::new(), at: None, backoff: Backoff::new() };
    Settler { pool: &pool, source: &source, again: Mutex::new(again) }.run(outcomes).await;
}

struct Settler<'a> {
    pool: &'a RunningPool,
    source: &'a Arc<Source>,
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
            let overdue = self.source.handoff.overdue_at();
            let next = [overdue, again].into_iter().flatten().fold(check, Instant::min);
            let next = if open { next } else { again.unwrap_or_else(Instant::now) };
            tokio::select! {
                biased;
                count = inbox.recv_many(&mut outcomes, usize::MAX), if open => open = count > 0,
                () = self.pool.ended.cancelled(), if open && !inbox.is_closed() => inbox.close(),
                () = self.source.changed.notified(), if open => check = Instant::now(),
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
            outcomes = self.source.handoff.pass_on(outcomes);
            // Another message is popped only after the report of this one, so that the worker never holds more than it
            // works on. The server of one queue must not delay the pops of other queues, though.
            let reported = if self.pool.sources.len() == 1 { permits(&outcomes) } else { 0 };
            self.pool.permits.release(all - reported);
            let now = Instant::now();
            outcomes.append(&mut self.source.handoff.overdue(now));
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

    /// When there is something to do for a lease at the earliest. A lease that begins meanwhile wakes this task.
    fn next(&self) -> Instant {
        *lock(&self.source.looks_at) = after(2 * LONGEST_SLEEP);
        let extension = lock(&self.source.leases).values().filter_map(|lease| lease.extend_at()).min();
        let next = [extension, self.over_at()].into_iter().flatten().fold(after(LONGEST_SLEEP), Instant::min);
        *lock(&self.source.looks_at) = next;
        next
    }

    /// When the first lease or handler is over.
    fn over_at(&self) -> Option<Instant> {
        let running = lock(&self.source.leases).values().filter_map(|lease| lease.over_at()).min();
        let ended = lock(&self.source.unreported).values().filter_map(|lease| lease.lost_at()).min();
        running.into_iter().chain(ended).min()
    }

    /// Takes messages from handlers that have run for longer than they may, and marks leases that are over as lost.
    fn watch(&self, now: Instant) {
        let mut over = Vec::new();
        let mut lost = Vec::new();
        for lease in lock(&self.source.leases).values() {
            if lease.is_over_limit(now) {
                over.push(Arc::clone(lease));
            } else if lease.is_lost() {
                lost.push(Arc::clone(lease));
            }
        }
        lost.extend(lock(&self.source.unreported).values().filter(|lease| lease.is_lost()).cloned());
        lost.iter().for_each(|lease| self.pool.report_loss(self.source, lease));
        self.pool.take_from_handlers(self.source, over, Loss::TimeLimit);
    }

    /// Reports outcomes and, if that time has come, extends leases, all at once, and watches the time while the server
    /// is silent.
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

    /// The commands that report outcomes. Acks go together, but not with repeated ones, whose messages may be gone
    /// because the first command was executed.
    fn reports(&self, outcomes: Vec<Outcome>) -> Vec<BoxFuture<'_, bool>> {
        let (mut reports, mut acks) = (Vec::new(), [Vec::new(), Vec::new()]);
        for outcome in outcomes {
            let [first, repeated] = &mut acks;
            match outcome.report {
                Report::Ack if outcome.repeated => repeated.push(outcome),
                Report::Ack => first.push(outcome),
                Report::Complete(_) => reports.push(self.report(vec![outcome]).boxed()),
                Report::Nack(_) => reports.push(self.report(vec![outcome.with_checkpoint()]).boxed()),
            }
        }
        for mut alike in acks {
            while !alike.is_empty() {
                let rest = alike.split_off(alike.len().min(ACKS));
                reports.push(self.report(std::mem::replace(&mut alike, rest)).boxed());
            }
        }
        reports
    }

    /// Extends the leases half of whose time is over, and those that are to be extended soon: one command for all of
    /// them.
    fn extensions(&self, now: Instant) -> Vec<BoxFuture<'_, bool>> {
        let leases: Vec<_> = lock(&self.source.leases).values().cloned().collect();
        let is_due = |lease: &Arc<Lease>, by: Instant| lease.extend_at().is_some_and(|at| at <= by);
        if !leases.iter().any(|lease| is_due(lease, now)) {
            return Vec::new();
        }
        let due = leases.into_iter().filter(|lease| is_due(lease, now + lease.time() / 4));
        let is_single =
            |lease: &Arc<Lease>| self.source.extends_singly.load(Ordering::Relaxed) || lease.has_checkpoint();
        let (singly, together): (Vec<_>, Vec<_>) = due.partition(is_single);
        let commands = singly.chunks(1).chain(together.chunks(ACKS));
        commands.map(|leases| self.extend(leases.to_vec()).boxed()).collect()
    }

    /// Sends a command once. An error says that it was not sent.
    async fn send(&self, command: Command, clock: Clock) -> Result<Executed, Error> {
        self.pool.core.deliver(&command.0, Resend::Harmless, Duration::ZERO, clock).await
    }

    /// Extends leases. One alone takes along what its handler has stored.
    async fn extend(&self, leases: Vec<Arc<Lease>>) -> bool {
        let [first, others @ ..] = leases.as_slice() else { return true };
        let (source, is_single) = (self.source, others.is_empty());
        let checkpoint = if is_single { first.take_checkpoint() } else { None };
        let command = match is_single {
            true => Command::new("DQ.EXTEND", &source.name),
            false => Command::new("DQ.MEXTEND", &source.name).word(leases.len()),
        };
        let asked = source.asked_lease();
        let command = command.words(leases.iter().map(|lease| &lease.receipt)).maybe("LEASE", asked.map(millis));
        let clock = if source.may_ask_time.load(Ordering::Relaxed) { Clock::Asked } else { Clock::Ignored };
        let executed = self.send(command.maybe("CHECKPOINT", checkpoint.as_deref()), clock).await;
        let executed = match executed {
            Ok(executed) => executed,
            Err(_) => {
                // It was not sent, whatever the reason is.
                first.keep_checkpoint(checkpoint);
                return self.not_extended(&leases, true);
            }
        };
        if clock == Clock::Asked && executed.now.is_none() && executed.reply.is_ok() {
            source.may_ask_time.store(false, Ordering::Relaxed);
        }
        // Several have an array with the reply for each.
        let replies =
            if is_single { executed.reply.map(|reply| vec![reply]) } else { executed.reply.and_then(reply::list) };
        match replies {
            Ok(replies) => {
                self.pool.heard();
                let at = (executed.sent, executed.now);
                leases.iter().zip(replies).for_each(|(lease, reply)| self.extended(lease, at, &reply));
                true
            }
            Err(Error::NoPermission(_)) if !is_single => {
                source.extends_singly.store(true, Ordering::Relaxed);
                source.changed.notify_one();
                true
            }
            Err(error) => {
                self.refused(&error);
                if error.is_transient() {
                    first.keep_checkpoint(checkpoint);
                } else if checkpoint.is_some() {
                    // It may be too large. The lease is extended without it.
                    first.try_again_at(Instant::now());
                    return true;
                }
                self.not_extended(&leases, error.is_transient())
            }
        }
    }

    /// Decides when leases are extended that could not be. Returns whether the server has answered.
    fn not_extended(&self, leases: &[Arc<Lease>], is_transient: bool) -> bool {
        let (pause, now) = (lock(&self.again).backoff.next(), Instant::now());
        for lease in leases {
            lease.try_again_at(now + if is_transient { pause } else { lease.time() / 8 });
        }
        !is_transient
    }

    /// The reply is the new end of the lease, or null if it is lost. The lease runs at least from when the command was
    /// sent.
    fn extended(&self, lease: &Arc<Lease>, (sent, now): (Instant, Option<Duration>), reply: &Value) {
        if *reply == Value::Nil {
            // The handler may have ended while this was asked.
            let still_runs = lock(&self.source.leases).remove(&lease.number).is_some();
            lease.lose(None);
            if still_runs {
                self.pool.report_loss(self.source, lease);
            }
            return;
        }
        lock(&self.source.counters).extended += 1;
        let deadline = reply::int(reply).ok().and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
        let time = deadline.zip(now).map(|(deadline, now)| deadline.saturating_sub(now));
        time.into_iter().for_each(|time| self.source.learn(time));
        lease.restart(sent, time.unwrap_or_else(|| self.source.lease()));
    }

    /// Reports an outcome, or several acks. Returns whether the server has answered.
    async fn report(&self, outcomes: Vec<Outcome>) -> bool {
        let Some(Outcome { lease, report, .. }) = outcomes.first() else { return true };
        let (key, receipt) = (&self.source.name, lease.receipt.as_ref());
        let command = match report {
            Report::Ack => Command::new("DQ.ACK", key).words(outcomes.iter().map(|outcome| &outcome.lease.receipt)),
            Report::Complete(result) => Command::new("DQ.COMPLETE", key).word(receipt).word("RESULT").word(result),
            Report::Nack(failure) => failure.nack.command(key, receipt),
        };
        let (is_transient, error) = match self.send(command, Clock::Ignored).await {
            // A password that is refused, for example, is no answer to what was not sent.
            Err(error) => (true, error),
            Ok(executed) => match executed.reply.and_then(|reply| self.reported(&outcomes, reply)) {
                Ok(()) => {
                    self.source.answered(&outcomes);
                    return true;
                }
                Err(error) => (error.is_transient(), error),
            },
        };
        if is_transient {
            let again = outcomes.into_iter().map(|outcome| outcome.again(error.may_have_been_executed()));
            lock(&self.again).outcomes.extend(again);
            return false;
        }
        self.refused(&error);
        let mut instead = Vec::new();
        for outcome in outcomes {
            match outcome.instead(&error) {
                Ok(outcome) => instead.push(outcome),
                Err(outcome) => self.source.refused(&[outcome]),
            }
        }
        if !instead.is_empty() {
            let mut again = lock(&self.again);
            again.outcomes.extend(instead);
            again.at = Some(Instant::now());
        }
        true
    }

    /// Counts what the server has accepted.
    fn reported(&self, outcomes: &[Outcome], reply: Value) -> Result<(), Error> {
        let Some(Outcome { lease, report, repeated, .. }) = outcomes.first() else { return Ok(()) };
        let counters = &self.source.counters;
        let Report::Nack(failure) = report else {
            let (all, acked) = (u64::try_from(outcomes.len()).unwrap_or_default(), reply::count(&reply)?);
            // If an ack was repeated, the server may have counted the first one.
            lock(counters).ack(all, if *repeated { all } else { acked });
            return Ok(());
        };
        let state = <Option<State>>::read(reply)?;
        let Some(error) = &failure.text else {
            lock(counters).given_back += 1;
            self.source.given_back.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        match state {
            Some(State::Dead) => lock(counters).died += 1,
            // The first of two executions may have counted.
            None if !repeated => {
                lock(counters).late += 1;
                lease.lose(None);
                self.pool.report_loss(self.source, lease);
            }
            Some(State::Delayed | State::Ready | State::Inflight | State::Done) | None => lock(counters).retried += 1,
        }
        let (source, lease, error) = (Arc::clone(self.source), Arc::clone(lease), error.clone());
        self.pool.reporter.report(move |emit| {
            let (queue, id, attempt) = (&source.name, &lease.id, lease.attempt);
            emit(&Event::Failed { queue, id, attempt, error: &error, state });
        });
        Ok(())
    }

    fn refused(&self, error: &Error) {
        if !error.is_transient() {
            let (source, error) = (Arc::clone(self.source), error.clone());
            self.pool.reporter.report(move |emit| emit(&Event::Refused { queue: &source.name, error: &error }));
        }
    }
}
