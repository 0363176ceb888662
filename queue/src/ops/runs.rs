//! The ends of runs of recurring messages: a run was completed, or it failed for good.
//!
//! The message then waits for the next time of its rule, with no attempts and without a receipt, or it is removed if
//! the series is over. If the run failed, a dead copy of the message is kept. The queue that decides computes the next
//! time and the sequences; [`RunEnd`] carries them, and applying it decides nothing. The ends that an operation brought
//! about are collected until [`Queue::take_ends`] hands them over for replication.

use super::advance::BYTES_OF_A_STEP;
use super::{At, Ended, Phase, Queue, Record, Sequence, State, StateKind, UnixMs};
use crate::batches::MemberEnd;
use crate::effect::Image;
use crate::errors::{Errors, PastError};
use crate::headers::HeaderBlock;
use crate::origin::Origin;
use crate::recurring::{Failure, Next, Recurring, RunEnd, Series};
use crate::rule::Rule;
use crate::sorted_set::Key;
use crate::store::Bytes;

impl Queue {
    /// The instant of the earliest failure among the runs that [`Queue::end_failed_runs`] still has to end, or that of
    /// the view if there are only members of batches; `None` if there are neither. O(1).
    #[inline]
    pub fn first_failed_run(&self) -> Option<UnixMs> {
        let member = self.has_overdue_members().then(|| self.view.at());
        self.view.first_failed().map(Key::time).or(member)
    }

    /// Ends the runs that time alone has made fail, in about `budget` steps, and the membership of messages that it has
    /// made dead, which are returned. This is a write, so only a master does it. A run takes one step, one more for
    /// each [`BYTES_OF_A_STEP`] of its payload, and those of its rule.
    pub fn end_failed_runs(&mut self, now: UnixMs, budget: usize) -> Vec<Sequence> {
        let now = self.observe(now);
        let mut steps = 0;
        while steps < budget {
            let Some(key) = self.view.first_failed() else { break };
            let Some(at) = self.messages.find_sequence(key.sequence()) else { break };
            let record = self.messages.record(at);
            steps += 1 + self.messages.bytes(at).payload.len() / BYTES_OF_A_STEP;
            steps +=
                self.messages.recurring(at).map_or(0, |state| state.shown().map_or(0, |series| series.rule.steps()));
            if !self.end_overdue_run(at, &record, now) {
                break;
            }
        }
        if self.has_overdue_members() {
            return self.end_dead_members(now, budget.saturating_sub(steps));
        }
        Vec::new()
    }

    /// Ends the run of a recurring message if time has made it fail. Returns whether it has.
    pub(crate) fn end_overdue_run(&mut self, at: At, record: &Record, now: UnixMs) -> bool {
        let State::Dead { died, reason } = record.state_at(now) else { return false };
        let failure = Failure { died, reason, attempts: record.attempts, copy: None };
        self.end_run(at, record, Ended::ByTime, Some(failure), now);
        true
    }

    /// The ends of runs that operations have brought about since the last call, for replication.
    #[inline]
    pub fn take_ends(&mut self) -> Vec<RunEnd> {
        self.optional.take(|parts| &mut parts.unsent).map_or_else(Vec::new, |unsent| unsent.0)
    }

    /// Decides what follows the end of a run, and applies it. `failure` is how the run failed, if it did; whether a
    /// copy is kept is decided here.
    pub(crate) fn end_run(&mut self, at: At, record: &Record, how: Ended<'_>, failure: Option<Failure>, now: UnixMs) {
        let mut last = self.last_sequence;
        let mut given = || {
            last = Sequence::next(last, now)?;
            Some(last)
        };
        let keeps_copies = self.settings.deadlen != Some(0);
        let failure = failure.map(|failure| {
            let copy = if keeps_copies { given() } else { None };
            Failure { copy, ..failure }
        });
        let next = match self.messages.recurring(at).and_then(|state| self.following(state, record, how, now)) {
            None => Next::Over,
            Some((due, Renewal::No)) => Next::At(due),
            // If the sequences are exhausted, which only a forged snapshot can bring about, the series is over.
            Some((due, Renewal::Yes)) => given().map_or(Next::Over, |sequence| Next::Renewed(due, sequence)),
        };
        let end = RunEnd { sequence: record.sequence, failure, next };
        self.apply_end(at, record, how, &end, now);
        self.optional.for_adding().unsent.get_or_insert_default().0.push(end);
    }

