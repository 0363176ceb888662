//! Declaring schedules.
//!
//! A declaration describes a recurring message. If the queue already holds the message as described, nothing changes.
//! If it holds the message in another form, what was declared applies at once while the message waits for a run, and
//! from the next run on if a run has begun. A successor waits like a message that was never delivered, so a declaration
//! replaces it. Every process may therefore declare its schedules when it starts.

use super::runs::has_same_times;
use super::{At, DurationMs, Phase, Queue, Record, Sequence, StateKind, UnixMs};
use crate::effect::Image;
use crate::headers::{HeaderBlock, Headers};
use crate::id::Floor;
use crate::origin::Origin;
use crate::recurring::{Declaration, Recurring, Series};
use crate::settings::Retries;

/// A recurring message as a client declares it.
#[derive(Clone, Debug, Default)]
pub struct Schedule<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
    /// The times.
    pub series: Series,
    /// The due time of the first run; it is used only if the series is new or its rule changes.
    pub first: Option<UnixMs>,
    /// The priority; higher ones are delivered first.
    pub priority: i8,
    /// The number of redeliveries; overrides the queue's setting.
    pub retries: Option<Retries>,
    /// The duration of its leases; overrides the queue's setting.
    pub lease: Option<DurationMs>,
    /// The time to live of each run; overrides the queue's setting. Zero means no limit.
    pub ttl: Option<DurationMs>,
    /// The name of its group.
    pub group: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Option<Headers<'a>>,
}

