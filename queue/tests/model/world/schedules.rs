//! Recurring messages: what clients declare, and how runs end.

use super::{ms, World};
use crate::batches::Left;
use crate::history::{headers, Every, Who, GROUPS, NAMES};
use crate::recurring::{End, Plan, Recurs, Scheduled};
use dq_queue::id::Sequence;
use dq_queue::rule::Rule;
use dq_queue::settings::Retries;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Effect, Ended, HeaderBlock, Next, Recurring, RunEnd, Schedule, Series, Stamped};

impl World {
    pub(super) fn schedule(&mut self, every: &Every) {
        let now = self.model.now;
        let instant = |from_now: i64| now.saturating_add_signed(from_now).min(UnixMs::MAX_AT);
        let (at, until) = (every.at.map(instant), every.until.map(instant));
        let payload = vec![every.size as u8; every.size];
        let name = NAMES[every.name];
        let settings = self.model.settings;
        let plan = Plan {
            every: every.every,
            offset: every.offset % every.every,
            until,
            times: every.times,
            payload: payload.clone(),
            priority: every.priority,
            retries: every.retries.unwrap_or(settings.retries.count()),
            lease: every.lease,
            ttl: every.ttl.unwrap_or(settings.ttl.as_ms()),
            group: every.group.map(|nth| GROUPS[nth].to_vec()),
            headers: every.headers,
        };
        let wanted = Schedule {
            name,
            payload: &payload,
            series: series_of(&plan),
            first: at.map(ms),
            priority: every.priority,
            retries: every.retries.map(|count| Retries::new(count).unwrap()),
            lease: every.lease.map(DurationMs::new),
            ttl: every.ttl.map(DurationMs::new),
            group: every.group.map(|nth| GROUPS[nth]),
            headers: every.headers.map(headers),
        };
        let scheduled = self.eager.queue.schedule(ms(self.clock), &mut self.eager.floor, &wanted);
        assert_eq!(self.lazy.queue.schedule(ms(self.clock), &mut self.lazy.floor, &wanted), scheduled);
        let (expected, ends) = self.model.schedule(name, &plan, at);
        let made = self.replica.is_none().then_some(settings);
        self.expected_ends.extend(ends);
        let effect = match (scheduled, expected) {
            (dq_queue::Scheduled::Created(image), Scheduled::Created)
            | (dq_queue::Scheduled::Changed(image), Scheduled::Changed) => {
                self.given.0 = image.record.sequence.0;
                assert_eq!(image.record.sequence.0, self.model.given);
                Effect::Schedule(made, image)
            }
            (dq_queue::Scheduled::Deferred(sequence, declared), Scheduled::Deferred { taken_back }) => {
                assert_eq!(declared.is_none(), taken_back);
                Effect::Declare(sequence, declared)
            }
            (dq_queue::Scheduled::Unchanged, Scheduled::Unchanged) => return,
            (dq_queue::Scheduled::AfterEnd, Scheduled::AfterEnd) => return,
            (dq_queue::Scheduled::TooLarge, Scheduled::TooLarge) => return,
            (dq_queue::Scheduled::Closed, Scheduled::Closed) => return,
            (dq_queue::Scheduled::Full { held }, Scheduled::Full(expected)) => return assert_eq!(held, expected),
            (scheduled, expected) => panic!("{scheduled:?} and not {expected:?}"),
        };
        self.send(effect);
    }

    /// One master ends runs that time has made fail, and the other one applies its effect.
    pub(super) fn end_runs(&mut self, budget: usize, by: Who) {
        let now = ms(self.clock);
        let (decider, other) = match by {
            Who::Eager => (&mut self.eager.queue, &mut self.lazy.queue),
            Who::Lazy => (&mut self.lazy.queue, &mut self.eager.queue),
        };
        let others = decider.end_failed_runs(now, budget);
        let ends = decider.take_ends();
        assert!(budget < usize::MAX || decider.first_failed_run().is_none());
        let dead = self.model.dead_members();
        assert!(others.iter().all(|member| dead.contains(&member.0)), "{others:?} of {dead:?}");
        assert!(budget < usize::MAX || matches!(by, Who::Lazy) || others.len() == dead.len(), "{others:?} of {dead:?}");
        others.iter().for_each(|member| self.model.leave_batch(member.0, Left::Dead));
        if ends.is_empty() && others.is_empty() {
            return;
        }
        let expected = self.model.failed_runs();
        for (nth, end) in ends.iter().enumerate() {
            if matches!(by, Who::Eager) {
                assert_eq!(end.sequence.0, expected[nth], "those that failed first end first");
            }
            let at = self.model.messages.iter().position(|message| message.sequence == end.sequence.0).unwrap();
            let expected = self.model.end_by_time(at).expect("its run has failed");
            assert_end(end, &expected);
        }
        self.given.0 = self.model.given;
        let effect = Effect::EndRuns { how: Ended::ByTime, others, ends };
        other.apply(&Stamped { now: ms(self.model.now), effect: effect.clone() }).unwrap();
        self.send(effect);
    }

