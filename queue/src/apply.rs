//! Applying effects: what was decided on a master, or is read from the AOF, from an AOF rewrite or from another slot.
//!
//! This is the only way in which an effect is applied, so what one test proves for it holds for all of these sources.
//! An effect is nevertheless data from outside: an effect that no queue could have produced is refused, and nothing
//! panics.

use super::batches::{is_batch_name, MemberEnd};
use super::checkpoint::is_checkpoint;
use super::consumers::is_consumer_name;
use super::done::RESULT_MAX;
use super::effect::{Effect, Fate, Image, Stamped};
use super::errors::ERROR_MAX;
use super::gate::{Flow, Pause};
use super::groups::is_group_name;
use super::id::Sequence;
use super::ops::dedupe::Ids;
use super::ops::nack::GivenBack;
use super::record::{Phase, State};
use super::recurring::{Declaration, Ended, Next, RunEnd};
use super::time::UnixMs;
use super::wire::Refused;
use super::Queue;
use std::collections::BTreeSet;

/// What applying an effect led to, beyond what the effect itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was applied, and there is nothing to add.
    Done,
    /// It was a push, and each of its messages replaced another of the same name.
    OnlyReplaced,
    /// It was a burial, but the message had a successor, which has taken its place.
    Succeeded,
    /// It completed messages, and the successor of one of them has taken its place. The successor is dead, because its
    /// own TTL had ended.
    SuccessorDied,
    /// It was a release, and a message that was given back is dead because its TTL had ended.
    Died,
}

impl Applied {
    /// The outcome of an ack after which the successor of the message is in this state.
    fn after_ack(next: Option<State>) -> Applied {
        match next {
            Some(State::Dead { .. }) => Applied::SuccessorDied,
            _ => Applied::Done,
        }
    }
}

/// Whether a client could have given this checkpoint.
fn is_checkpoint_or_none(checkpoint: &[u8]) -> bool {
    checkpoint.is_empty() || is_checkpoint(checkpoint)
}

impl Queue {
    /// Returns the queue that an effect creates if the key does not exist; `None` for an effect that only changes an
    /// existing queue.
    pub fn made_by(effect: &Effect<'_>) -> Option<Queue> {
        match effect {
            Effect::Push(settings, _) => Some(Queue::new(settings.unwrap_or_default())),
            Effect::Schedule(settings, _) => Some(Queue::new(settings.unwrap_or_default())),
            Effect::Batch { settings, then: Some(_), .. } => Some(Queue::new(settings.unwrap_or_default())),
            Effect::Create(settings, _) => Some(Queue::new(*settings)),
            Effect::Begin(header) => Some(Queue::begin(header)),
            _ => None,
        }
    }

    /// Applies an effect. Returns an error if no queue could have produced it; a refused effect changes nothing.
    pub fn apply(&mut self, stamped: &Stamped<'_>) -> Result<Applied, Refused> {
        let applied = self.carry_out(stamped)?;
        if stamped.effect.is_piece() {
            self.messages.end_effect();
        } else {
            self.end_effect(stamped.now);
        }
        Ok(applied)
    }

