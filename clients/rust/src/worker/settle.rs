//! Reports the outcomes of messages to the server, and extends the leases of those that are being handled.
//!
//! Each pool has one thread for this. While one batch of reports is on its way, the next one accumulates, so under load a
//! round trip carries many.

use super::calm::block_child_signals;
use super::context::{Lease, Loss};
use super::event::Event;
use super::pool::{Outcome, Pool, Report, Source};
use crate::connect::{after, lock, Backoff};
use crate::queue::command::{millis, Command};
use crate::queue::done;
use crate::queue::State;
use crate::reply;
use crate::Error;
use redis::{Cmd, Value};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most receipts of one ack, so that each command is short.
const ACKS: usize = 500;
/// How often a report is tried after the request to stop, if the server does not accept it.
const LAST_ATTEMPTS: u32 = 5;

/// Reports until nothing is left to report.
pub(super) fn run(pool: &Pool) {
    block_child_signals();
    Settler { pool, failed: Vec::new(), try_again: None, backoff: Backoff::new() }.run();
    pool.settling.fetch_sub(1, Ordering::AcqRel);
}

struct Settler<'a> {
    pool: &'a Pool,
    /// Outcomes that the server has not accepted, and when they are sent again.
    failed: Vec<Outcome>,
    try_again: Option<Instant>,
    backoff: Backoff,
}

/// What each command of a batch was for.
enum Sent {
    Extend {
        lease: Arc<Lease>,
        /// When it was sent, and for how long.
        at: Instant,
        time: Duration,
        checkpoint: Option<Vec<u8>>,
    },
    /// When they were sent, and for how long.
    ExtendAll(Vec<Arc<Lease>>, Instant, Duration),
    Acks(Vec<Outcome>),
    Complete(Outcome),
    Nack(Outcome),
}