/// The outcome of a declaration. Every outcome other than the first three changes at most a total.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheduled<'a> {
    /// The message was added.
    Created(Image<'a>),
    /// The message waits for a run, and is now as declared.
    Changed(Image<'a>),
    /// A run of the message with this sequence has begun. What was declared applies from the next run on; `None`
    /// withdraws an earlier declaration that had not applied yet.
    Deferred(Sequence, Option<Box<Declaration>>),
    /// The queue holds the message as declared.
    Unchanged,
    /// The first run would be due after the end of the series.
    AfterEnd,
    /// The queue accepts no messages.
    Closed,
    /// The payload is larger than the settings allow.
    TooLarge,
    /// The queue holds as many messages as `MAXLEN` allows.
    Full {
        /// The number of messages that it holds.
        held: u64,
    },
    /// No sequence is left, which only a forged snapshot can bring about.
    Exhausted,
}

impl Queue {
    /// Declares a recurring message. O(log n).
    pub fn schedule<'a>(&mut self, now: UnixMs, floor: &mut Floor, schedule: &Schedule<'a>) -> Scheduled<'a> {
        let now = self.observe(now);
        let wanted = self.completed(schedule);
        let held = self.messages.find_named(schedule.name);
        if held.is_some_and(|at| self.holds_as(at, &wanted)) {
            return Scheduled::Unchanged;
        }
        if self.is_closed(now) {
            return Scheduled::Closed;
        }
        if self.is_too_large(schedule.payload) {
            return Scheduled::TooLarge;
        }
        let kept_due = held.and_then(|at| self.kept_due(at, &wanted.series, now));
        let Some(first) = kept_due.or(wanted.first).or_else(|| wanted.series.rule.next_after(now)) else {
            return Scheduled::AfterEnd;
        };
        // A client may have moved the run beyond the end: it stays there, unless another end is declared.
        let same_end = || {
            let held = held.and_then(|at| self.messages.recurring(at)).and_then(|state| state.series.as_ref());
            kept_due.is_some() && held.is_some_and(|held| held.until == wanted.series.until)
        };
        if !wanted.series.covers(first) && !same_end() {
            return Scheduled::AfterEnd;
        }
        let makes_room = held.is_some_and(|at| self.is_live(at, now));
        if let (false, Some(held)) = (makes_room, self.full(now, 1)) {
            self.tally.others().rejected_full += 1;
            return Scheduled::Full { held };
        }
        if let Some(at) = held {
            let record = self.refresh(at, now);
            if record.recurring {
                // If time has made the current run fail, its end comes first.
                self.end_overdue_run(at, &record, now);
                // That end is an effect of its own.
                self.end_effect(now);
            }
        }
        match self.messages.find_named(schedule.name) {
            Some(at) if self.run_has_begun(at, now) => self.defer(at, wanted),
            held => self.enter_series(now, floor, schedule, wanted, held, first),
        }
    }

    /// The declaration of `schedule`, with the settings of the queue in place of what it leaves out.
    fn completed(&self, schedule: &Schedule<'_>) -> Declaration {
        Declaration {
            series: schedule.series.clone(),
            first: schedule.first,
            payload: schedule.payload.into(),
            priority: schedule.priority,
            retries: schedule.retries.unwrap_or(self.settings.retries),
            lease: schedule.lease,
            ttl: schedule.ttl.unwrap_or(self.settings.ttl),
            group: schedule.group.map(Box::from),
            headers: schedule.headers.map(HeaderBlock::from),
        }
    }

    /// Whether the message is as declared, or will be from its next run on. The first due time does not matter.
    fn holds_as(&self, at: At, wanted: &Declaration) -> bool {
        let Some(state) = self.messages.recurring(at) else { return false };
        match &state.declared {
            Some(declared) => **declared == Declaration { first: declared.first, ..wanted.clone() },
            None => self.runs_as(at, state, wanted),
        }
    }

    /// Whether the current run of a recurring message is as declared.
    fn runs_as(&self, at: At, state: &Recurring, wanted: &Declaration) -> bool {
        let record = self.messages.record(at);
        state.series.as_ref() == Some(&wanted.series)
            && state.priority == wanted.priority
            && record.retries == wanted.retries
            && record.lease == wanted.lease
            && record.ttl.map_or(DurationMs::ZERO, |ttl| ttl.duration) == wanted.ttl
            && self.messages.group_name(at) == wanted.group.as_deref()
            && *self.messages.bytes(at).payload == *wanted.payload
            && self.messages.bytes(at).headers == wanted.headers.as_ref().map(HeaderBlock::headers)
    }

    /// The due time of a message that waits for a run of the same rule, which a declaration does not change; `None` for
    /// any other message.
    fn kept_due(&self, at: At, series: &Series, now: UnixMs) -> Option<UnixMs> {
        let record = self.messages.record(at);
        let state = self.messages.recurring(at).filter(|_| !self.run_has_begun(at, now))?;
        let is_same = state.series.as_ref().is_some_and(|held| held.rule == series.rule);
        (is_same && record.state_at(now).kind() != StateKind::Dead).then_some(record.due)
    }

    /// Whether the current run of a message, or the ordinary message, has been delivered and has not ended.
    fn run_has_begun(&self, at: At, now: UnixMs) -> bool {
        let record = self.messages.record(at);
        record.attempts > 0 && record.state_at(now).kind() != StateKind::Dead
    }

    /// Stores a declaration for the next run.
    fn defer<'a>(&mut self, at: At, mut wanted: Declaration) -> Scheduled<'a> {
        let sequence = self.messages.sequence(at);
        let running = self.messages.recurring(at);
        if running.is_some_and(|state| self.runs_as(at, state, &wanted)) {
            self.set_declared(at, None);
            return Scheduled::Deferred(sequence, None);
        }
        let held_rule = running.and_then(|state| state.series.as_ref()).map(|series| &series.rule);
        let declared = running.and_then(|state| state.declared.as_ref());
        // A first due time is used only with a new rule, and stays as long as that rule is declared.
        if held_rule == Some(&wanted.series.rule) {
            wanted.first = None;
        } else if let Some(declared) = declared.filter(|declared| declared.series.rule == wanted.series.rule) {
            wanted.first = declared.first;
        }
        let declared = Box::new(wanted);
        self.set_declared(at, Some(declared.clone()));
        Scheduled::Deferred(sequence, Some(declared))
    }

    /// Applies a declaration for the next run of a message.
    pub(crate) fn set_declared(&mut self, at: At, declared: Option<Box<Declaration>>) {
        if let Some(state) = self.messages.recurring_mut(at) {
            state.declared = declared;
            return;
        }
        // An ordinary message becomes recurring, so it stands among the failed instead of the dead if it dies.
        let record = self.messages.record(at);
        self.view.unplace(&self.messages, at, &record);
        self.messages.set_recurring(at, Box::new(Recurring { declared, ..Recurring::default() }));
        let now = self.view.at();
        self.view.place(&mut self.messages, at, &Record { recurring: true, ..record }, now);
    }

    /// Adds the message, in place of the one of that name if there is one. It waits for its first run, or for the run
    /// that the replaced message waited for.
    fn enter_series<'a>(
        &mut self,
        now: UnixMs,
        floor: &mut Floor,
        schedule: &Schedule<'a>,
        wanted: Declaration,
        held_at: Option<At>,
        first: UnixMs,
    ) -> Scheduled<'a> {
        let last = self.last_sequence.max(Sequence(floor.sequence));
        let Some(sequence) = Sequence::next(last, now) else { return Scheduled::Exhausted };
        let mut due = first;
        let mut state = Recurring::new(wanted.series, wanted.priority);
        if let Some((at, held)) = held_at.and_then(|at| Some((at, self.messages.recurring(at)?))) {
            if let Some(series) = &held.series {
                let new = state.series.clone().unwrap_or_else(|| series.clone());
                let times_left = if has_same_times(held, &new) { held.times_left } else { new.times };
                if series.rule == new.rule {
                    due = self.messages.record(at).due;
                }
                state = Recurring { series: Some(new), priority: wanted.priority, times_left, declared: None, ..*held };
            }
        }
        // If the message of that name is a successor, the schedule becomes the successor instead.
        let phase = held_at.and_then(|at| self.as_successor_of(at, now)).unwrap_or(Phase::Waiting);
        let record = Record {
            priority: wanted.priority,
            lease: wanted.lease,
            phase,
            recurring: true,
            ..Record::new(sequence, due, wanted.retries, wanted.ttl, now)
        };
        let accepted = match held_at {
            Some(at) => self.accepted_of(at),
            None => self.accepted_of_gone(schedule.name, now),
        };
        let image = Image {
            name: Some(schedule.name),
            group: schedule.group,
            origin: accepted.map(|accepted| Origin { accepted, chain: None }),
            recurring: Some(Box::new(state)),
            headers: schedule.headers,
            ..Image::new(record, schedule.payload)
        };
        let is_new = self.take_in_series(now, &image);
        floor.raise(self.last_sequence, self.last_receipt);
        if is_new {
            Scheduled::Created(image)
        } else {
            Scheduled::Changed(image)
        }
    }

    /// Applies a declaration that takes effect at once: adds the message in place of one of the same name. Returns
    /// whether there was none.
    pub(crate) fn take_in_series(&mut self, now: UnixMs, image: &Image<'_>) -> bool {
        let pushed = self.tally.pushed;
        // A done message is replaced as if it were gone.
        let replaced = image.name.is_some_and(|name| self.messages.find_named(name).is_some());
        self.take_in(now, image);
        if replaced {
            // Only new messages count as pushed.
            self.tally.pushed = pushed;
        }
        !replaced
    }
}