    fn carry_out(&mut self, stamped: &Stamped<'_>) -> Result<Applied, Refused> {
        let now = stamped.now;
        self.accept(&stamped.effect, now)?;
        if !stamped.effect.is_piece() {
            self.forget_ended(now);
        }
        // The queue's clock is not changed: it holds the time of this server, and `now` is that of another. Only the
        // messages that the effect names are brought up to `now`: the timer brings the others, in bounded steps.
        match &stamped.effect {
            Effect::Push(_, images) => {
                let added = images.iter().filter(|image| !self.take_in(now, image)).count();
                if added == 0 {
                    return Ok(Applied::OnlyReplaced);
                }
            }
            Effect::Deliver { grants, acked, consumer } => {
                let applied = self.finish_all(acked, now);
                if !acked.is_empty() {
                    self.settle(now);
                }
                let turn = self.messages.begin_turn(now);
                grants.iter().for_each(|grant| self.lend(grant, turn, now));
                self.count_begun(grants.len(), now);
                self.note_delivery(now);
                if let Some(name) = consumer {
                    self.hold_as(grants.iter().map(|grant| grant.sequence), name);
                }
                return Ok(applied);
            }
            Effect::Take(sequences) => {
                let turn = self.messages.begin_turn(now);
                self.take_all(sequences, turn, now);
                self.count_begun(sequences.len(), now);
                self.note_delivery(now);
            }
            Effect::Forward(sequences) => {
                self.take_each(sequences, &[], now);
                self.count_forwarded(sequences.len(), now);
                self.note_delivery(now);
            }
            Effect::Ack(sequences) => return Ok(self.finish_all(sequences, now)),
            Effect::Complete { sequence, until, result } => {
                if let Some((at, record)) = self.refreshed(*sequence, now) {
                    let next = self.finish_with(at, &record, *until, *result, now);
                    return Ok(Applied::after_ack(next));
                }
            }
            Effect::Nack { sequence, fate, attempts, error, checkpoint } => {
                if let Some((at, record)) = self.refreshed(*sequence, now) {
                    let how = GivenBack { fate: *fate, attempts: *attempts, error: *error, checkpoint: *checkpoint };
                    self.give_back(at, &record, &how, now);
                }
            }
            Effect::Extend { those, checkpoint } => {
                for (sequence, deadline) in those {
                    if let Some((at, record)) = self.refreshed(*sequence, now) {
                        self.move_deadline(at, &record, *deadline, *checkpoint, now);
                    }
                }
            }
            Effect::Cancel(sequences, forgotten) => {
                for name in forgotten {
                    self.drop_done_named(name, now);
                    self.unlearn(name);
                }
                self.for_each_refreshed(sequences, now, |queue, at, record| queue.drop_cancelled(at, record, now));
                sequences.iter().for_each(|sequence| self.drop_cancelled_done(*sequence, now));
            }
            Effect::Reschedule { sequence, due, priority } => {
                if let Some((at, record)) = self.refreshed(*sequence, now) {
                    self.move_to(at, &record, *due, *priority, now);
                }
            }
            Effect::Promote(due, spans) => {
                self.promote_spans(spans, *due, now);
            }
            Effect::Bury(sequence, error) => {
                if let Some((at, record)) = self.refreshed(*sequence, now) {
                    if !self.reject(at, &record, *error, now) {
                        return Ok(Applied::Succeeded);
                    }
                }
            }
            Effect::Redrive(spans, due) => {
                self.redrive_spans(spans, *due, now);
            }
            Effect::Release { ended, given_back } => {
                self.for_each_refreshed(ended, now, |queue, at, record| {
                    queue.move_deadline(at, record, now, None, now)
                });
                let mut died = false;
                self.for_each_refreshed(given_back, now, |queue, at, record| {
                    died |= matches!(queue.take_back(at, record, now), Some(State::Dead { .. }));
                });
                if died {
                    return Ok(Applied::Died);
                }
            }
            Effect::Purge { messages, done } => {
                self.remove_spans(messages, now, Ids::Forgotten);
                self.drop_done_spans(done, Ids::Forgotten, now);
            }
            Effect::Batch { name, last, then: Some(then), .. } => {
                self.set_follow_up(name, then, *last, now);
            }
            Effect::Batch { name, then: None, .. } => {
                self.drop_batch(name, now);
            }
            Effect::DeadForward(spans) => self.remove_forwarded_dead(spans, now),
            Effect::Trim(spans) => {
                self.remove_spans(spans, now, Ids::Remembered);
            }
            Effect::TrimDone(spans) => self.drop_done_spans(spans, Ids::Remembered, now),
            Effect::Schedule(_, image) => {
                self.take_in_series(now, image);
            }
            Effect::Declare(sequence, declared) => {
                if let Some((at, _)) = self.refreshed(*sequence, now) {
                    self.set_declared(at, declared.clone());
                }
            }
            Effect::EndRuns { how, others, ends } => {
                let mut applied = Applied::Done;
                let turn = if *how == Ended::Taken { self.messages.begin_turn(now) } else { None };
                match how {
                    Ended::Taken => self.take_all(others, turn, now),
                    Ended::Forwarded => self.take_each(others, ends, now),
                    Ended::ByTime => self.end_members(others, MemberEnd::Dead),
                    _ => applied = self.finish_all(others, now),
                }
                for end in ends {
                    if let Some((at, record)) = self.refreshed(end.sequence, now) {
                        if *how == Ended::Taken {
                            self.serve_group(self.messages.group(at), turn, now);
                        }
                        self.apply_end(at, &record, *how, end, now);
                    }
                }
                match how {
                    Ended::Taken => {
                        self.count_begun(others.len() + ends.len(), now);
                        self.note_delivery(now);
                    }
                    Ended::Forwarded => {
                        self.count_forwarded(others.len(), now);
                        self.note_delivery(now);
                    }
                    Ended::Acked | Ended::Completed | Ended::Nacked { .. } | Ended::Buried(_) | Ended::ByTime => {}
                }
                return Ok(applied);
            }
            Effect::Create(settings, targets) => {
                self.change_settings(now, *settings);
                self.set_targets(targets);
                self.gate.set_pause(Pause::Off, Flow::Both);
            }
            Effect::Alter(settings, targets) => {
                self.change_settings(now, *settings);
                self.set_targets(targets);
            }
            Effect::Pause { pause, flow, group: None } => self.gate.set_pause(*pause, *flow),
            Effect::Pause { pause, group: Some(group), .. } => self.set_group_pause(group, *pause, now),
            Effect::PullBack => self.pull_back(now),
            Effect::Begin(header) => *self = Queue::begin(header),
            Effect::Continue(images) => self.continue_with(images, now),
            Effect::Batches(states) => self.optional.for_adding().batches.get_or_insert_default().restore(states),
            Effect::Done(messages) => self.restore_done(messages),
            Effect::Recall(ids) => self.recall(ids),
            Effect::Leaving(leaving) => self.add_leaving(leaving, now),
            Effect::Gates(gates) => self.restore_gates(gates),
            Effect::Turns(turns) => {
                self.messages.restore_turns(turns);
                // Of these groups alone: each piece of an AOF has a part of them.
                for (name, ..) in &turns.groups {
                    if let Some(id) = self.messages.groups().and_then(|groups| groups.find(name)) {
                        self.view.retune(&self.messages, id);
                    }
                }
            }
        }
        Ok(Applied::Done)
    }