    /// The due time of the run that follows the current one; `None` if the series is over.
    fn following(&self, state: &Recurring, record: &Record, how: Ended<'_>, now: UnixMs) -> Option<(UnixMs, Renewal)> {
        let left = match (state.times_left, &state.series) {
            (Some(left), Some(_)) => Some(left.saturating_sub(1)),
            (left, _) => left,
        };
        let is_left = |left: Option<u64>| left != Some(0);
        // A burial of a message that waits for its next run makes just that run fail.
        let skips = matches!(how, Ended::Buried(_)) && record.state_at(now).kind() == StateKind::Delayed;
        // The clock of the server that delivered it may have been ahead: the time for which this run was due does not
        // come again.
        let from = if matches!(record.phase, Phase::Leased { .. }) { now.max(record.due) } else { now };
        let after = |rule: &Rule| match rule.next_after(from) {
            Some(next) if skips && next == record.due => rule.next_after(next),
            next => next,
        };
        let found = |series: &Series, due: UnixMs| Some(due).filter(|due| series.covers(*due));
        match &state.declared {
            None => {
                let series = state.series.as_ref().filter(|_| is_left(left))?;
                Some((found(series, after(&series.rule)?)?, Renewal::No))
            }
            Some(declared) => {
                let series = &declared.series;
                let left = if has_same_times(state, series) { left } else { series.times };
                let first = declared.first.filter(|first| *first > now);
                let due = first.or_else(|| after(&series.rule)).filter(|_| is_left(left))?;
                Some((found(series, due)?, Renewal::Yes))
            }
        }
    }

    /// Applies the end of a run.
    pub(crate) fn apply_end(&mut self, at: At, record: &Record, how: Ended<'_>, end: &RunEnd, now: UnixMs) {
        if matches!(how, Ended::Buried(_)) {
            self.claim_turn(at, record, now);
        }
        // An ordinary message that becomes recurring may be a member of a batch.
        self.end_member(at, record.sequence, if end.failure.is_some() { MemberEnd::Dead } else { MemberEnd::Acked });
        match how {
            Ended::Acked | Ended::Completed => self.tally.acked += 1,
            Ended::Nacked { .. } => {
                let left = end.failure.map_or(record.attempts, |failure| failure.attempts);
                self.tally.count_nack(record.attempts, left);
            }
            Ended::Taken | Ended::Forwarded | Ended::Buried(_) | Ended::ByTime => {}
        }
        if let (Some(failure), Ended::Nacked { .. } | Ended::Buried(_)) = (end.failure, how) {
            // The death of a run that time has ended is counted when time moves the message.
            self.tally.count_dead(failure.died, failure.reason);
        }
        if let Some(Failure { died, reason, attempts, copy: Some(sequence) }) = end.failure {
            let phase = Phase::Dead { died, reason };
            let copy = Record { sequence, phase, attempts, recurring: false, ..*record };
            let error = how.error().map(|text| PastError { attempt: record.attempts, at: now, text });
            if let Some(checkpoint) = how.checkpoint() {
                self.messages.set_checkpoint(at, record, checkpoint, now);
            }
            self.add_copy(at, &copy, error, now);
        }
        let Some(at) = self.messages.find_sequence(record.sequence) else { return };
        match end.next {
            Next::Over => {
                self.remember_series(at, now);
                self.remove(at, record);
            }
            Next::At(due) => self.begin_run(at, record, how, end, due, now),
            Next::Renewed(due, sequence) => self.renew(at, record, how, end, due, sequence, now),
        }
    }

