//! Consumers with names: which messages they hold, and what becomes of these when they are gone.

use super::words::id_of;
use super::{ms, World};
use crate::history::{Act, CONSUMERS};
use crate::reference::{Message, NackedTo, Name, State};
use dq_queue::id::Sequence;
use dq_queue::{Effect, Loss, Lost, Queue, Verdict};
use std::collections::BTreeSet;

impl World {
    /// Takes the messages that a consumer holds from it.
    pub(super) fn release(&mut self, nth: usize, count: Option<usize>, verdict: Verdict) {
        let (now, name) = (ms(self.clock), CONSUMERS[nth]);
        let released = self.eager.queue.release(now, name, count, verdict);
        assert_eq!(self.lazy.queue.release(now, name, count, verdict), released);
        let expected = self.model.held_by(name, count.unwrap_or(usize::MAX));
        assert_eq!(released.count, expected.len());
        let (mut ended, mut given_back, mut died) = (Vec::new(), Vec::new(), false);
        for id in expected {
            if verdict != Verdict::NotCounted {
                ended.push(Sequence(self.model.end_lease(&id)));
                continue;
            }
            let nacked = self.model.nack(&id, None, None, (None, None), verdict, |wait| wait).expect("it is in flight");
            let (sequence, to, _, end) = nacked;
            // It may be one that has taken the place of the delivered one.
            died |= matches!(to, NackedTo::Dead(_));
            if end.is_none() {
                given_back.push(Sequence(sequence));
            }
            self.expect_end(end);
        }
        assert_eq!((&released.ended, &released.given_back, released.died), (&ended, &given_back, died));
        // Time does what follows the end of a lease.
        self.advance_eager();
        if released.count > 0 {
            self.send(Effect::Release { ended, given_back });
        }
    }

    /// The receipts of all messages in flight.
    pub(super) fn held(&self) -> BTreeSet<Vec<u8>> {
        let held = self.model.messages.iter().filter(|message| matches!(message.state, State::InFlight { .. }));
        let receipt = |message: &Message| format!("#{}", message.receipt.expect("it was delivered"));
        held.map(|message| [id_of(message), receipt(message).into_bytes()].concat()).collect()
    }

    /// Checks that consumers are told of the deliveries that others have ended, and of nothing else.
    pub(super) fn check_lost(&mut self, act: &Act, held: &BTreeSet<Vec<u8>>) {
        let how = match act {
            Act::Cancel(_) | Act::CancelBatch(_) => Some(Loss::Cancelled),
            Act::Push(_) | Act::PushAll { .. } | Act::Beside { .. } => Some(Loss::Replaced),
            Act::Bury { .. } => Some(Loss::Buried),
            Act::Purge { .. } | Act::PurgeGroup { .. } => Some(Loss::Purged),
            Act::Release { .. } => Some(Loss::Released),
            _ => None,
        };
        let left = self.held();
        let expected = |how: Loss| -> Vec<Lost> {
            let gone: Vec<_> = held.difference(&left).cloned().collect();
            match gone.len() {
                ..=1_000 => gone.into_iter().map(|receipt| Lost { how, receipt: Some(receipt.into()) }).collect(),
                _ => vec![Lost { how: Loss::Purged, receipt: None }],
            }
        };
        let expected = how.map_or_else(Vec::new, expected);
        for master in [&mut self.eager, &mut self.lazy] {
            let mut lost = master.queue.take_lost().map_or_else(Vec::new, |lost| lost.0);
            lost.sort_by(|one, other| one.receipt.cmp(&other.receipt));
            assert_eq!(lost, expected, "{act:?}");
        }
    }

    /// Checks which consumers hold messages, and how many.
    pub(super) fn check_consumers(&self) {
        for queue in [&self.eager.queue, &self.lazy.queue] {
            assert_eq!(self.consumers_of(queue), self.model.consumers());
        }
    }

    fn consumers_of(&self, queue: &Queue) -> Vec<(Vec<u8>, usize, u64)> {
        let (mut shown, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = queue.scan_consumers(ms(self.clock), cursor, 1 + self.steps % 3);
            shown.extend(
                page.iter().map(|consumer| (consumer.name.to_vec(), consumer.inflight, consumer.oldest.as_ms())),
            );
            cursor = next;
            if cursor.is_none() {
                shown.sort();
                return shown;
            }
        }
    }
}

impl crate::reference::Model {
    /// The messages that a consumer holds, those that were delivered first.
    fn held_by(&self, name: &[u8], count: usize) -> Vec<Name> {
        let held = self.messages.iter().filter(|message| message.holder() == Some(name));
        let mut held: Vec<_> = held.map(|message| (message.receipt, id_of(message), message.name.is_some())).collect();
        held.sort();
        let name = |(_, id, named): (_, Vec<u8>, bool)| match named {
            true => Name::Text(id),
            false => Name::Sequence(Sequence::parse(&id).expect("a generated id").0),
        };
        held.into_iter().take(count).map(name).collect()
    }

    /// Ends the lease of a message in flight now. Returns its sequence.
    fn end_lease(&mut self, id: &Name) -> u64 {
        let at = self.find(id).expect("it is held");
        self.messages[at].state = State::InFlight { deadline: self.now };
        self.messages[at].sequence
    }

    /// The consumers that hold messages, how many, and when the oldest delivery began.
    fn consumers(&self) -> Vec<(Vec<u8>, usize, u64)> {
        let mut shown: Vec<(Vec<u8>, usize, u64)> = Vec::new();
        for name in CONSUMERS {
            let held = || self.messages.iter().filter(|message| message.holder() == Some(name));
            if let Some(oldest) = held().filter_map(|message| message.receipt).min() {
                shown.push((name.to_vec(), held().count(), oldest >> 20));
            }
        }
        shown.sort();
        shown
    }
}