    /// Removes messages that were delivered without a lease.
    fn take_all(&mut self, sequences: &[Sequence], turn: Option<u64>, now: UnixMs) {
        self.for_each_refreshed(sequences, now, |queue, at, record| {
            queue.serve_group(queue.messages.group(at), turn, now);
            queue.take(at, record, now);
        });
    }

    /// Removes messages that were forwarded one after another, which gives each group a turn of its own. The runs that
    /// `ends` names are among them; their ends are applied afterwards.
    fn take_each(&mut self, sequences: &[Sequence], ends: &[RunEnd], now: UnixMs) {
        let runs: BTreeSet<Sequence> = ends.iter().map(|end| end.sequence).collect();
        self.for_each_refreshed(sequences, now, |queue, at, record| {
            let turn = queue.messages.begin_turn(now);
            queue.serve_group(queue.messages.group(at), turn, now);
            if !runs.contains(&record.sequence) {
                queue.take(at, record, now);
            }
        });
    }

    /// Completes messages that were acked.
    fn finish_all(&mut self, sequences: &[Sequence], now: UnixMs) -> Applied {
        let mut applied = Applied::Done;
        self.for_each_refreshed(sequences, now, |queue, at, record| {
            if let Some(State::Dead { .. }) = queue.finish(at, record, now) {
                applied = Applied::SuccessorDied;
            }
        });
        applied
    }