    /// The effects of an operation, which may have ended runs on both masters.
    pub(super) fn with_ends<'a>(&mut self, effect: Effect<'a>) -> Vec<Effect<'a>> {
        let ends = self.eager.queue.take_ends();
        assert_eq!(self.lazy.queue.take_ends(), ends);
        let expected = std::mem::take(&mut self.expected_ends);
        assert_eq!(ends.len(), expected.len());
        ends.iter().zip(&expected).for_each(|(end, expected)| assert_end(end, expected));
        if ends.is_empty() {
            return vec![effect];
        }
        self.given.0 = self.model.given;
        let (first, second) = effect.with_ends(ends);
        [first].into_iter().chain(second).collect()
    }

    /// What the model expects of an operation that may end a run.
    pub(super) fn expect_end(&mut self, end: Option<End>) {
        self.expected_ends.extend(end);
    }

    /// Cancels all recurring messages, everywhere.
    pub(super) fn end_all_series(&mut self) -> Option<Effect<'static>> {
        let mut recurring: Vec<u64> = {
            let those = self.model.messages.iter().filter(|message| message.schedule().is_some());
            those.map(|message| message.sequence).collect()
        };
        recurring.sort_unstable();
        self.model.keep_turns(&recurring);
        self.model.leave_as_purged(&recurring);
        self.model.messages.retain(|message| message.schedule().is_none());
        let sequences: Vec<Sequence> = recurring.into_iter().map(Sequence).collect();
        (!sequences.is_empty()).then_some(Effect::Cancel(sequences, Vec::new()))
    }
}

fn series_of(plan: &Plan) -> Series {
    let rule = Rule::Every { every: DurationMs::new(plan.every), offset: DurationMs::new(plan.offset) };
    Series { rule, until: plan.until.map(ms), times: plan.times }
}

fn assert_end(end: &RunEnd, expected: &End) {
    let next = match end.next {
        Next::At(due) => Some((due.as_ms(), end.sequence.0)),
        Next::Renewed(due, sequence) => Some((due.as_ms(), sequence.0)),
        Next::Over => None,
    };
    let copy = end.failure.and_then(|failure| failure.copy).map(|copy| copy.0);
    assert_eq!(End { sequence: end.sequence.0, copy, next }, *expected);
}

/// The schedule that a queue shows is that of the model.
pub(super) fn check_schedule(found: Option<&Recurring>, expected: Option<&Recurs>) {
    let (Some(found), Some(expected)) = (found, expected) else {
        return assert_eq!((found, expected.is_some()), (None, false));
    };
    assert_eq!(found.series, expected.plan.as_ref().map(series_of));
    assert_eq!((found.runs, found.failed_runs), (expected.runs, expected.failed));
    assert_eq!((found.times_left, found.last_run.map(UnixMs::as_ms)), (expected.left, expected.last));
    match (&found.declared, &expected.next) {
        (None, None) => {}
        (Some(declared), Some((plan, first))) => {
            assert_eq!(declared.series, series_of(plan));
            assert_eq!(declared.first.map(UnixMs::as_ms), *first);
            assert_eq!(*declared.payload, plan.payload[..]);
            assert_eq!(declared.group.as_deref(), plan.group.as_deref());
            assert_eq!(declared.headers.as_ref().map(HeaderBlock::headers), plan.headers.map(headers));
            assert_eq!((declared.priority, declared.retries.count()), (plan.priority, plan.retries));
        }
        (declared, next) => panic!("{declared:?} and not {next:?}"),
    }
}
