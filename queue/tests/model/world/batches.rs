//! Batches: closing and cancelling them, and what clients see of them.

use super::{ms, World};
use crate::batches::Then;
use crate::history::{headers, FollowUp, BATCHES, GROUPS, NAMES};
use dq_queue::settings::Retries;
use dq_queue::time::DurationMs;
use dq_queue::{Batch, Effect, HeaderBlock, Queue};

impl World {
    pub(super) fn close_batch(&mut self, nth: usize, plan: &FollowUp) {
        let (name, payload) = (BATCHES[nth], vec![self.steps as u8; plan.size]);
        let group = plan.group.map(|nth| GROUPS[nth]);
        let then = dq_queue::FollowUp {
            payload: payload[..].into(),
            name: plan.name.map(|nth| NAMES[nth].into()),
            delay: plan.delay.map(DurationMs::new),
            priority: plan.priority,
            retries: plan.retries.map(|count| Retries::new(count).unwrap()),
            lease: plan.lease.map(DurationMs::new),
            group: group.map(Box::from),
            headers: plan.headers.map(|nth| HeaderBlock::from(headers(nth))),
        };
        let [closed, same] = [&mut self.eager, &mut self.lazy]
            .map(|master| master.queue.close_batch(ms(self.clock), &master.floor, name, &then));
        assert_eq!(closed, same);
        let most = self.model.settings.maxpayload;
        assert_eq!(closed.is_none(), most > 0 && plan.size as u64 > most);
        let Some(closed) = closed else { return };
        let expected = Then {
            payload,
            name: plan.name.map(|nth| NAMES[nth].to_vec()),
            delay: plan.delay.unwrap_or(0),
            priority: plan.priority,
            retries: plan.retries,
            lease: plan.lease,
            group: group.map(<[u8]>::to_vec),
            headers: plan.headers,
        };
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
            assert_eq!(queue.batches(ms(self.clock)), self.model.batches.len());
            for name in BATCHES {
                let expected = self.model.batches.iter().find(|batch| batch.name == name).map(|batch| {
                    let (left, ended) =
                        (self.model.members_of(name).len() as u64, batch.acked + batch.dead + batch.cancelled);
                    Batch {
                        total: left + ended,
                        left,
                        acked: batch.acked,
                        dead: batch.dead,
                        cancelled: batch.cancelled,
                        closed: batch.then.is_some(),
                        created: ms(batch.created),
                    }
                });
                assert_eq!(queue.batch(ms(self.clock), name), expected);
            }
        };
        [&self.eager.queue, &self.lazy.queue].into_iter().for_each(check);
    }
}