    /// Refuses an effect that no queue could have produced.
    fn accept(&self, effect: &Effect<'_>, now: UnixMs) -> Result<(), Refused> {
        let possible = match effect {
            Effect::Push(settings, images) => {
                let mut last = self.last_sequence;
                settings.is_none_or(|settings| settings.are_valid())
                    && images.iter().all(|image| {
                        let is_ordinary = image.recurring.is_none();
                        let follows = image.record.sequence > last;
                        last = image.record.sequence;
                        follows && is_ordinary && image.is_valid() && image.is_new() && self.gave_receipt_of(image)
                    })
            }
            Effect::Deliver { grants, consumer, .. } => {
                grants.iter().all(|grant| grant.attempt > 0) && consumer.is_none_or(is_consumer_name)
            }
            Effect::Extend { checkpoint, .. } => checkpoint.is_none_or(is_checkpoint_or_none),
            Effect::Nack { sequence, fate, error, checkpoint, .. } => {
                let is_dead = matches!(fate, Fate::Dead { .. });
                error.is_none_or(|error| error.len() <= ERROR_MAX)
                    && checkpoint.is_none_or(is_checkpoint_or_none)
                    && self.messages.locate(*sequence).is_none_or(|at| {
                        let record = self.messages.record(at);
                        let ends_a_run = record.recurring && is_dead && !record.is_successor_at(now);
                        record.receipt().is_some() && !ends_a_run
                    })
            }
            Effect::Bury(sequence, error) => {
                error.is_none_or(|error| error.len() <= ERROR_MAX)
                    && self.messages.locate(*sequence).is_none_or(|at| {
                        let record = self.messages.record(at);
                        !record.recurring || record.is_successor_at(now)
                    })
            }
            Effect::Complete { sequence, until, result } => {
                until.is_none_or(|until| now <= until)
                    && result.is_none_or(|result| result.len() <= RESULT_MAX)
                    && self.messages.locate(*sequence).is_none_or(|at| {
                        let record = self.messages.record(at);
                        !record.recurring || record.is_successor_at(now)
                    })
            }
            Effect::Schedule(settings, image) => {
                settings.is_none_or(|settings| settings.are_valid())
                    && image.record.sequence > self.last_sequence
                    && image.recurring.is_some()
                    && image.is_valid()
                    && image.is_new()
                    && self.gave_receipt_of(image)
            }
            Effect::Declare(sequence, declared) => {
                declared.as_ref().is_none_or(|declared| declared.is_valid()) && self.may_declare(*sequence, declared)
            }
            Effect::EndRuns { how, ends, .. } => self.may_end(*how, ends),
            Effect::Begin(header) => header.is_valid(),
            Effect::Continue(images) => self.may_continue_with(images),
            Effect::Batch { settings, name, last, then } => {
                settings.is_none_or(|settings| settings.are_valid())
                    && is_batch_name(name)
                    // No clock reaches the highest bit, which marks cursors, before the year 2248.
                    && (*last <= self.last_sequence || last.is_possible() && last.0 >> 63 == 0)
                    && then.as_ref().is_none_or(|then| then.is_valid())
            }
            Effect::Batches(states) => self.may_restore_batches(states),
            Effect::Done(messages) => self.may_restore_done(messages),
            Effect::Recall(ids) => self.may_recall(ids),
            Effect::Turns(turns) => self.may_restore(turns),
            Effect::Leaving(leaving) => self.may_add_leaving(leaving),
            Effect::Create(settings, targets) | Effect::Alter(settings, targets) => {
                settings.are_valid() && targets.are_valid()
            }
            Effect::Pause { flow, group, .. } => group.is_none_or(|group| is_group_name(group) && *flow == Flow::Out),
            Effect::Gates(gates) => self.may_restore_gates(gates),
            Effect::Take(_) | Effect::Forward(_) | Effect::Ack(_) | Effect::Cancel(..) => true,
            Effect::Release { ended, given_back } => ended.iter().chain(given_back).all(|sequence| {
                let record = self.messages.locate(*sequence).map(|at| self.messages.record(at));
                record.is_none_or(|record| record.receipt().is_some())
            }),
            Effect::Reschedule { .. } | Effect::Promote(..) | Effect::Redrive(..) => true,
            Effect::Purge { .. } | Effect::DeadForward(_) | Effect::Trim(_) => true,
            Effect::TrimDone(_) | Effect::PullBack => true,
        };
        possible.then_some(()).ok_or(Refused::Impossible)
    }