    /// Adds a dead copy of a message whose run has failed, with this record, and with one more error if there is one.
    fn add_copy(&mut self, at: At, dead: &Record, error: Option<PastError<'_>>, now: UnixMs) {
        let bytes = self.messages.bytes(at);
        let payload = bytes.payload.to_vec();
        let errors = match error {
            Some(error) => Some(Errors::with(bytes.errors, &error, self.settings.errors)),
            None => bytes.errors.map(|errors| errors.block().into()),
        };
        let errors = errors.as_deref().map(Errors::stored);
        let headers = bytes.headers.map(HeaderBlock::from);
        let headers = headers.as_ref().map(HeaderBlock::headers);
        let group = self.messages.group_name(at).map(<[u8]>::to_vec);
        let bytes = Bytes { name: None, payload: &payload, errors, origin: None, headers };
        let checkpoint = self.messages.checkpoint(at).map(<[u8]>::to_vec);
        self.insert(dead, bytes, group.as_deref(), now);
        if let (Some(checkpoint), Some(copy)) = (checkpoint, self.messages.find_sequence(dead.sequence)) {
            self.messages.set_checkpoint(copy, dead, &checkpoint, now);
        }
        self.last_sequence = self.last_sequence.max(dead.sequence);
    }

    /// Makes a message wait for its next run.
    fn begin_run(&mut self, at: At, record: &Record, how: Ended<'_>, end: &RunEnd, due: UnixMs, now: UnixMs) {
        let mut priority = record.priority;
        if let Some(state) = self.messages.recurring_mut(at) {
            count_run(state, how, end, now);
            priority = state.priority;
        }
        self.messages.clear_errors(at);
        self.messages.clear_checkpoint(at);
        self.rewrite(at, record, &Record { attempts: 0, priority, ..record.moved_to(due, now) }, now);
    }

    /// Makes a message wait for its next run in the form that was declared during the last one.
    #[allow(clippy::too_many_arguments, reason = "the end of a run and where its message is")]
    fn renew(
        &mut self,
        at: At,
        record: &Record,
        how: Ended<'_>,
        end: &RunEnd,
        due: UnixMs,
        sequence: Sequence,
        now: UnixMs,
    ) {
        let Some(mut state) = self.messages.recurring(at).cloned() else { return };
        let origin = self.accepted_of(at).map(|accepted| Origin { accepted, chain: None });
        let name = self.messages.bytes(at).name.map(<[u8]>::to_vec);
        let Some(declared) = state.declared.take() else { return };
        count_run(&mut state, how, end, now);
        let times_left =
            if has_same_times(&state, &declared.series) { state.times_left } else { declared.series.times };
        let renewed = Record {
            priority: declared.priority,
            lease: declared.lease,
            recurring: true,
            ..Record::new(sequence, due, declared.retries, declared.ttl, now)
        };
        let state = Recurring { series: Some(declared.series), priority: declared.priority, times_left, ..state };
        let image = Image {
            name: name.as_deref(),
            group: declared.group.as_deref(),
            origin,
            recurring: Some(Box::new(state)),
            headers: declared.headers.as_ref().map(HeaderBlock::headers),
            ..Image::new(renewed, &declared.payload)
        };
        self.replace_with_image(at, record, &image, now);
        self.last_sequence = self.last_sequence.max(sequence);
    }

    /// Records that a delivery of a recurring message began.
    pub(crate) fn note_run(&mut self, at: At, now: UnixMs) {
        if let Some(state) = self.messages.recurring_mut(at) {
            state.last_run = Some(now);
        }
    }
}

/// Whether the next run is that of another declaration.
enum Renewal {
    No,
    Yes,
}

/// Whether a declaration has the same number of runs as the current series, whose count then continues.
pub(crate) fn has_same_times(state: &Recurring, declared: &Series) -> bool {
    state.series.as_ref().is_some_and(|series| series.times == declared.times)
}

/// Counts the end of a run.
fn count_run(state: &mut Recurring, how: Ended<'_>, end: &RunEnd, now: UnixMs) {
    if state.series.is_none() {
        // It was an ordinary message until now.
        state.last_run = None;
        return;
    }
    state.runs = state.runs.saturating_add(1);
    state.failed_runs = state.failed_runs.saturating_add(u64::from(end.failure.is_some()));
    state.times_left = state.times_left.map(|left| left.saturating_sub(1));
    if matches!(how, Ended::Taken | Ended::Forwarded) {
        state.last_run = Some(now);
    }
}