impl Settler<'_> {
    fn run(mut self) {
        let mut open = true;
        let mut last_attempts = LAST_ATTEMPTS;
        while open || !self.failed.is_empty() {
            let new = if open {
                // A lease that begins now has to be extended later than this, and its handler is in time until then.
                let leases = self.pool.sources.iter().map(|source| source.lease.get() / 4);
                let latest = after(leases.chain(self.pool.time_limit).min().unwrap_or(Duration::MAX));
                let next = [self.next_end_or_extension(), self.try_again, self.pool.next_overdue()];
                let next = next.into_iter().flatten().fold(latest, Instant::min);
                self.pool.outcomes.take_all(Some(next))
            } else {
                last_attempts -= 1;
                if last_attempts == 0 {
                    break;
                }
                std::thread::sleep(self.try_again.map_or_else(Default::default, |at| at - Instant::now().min(at)));
                None
            };
            open = new.is_some();
            let mut outcomes: Vec<Outcome> = new.into_iter().flatten().collect();
            let permits = |outcomes: &[Outcome]| outcomes.iter().filter(|outcome| outcome.has_permit).count();
            let all = permits(&outcomes);
            outcomes = self.pool.pass_on(outcomes);
            // Another message is popped only after the report of this one, so that the worker never holds more than it works
            // on. The server of one queue must not delay the pops of other queues, though.
            let reported = if self.pool.sources.len() == 1 { permits(&outcomes) } else { 0 };
            self.pool.permits.release(all - reported);
            let now = Instant::now();
            self.pool.take_from_handlers(self.over_limit(now), Loss::TimeLimit);
            outcomes.append(&mut self.pool.overdue(now));
            if !open || self.try_again.is_some_and(|at| at <= now) {
                outcomes.append(&mut self.failed);
                self.try_again = None;
            }
            let due = self.due(now);
            if !outcomes.is_empty() || !due.is_empty() {
                self.settle(outcomes, due);
            }
            self.pool.permits.release(reported);
        }
    }

    fn next_end_or_extension(&self) -> Option<Instant> {
        let leases = lock(&self.pool.leases);
        leases.values().map(|lease| lease.limit_at().map_or(lease.extend_at(), |at| at.min(lease.extend_at()))).min()
    }

    /// The leases whose handlers have run for longer than they may.
    fn over_limit(&self, now: Instant) -> Vec<Arc<Lease>> {
        if self.pool.time_limit.is_none() {
            return Vec::new();
        }
        let is_over = |lease: &&Arc<Lease>| lease.limit_at().is_some_and(|at| at <= now);
        lock(&self.pool.leases).values().filter(is_over).cloned().collect()
    }

    /// The leases half of whose time is over, and those of the same queues that are to be extended soon: one command for all.
    fn due(&self, now: Instant) -> Vec<Arc<Lease>> {
        let leases = lock(&self.pool.leases);
        let due = leases.values().filter(|lease| lease.extend_at() <= now).map(|lease| lease.source);
        let latest: HashMap<usize, Instant> =
            due.filter_map(|number| Some((number, now + self.pool.source(number)?.lease.get() / 4))).collect();
        let is_due = |lease: &&Arc<Lease>| latest.get(&lease.source).is_some_and(|at| lease.extend_at() <= *at);
        leases.values().filter(is_due).cloned().collect()
    }

    fn settle(&mut self, outcomes: Vec<Outcome>, due: Vec<Arc<Lease>>) {
        let (mut commands, mut sent) = (Vec::new(), Vec::new());
        let now = Instant::now();
        let time_of = |source: usize| self.pool.source(source).map_or(Duration::ZERO, |source| source.lease.get());
        let (due, singly): (Vec<_>, Vec<_>) = due.into_iter().partition(|lease| self.may_extend_together(lease));
        for lease in singly {
            let (checkpoint, time) = (lease.take_checkpoint(), time_of(lease.source));
            if let Some(command) = self.extend(&lease, time, checkpoint.as_deref()) {
                commands.push(command);
                sent.push(Sent::Extend { lease, at: now, time, checkpoint });
            }
        }
        for number in 0..self.pool.sources.len() {
            let time = time_of(number);
            let of_queue: Vec<_> = due.iter().filter(|lease| lease.source == number).cloned().collect();
            for leases in of_queue.chunks(ACKS) {
                if let Some(command) = self.extend_all(leases, time) {
                    commands.push(command);
                    sent.push(Sent::ExtendAll(leases.to_vec(), now, time));
                }
            }
        }
        // Two lists for each queue: a repeated ack may find its message gone because the first one was executed.
        let mut acks: Vec<Vec<Outcome>> = (0..self.pool.sources.len() * 2).map(|_| Vec::new()).collect();
        for outcome in outcomes {
            match &outcome.report {
                Report::Nack { nack, .. } => {
                    if let Some(source) = self.pool.source(outcome.source) {
                        commands.push(nack.command(&source.key, outcome.receipt.as_ref()));
                        sent.push(Sent::Nack(outcome));
                    }
                }
                Report::Complete(result) => {
                    if let Some(source) = self.pool.source(outcome.source) {
                        commands.push(done::command(&source.key, outcome.receipt.as_ref(), Some(result)));
                        sent.push(Sent::Complete(outcome));
                    }
                }
                Report::Ack => {
                    if let Some(list) = acks.get_mut(outcome.source * 2 + usize::from(outcome.repeated)) {
                        list.push(outcome);
                    }
                }
            }
        }
        for mut list in acks.into_iter().filter(|list| !list.is_empty()) {
            while !list.is_empty() {
                let part = list.split_off(list.len().saturating_sub(ACKS));
                if let Some(command) = self.ack(&part) {
                    commands.push(command);
                    sent.push(Sent::Acks(part));
                }
            }
        }
        let replies = self.pool.client.batch(&commands);
        let mut all_arrived = true;
        for (sent, reply) in sent.into_iter().zip(replies) {
            all_arrived &= !reply.as_ref().is_err_and(Error::is_transient);
            match sent {
                Sent::Extend { lease, at, time, checkpoint } => {
                    let is_refused = checkpoint.is_some() && reply.as_ref().is_err_and(|error| !error.is_transient());
                    if reply.is_err() && !is_refused {
                        lease.keep_checkpoint(checkpoint);
                    }
                    self.extended(&lease, (at, time), reply);
                    if is_refused {
                        // It may be too large. The lease is extended without it.
                        lease.try_again_at(now);
                    }
                }
                Sent::ExtendAll(leases, at, time) => self.all_extended(&leases, (at, time), reply),
                Sent::Acks(outcomes) => self.acked(outcomes, reply),
                Sent::Complete(outcome) => self.completed(outcome, reply),
                Sent::Nack(outcome) => self.nacked(outcome, reply),
            }
        }
        if all_arrived {
            self.backoff.reset();
        }
        if !self.failed.is_empty() && self.try_again.is_none() {
            self.try_again = Some(Instant::now() + self.backoff.next());
        }
    }

    fn may_extend_together(&self, lease: &Lease) -> bool {
        let singly = |source: &Source| source.extends_singly.load(Ordering::Relaxed) || lease.has_checkpoint();
        self.pool.source(lease.source).is_some_and(|source| !singly(source))
    }

    fn extend_all(&self, leases: &[Arc<Lease>], time: Duration) -> Option<Cmd> {
        let mut command = Command::new("DQ.MEXTEND", &self.pool.source(leases.first()?.source)?.key);
        command.word(leases.len());
        leases.iter().for_each(|lease| command.word(lease.receipt.as_ref()));
        command.option("LEASE", millis(time));
        Some(command.0)
    }

    /// The reply has a deadline for each lease that could be extended, and null for each other one.
    fn all_extended(&mut self, leases: &[Arc<Lease>], sent: (Instant, Duration), reply: Result<Value, Error>) {
        let replies = match reply.and_then(reply::list) {
            Ok(replies) => replies,
            Err(error) => {
                let Some(source) = leases.first().and_then(|first| self.pool.source(first.source)) else { return };
                if let Error::NoPermission(_) = error {
                    source.extends_singly.store(true, Ordering::Relaxed);
                    return self.pool.outcomes.nudge();
                }
                let pause = if error.is_transient() { self.backoff.next() } else { sent.1 / 8 };
                leases.iter().for_each(|lease| lease.try_again_at(Instant::now() + pause));
                return self.refused(leases.first().map_or(0, |first| first.source), &error);
            }
        };
        for (lease, reply) in leases.iter().zip(replies) {
            self.extended(lease, sent, Ok(reply));
        }
    }

    fn extend(&self, lease: &Lease, time: Duration, checkpoint: Option<&[u8]>) -> Option<Cmd> {
        let mut command = Command::new("DQ.EXTEND", &self.pool.source(lease.source)?.key);
        command.word(lease.receipt.as_ref());
        command.option("LEASE", millis(time));
        command.maybe("CHECKPOINT", checkpoint);
        Some(command.0)
    }

    fn ack(&self, outcomes: &[Outcome]) -> Option<Cmd> {
        let source = outcomes.first().and_then(|outcome| self.pool.source(outcome.source))?;
        let mut command = Command::new("DQ.ACK", &source.key);
        outcomes.iter().for_each(|outcome| command.word(outcome.receipt.as_ref()));
        Some(command.0)
    }

    /// `at` is when the command was sent: the lease runs at least from then on.
    fn extended(&mut self, lease: &Lease, (at, time): (Instant, Duration), reply: Result<Value, Error>) {
        let Some(source) = self.pool.source(lease.source) else { return };
        match reply {
            Ok(Value::Nil) => {
                // The handler may have ended while this was asked.
                let still_runs = lock(&self.pool.leases).values().any(|other| other.receipt == lease.receipt);
                lock(&self.pool.leases).retain(|_, other| other.receipt != lease.receipt);
                lease.lose(None);
                if still_runs {
                    self.pool.report_loss(source, lease);
                }
            }
            Ok(deadline) => {
                source.counters.add(|counters| &counters.extended, 1);
                match reply::int(&deadline) {
                    Ok(deadline) => lease.extended((at, Instant::now()), time, deadline),
                    Err(_) => lease.restart(at, time),
                }
            }
            Err(error) => {
                let pause = if error.is_transient() { self.backoff.next() } else { time / 8 };
                lease.try_again_at(Instant::now() + pause);
                self.refused(lease.source, &error);
            }
        }
    }

    fn acked(&mut self, outcomes: Vec<Outcome>, reply: Result<Value, Error>) {
        let Some((first, counters)) =
            outcomes.first().and_then(|first| Some((first, &self.pool.source(first.source)?.counters)))
        else {
            return;
        };
        let all = u64::try_from(outcomes.len()).unwrap_or_default();
        match reply.and_then(|reply| reply::count(&reply)) {
            Ok(acked) => {
                // If an ack was repeated, the server may have counted the first one.
                counters.acked(all, if first.repeated { all } else { acked });
            }
            Err(error) if error.is_transient() => {
                let repeated = error.may_have_been_executed();
                self.failed.extend(outcomes.into_iter().map(|outcome| outcome.again(repeated)));
            }
            Err(error) => self.refused(first.source, &error),
        }
    }

    /// The work is done, and must not be repeated only because its result cannot be stored: it is acknowledged without one.
    fn completed(&mut self, outcome: Outcome, reply: Result<Value, Error>) {
        match &reply {
            Err(error) if !error.is_transient() => {
                self.refused(outcome.source, error);
                self.report_instead(Outcome { report: Report::Ack, ..outcome });
            }
            _ => self.acked(vec![outcome], reply),
        }
    }

    /// Reports this at once, in place of what the server has refused.
    fn report_instead(&mut self, outcome: Outcome) {
        self.failed.push(outcome.again(false));
        self.try_again = Some(Instant::now());
    }

    fn nacked(&mut self, outcome: Outcome, reply: Result<Value, Error>) {
        let Some(source) = self.pool.source(outcome.source) else { return };
        let state = match reply.and_then(|reply| reply::optional(reply, |reply| reply::text(&reply)?.parse::<State>()))
        {
            Ok(state) => state,
            Err(error) if error.is_transient() => {
                let repeated = error.may_have_been_executed();
                return self.failed.push(outcome.again(repeated));
            }
            Err(error) => {
                self.refused(outcome.source, &error);
                // A failure counts although its delay or its checkpoint cannot be kept.
                let Report::Nack { nack, error: text } = &outcome.report else { return };
                let Some(plain) = nack.plain() else { return };
                let error = text.as_ref().map(|text| format!("{error}; the failure was: {text}"));
                let nack = Box::new(error.iter().fold(plain, |nack, error| nack.error(error)));
                return self.report_instead(Outcome { report: Report::Nack { nack, error }, ..outcome });
            }
        };
        let Report::Nack { error, .. } = &outcome.report else { return };
        let Some(error) = error else {
            return source.counters.add(|counters| &counters.given_back, 1);
        };
        match state {
            Some(State::Dead) => source.counters.add(|counters| &counters.died, 1),
            Some(_) => source.counters.add(|counters| &counters.retried, 1),
            // The first of two executions may have counted.
            None if outcome.repeated => source.counters.add(|counters| &counters.retried, 1),
            None => source.counters.add(|counters| &counters.late, 1),
        }
        let (queue, id, attempt) = (&source.name, &outcome.id, outcome.attempt);
        self.pool.report(&Event::Failed { queue, id, attempt, error, state });
    }

    fn refused(&self, source: usize, error: &Error) {
        if let Some(source) = self.pool.source(source).filter(|_| !error.is_transient()) {
            self.pool.report(&Event::Refused { queue: &source.name, error });
        }
    }
}

impl Outcome {
    /// To be sent again; its permit has been released.
    pub(super) fn again(self, repeated: bool) -> Outcome {
        Outcome { repeated: self.repeated || repeated, has_permit: false, ..self }
    }
}