    /// Whether this queue has assigned the receipt in `image`, which is that of its own delivery or, for a successor,
    /// of the delivery that it waits for. True if there is no receipt.
    fn gave_receipt_of(&self, image: &Image<'_>) -> bool {
        image.record.receipt().is_none_or(|receipt| receipt <= self.last_receipt)
    }

    /// Whether a declaration may wait for the end of the current run of a message: the message has a name, is not dead,
    /// and has a schedule if none is declared for it.
    fn may_declare(&self, sequence: Sequence, declared: &Option<Box<Declaration>>) -> bool {
        let Some(at) = self.messages.locate(sequence) else { return true };
        let has_series = self.messages.recurring(at).is_some_and(|state| state.series.is_some());
        self.messages.is_named(at)
            && !matches!(self.messages.record(at).phase, Phase::Dead { .. })
            && (declared.is_some() || has_series)
    }

    /// Whether these runs may end: their messages are recurring, each ends once, and new messages have new sequences.
    fn may_end(&self, how: Ended<'_>, ends: &[RunEnd]) -> bool {
        let mut last = self.last_sequence;
        let mut follows =
            |sequence: Sequence| sequence > std::mem::replace(&mut last, sequence) && sequence.is_possible();
        let mut ended = BTreeSet::new();
        how.error().is_none_or(|error| error.len() <= ERROR_MAX)
            && how.checkpoint().is_none_or(is_checkpoint_or_none)
            && ends.iter().all(|end| {
                let copy = end.failure.and_then(|failure| failure.copy);
                let renewed = match end.next {
                    Next::Renewed(_, sequence) => Some(sequence),
                    Next::At(_) | Next::Over => None,
                };
                let state = self.messages.locate(end.sequence).map(|at| self.messages.recurring(at));
                let may_go_on = state.is_none_or(|state| {
                    state.is_some_and(|state| match end.next {
                        Next::At(_) => state.series.is_some() && state.declared.is_none(),
                        Next::Renewed(..) => state.declared.is_some(),
                        Next::Over => true,
                    })
                });
                may_go_on && ended.insert(end.sequence) && copy.into_iter().chain(renewed).all(&mut follows)
            })
    }

    /// Adds the next messages of a queue that [`Effect::Begin`] started, as they were when it was saved at `now`.
    fn continue_with(&mut self, images: &[Image<'_>], now: UnixMs) {
        for image in images {
            // The turns of the groups follow.
            let batch = self.restore_member(image, now);
            self.insert_member(image, batch, UnixMs::EPOCH, now);
        }
    }

    /// Whether `images` may follow the messages that a queue holds while it is loaded piece by piece.
    pub(super) fn may_continue_with(&self, images: &[Image<'_>]) -> bool {
        let mut last = self.messages.last();
        let mut names = BTreeSet::new();
        images.iter().all(|image| {
            let follows = last.is_none_or(|last| last < image.record.sequence);
            last = Some(image.record.sequence);
            let known = image.record.sequence <= self.last_sequence && self.gave_receipt_of(image);
            let is_free = |name| self.messages.find_named(name).is_none() && !self.remembers(name);
            let unique = image.name.is_none_or(|name| names.insert(name) && is_free(name));
            let is_apart = !self.holds_done(image.record.sequence, image.name);
            follows && known && unique && is_apart && image.is_valid() && !image.is_dead_member()
        })
    }
}
