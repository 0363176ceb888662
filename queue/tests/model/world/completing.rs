//! Completions with a result, and done messages: the acts and the checks.

use super::words::*;
use super::{ms, World};
use crate::done::Finished;
use crate::history::Aim;
use dq_queue::id::{Id, Sequence};
use dq_queue::time::DurationMs;
use dq_queue::{Completion, DoneMessage, Effect, Queue, Shown};

impl World {
    pub(super) fn complete(&mut self, aim: &Aim, size: Option<usize>, retain: Option<u64>) {
        let text = self.text(aim);
        let (target, name, receipt) = parsed(&text);
        let result = size.map(|size| vec![self.steps as u8; size]);
        let how = Completion { result: result.as_deref(), retain: retain.map(DurationMs::new) };
        let completed = self.eager.queue.complete(ms(self.clock), &target, &how);
        assert_eq!(self.lazy.queue.complete(ms(self.clock), &target, &how), completed);
        let expected = self.model.complete(&name, receipt, retain, result.as_deref());
        assert_eq!(completed.map(|completed| completed.sequence.0), expected.map(|(sequence, _)| sequence));
        self.expect_end(expected.and_then(|(_, end)| end));
        if let Some(completed) = completed {
            self.send(Effect::Complete {
                sequence: completed.sequence,
                until: completed.until,
                result: result.as_deref(),
            });
        }
    }

    /// Checks that each done message is found until its time ends, and that the next of these ends is known.
    pub(super) fn check_done(&self) {
        let now = ms(self.clock);
        for queue in [&self.eager.queue, &self.lazy.queue] {
            for finished in &self.model.done {
                check_finished(queue, self.clock, self.model.now, finished);
            }
            assert_eq!(queue.counts_at(now).done, self.model.kept().len() as u64);
            let ends = self.model.done.iter().map(|finished| finished.until);
            let (end, next) = (ends.min(), queue.next_drop().map(|drop| drop.as_ms()));
            match self.model.settings.deadttl.is_zero() || self.model.moves_dead {
                true => assert_eq!(next, end),
                // It may be a dead message that is dropped next.
                false => assert!(end.is_none_or(|end| next.is_some_and(|next| next <= end))),
            }
        }
        let sequences = |queue: &Queue| queue.done().map(|message| message.sequence.0).collect::<Vec<_>>();
        let mut all: Vec<u64> = self.model.done.iter().map(|finished| finished.sequence).collect();
        all.sort_unstable();
        assert_eq!(sequences(&self.eager.queue), all);
    }
}

fn check_finished(queue: &Queue, clock: u64, now: u64, expected: &Finished) {
    let text = expected.name.clone().unwrap_or_else(|| Sequence(expected.sequence).to_string().into_bytes());
    let id = Id::parse(&text).unwrap();
    let found = queue.get_done(ms(clock), &id);
    let shown = DoneMessage {
        sequence: Sequence(expected.sequence),
        name: expected.name.as_deref(),
        due: ms(expected.due),
        attempts: expected.attempts,
        done: ms(expected.done),
        until: ms(expected.until),
        result: expected.result.as_deref(),
        accepted: ms(expected.accepted),
    };
    assert_eq!(found, (now < expected.until).then_some(shown));
    if let Some(found) = found {
        assert_eq!(queue.find(ms(clock), &id), Some(Shown::Done(found)));
        assert_eq!(queue.show(ms(clock), found.sequence), Some(Shown::Done(found)));
        assert_eq!(queue.get(ms(clock), &id), None);
    }
}
