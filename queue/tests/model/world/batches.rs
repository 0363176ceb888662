//! Batches: closing and cancelling them, and what clients see of them.

use super::{ms, World};
use crate::batches::Then;
use crate::history::{headers, FollowUp, BATCHES, GROUPS, NAMES};
use dq_queue::settings::Retries;
use dq_queue::time::DurationMs;
use dq_queue::{Batch, Effect, HeaderBlock, Queue};

/// What follows a batch, as a client of the queue describes it.
fn described(then: &Then) -> dq_queue::FollowUp {
    dq_queue::FollowUp {
        payload: then.payload[..].into(),
        name: then.name.as_deref().map(Box::from),
        delay: Some(DurationMs::new(then.delay)).filter(|delay| !delay.is_zero()),
        priority: then.priority,
        retries: then.retries.map(|count| Retries::new(count).unwrap()),
        lease: then.lease.map(DurationMs::new),
        group: then.group.as_deref().map(Box::from),
        headers: then.headers.map(|nth| HeaderBlock::from(headers(nth))),
    }
}

impl World {
    pub(super) fn close_batch(&mut self, nth: usize, plan: &FollowUp) {
        let name = BATCHES[nth];
        let expected = Then {
            payload: vec![self.steps as u8; plan.size],
            name: plan.name.map(|nth| NAMES[nth].to_vec()),
            delay: plan.delay.unwrap_or(0),
            priority: plan.priority,
            retries: plan.retries,
            lease: plan.lease,
            group: plan.group.map(|nth| GROUPS[nth].to_vec()),
            headers: plan.headers,
        };
        let then = described(&expected);
        let [closed, same] = [&mut self.eager, &mut self.lazy]
            .map(|master| master.queue.close_batch(ms(self.clock), &master.floor, name, &then));
        assert_eq!(closed, same);
        let most = self.model.settings.maxpayload;
        assert_eq!(closed.is_none(), most > 0 && plan.size as u64 > most);
        let Some(closed) = closed else { return };
        assert_eq!(closed.left, self.model.close_batch(name, expected));
        let settings = self.replica.is_none().then_some(self.model.settings);
        self.send(Effect::Batch { settings, name, last: closed.last, then: Some(Box::new(then)) });
    }

    pub(super) fn cancel_batch(&mut self, nth: usize) {
        let name = BATCHES[nth];
        let removed = self.eager.queue.cancel_batch(ms(self.clock), name);
        assert_eq!(self.lazy.queue.cancel_batch(ms(self.clock), name), removed);
        assert_eq!(removed, self.model.cancel_batch(name));
        if removed.is_some() {
            let last = self.eager.queue.last_given().0;
            self.send(Effect::Batch { settings: None, name, last, then: None });
        }
    }

    /// Pushes what follows batches in the model. The queues have done so.
    pub(super) fn settle_batches(&mut self) {
        self.model.settle_batches();
        self.given.0 = self.given.0.max(self.model.given);
    }

    /// Checks what the queues show of their batches.
    pub(super) fn check_batches(&self) {
        let check = |queue: &Queue| {
            assert_eq!(queue.batches(ms(self.clock)), self.model.shown_batches().len());
            for name in BATCHES {
                let found = self.model.shown_batches().into_iter().find(|batch| batch.name == name);
                let then = found.and_then(|batch| batch.then.as_ref()).map(described);
                let expected = found.map(|batch| {
                    let (left, ended) =
                        (self.model.members_of(name).len() as u64, batch.acked + batch.dead + batch.cancelled);
                    Batch {
                        total: left + ended,
                        left,
                        acked: batch.acked,
                        dead: batch.dead,
                        cancelled: batch.cancelled,
                        then: then.as_ref(),
                        created: ms(batch.created),
                    }
                });
                assert_eq!(queue.batch(ms(self.clock), name), expected);
            }
        };
        [&self.eager.queue, &self.lazy.queue].into_iter().for_each(check);
    }
}
