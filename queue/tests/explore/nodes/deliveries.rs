//! Deliveries by the master, and how they end.

use super::*;

impl Nodes {
    /// What a client refers to that has received the message; `None` if none has.
    pub(super) fn target(&self, name: Name, which: Which) -> Option<Target<'static>> {
        let (first, last) = self.given[name]?;
        let receipt = match which {
            Which::Latest => Some(last),
            Which::First => Some(first).filter(|first| *first != last),
        };
        receipt.map(|receipt| Target { id: id(name), receipt: Some(receipt) })
    }

    pub(super) fn is_current(&self, name: Name, target: &Target<'_>) -> bool {
        match self.master.belief.held[name].map(|known| known.phase) {
            Some(Phase::Leased { receipt, .. }) => target.receipt == Some(Receipt(receipt)),
            _ => false,
        }
    }

    /// Completes a delivery.
    pub(super) fn finish<T>(
        &mut self,
        name: Name,
        which: Which,
        finish: impl FnOnce(&mut Queue, &Target<'_>) -> Option<T>,
    ) -> Option<T> {
        let target = self.target(name, which)?;
        let finished = finish(&mut self.master.queue, &target);
        let dropped = self.master.belief.drops_dead && matches!(self.is(name), Some(Is::Dead(_)));
        let may = self.is_current(name, &target);
        self.expect(name == LOOSE || finished.is_some() == may || dropped, "an ack counts that must not, or does not");
        finished.as_ref()?;
        self.master.belief.held[name] = None;
        self.master.belief.totals[2] += 1;
        finished
    }

    pub(super) fn nack(&mut self, name: Name, verdict: Verdict) -> bool {
        let Some(target) = self.target(name, Which::Latest) else { return false };
        let delay = (verdict == Verdict::Failed).then_some(DurationMs::new(DELAY));
        let nacked = self.master.queue.nack(ms(self.now), &target, &Nack { delay, verdict, ..Nack::default() });
        let may = self.is(name) == Some(Is::InFlight) && self.is_current(name, &target);
        self.expect(name == LOOSE || nacked.is_some() == may, "a nack counts that must not, or does not");
        let Some(nacked) = nacked else { return false };
        let now = self.now;
        self.change(name, |known| {
            let spent = verdict == Verdict::Failed && known.attempts > RETRIES;
            let expired = known.ttl.is_some_and(|(_, end)| end <= now);
            known.attempts -= u32::from(verdict == Verdict::NotCounted);
            known.phase = Phase::Waiting;
            if verdict == Verdict::Rejected || expired || spent {
                known.phase = Phase::Dead { died: now, rejected: verdict == Verdict::Rejected };
            } else if verdict == Verdict::Failed {
                known.due = now + DELAY;
            }
        });
        if let (Some(known), Fate::Due(due)) = (self.master.belief.held[name], nacked.fate) {
            self.expect(name == LOOSE || due.as_ms() == known.due, "a message is given back with another due time");
        }
        self.send(Effect::Nack {
            sequence: nacked.sequence,
            fate: nacked.fate,
            attempts: nacked.attempts,
            error: nacked.error,
            checkpoint: nacked.checkpoint,
        });
        self.drop_excess();
        true
    }

    pub(super) fn pop(
        &mut self,
        count: usize,
        lease: Lease,
        consumer: Option<&'static [u8]>,
        acked: Vec<Sequence>,
    ) -> bool {
        let ahead = if self.fault == Some(Fault::ClockAhead) { 5 } else { 0 };
        let now = ms(self.now + ahead);
        let (mut grants, mut names): (Vec<Grant>, Vec<Name>) = (Vec::new(), Vec::new());
        let Node { queue, floor, belief } = &mut self.master;
        queue.pop(now, floor, &Pop { count, lease }, &mut grants, |message| {
            names.extend(NAMES.iter().position(|name| message.name == Some(name)));
        });
        let expected = if belief.paused { 0 } else { belief.ready(self.now).min(count) };
        let exact = !belief.loose || belief.paused;
        self.expect(!exact || grants.len() == expected, "other messages are delivered than those that are ready");
        for (grant, name) in grants.iter().zip(&names) {
            self.deliver(*name, grant, lease, consumer.is_some());
        }
        if grants.is_empty() {
            return false;
        }
        if let Some(name) = consumer {
            self.master.queue.hold_as(grants.iter().map(|grant| grant.sequence), name);
        }
        if self.fault == Some(Fault::DeadlineLater) {
            grants.iter_mut().for_each(|grant| grant.deadline = grant.deadline.after(DurationMs::new(1)));
        }
        self.send(match lease {
            Lease::NoAck => Effect::Take(grants.iter().map(|grant| grant.sequence).collect()),
            Lease::Default | Lease::For(_) => Effect::Deliver { grants, acked, consumer },
        });
        true
    }

    /// Compares a delivery with what the master must know.
    pub(super) fn deliver(&mut self, name: Name, grant: &Grant, lease: Lease, named: bool) {
        let is = self.is(name);
        self.expect(name == LOOSE || is.is_some(), "a message is delivered that was acked or removed");
        self.expect(is != Some(Is::InFlight), "a message has two valid leases");
        self.expect(name == LOOSE || is != Some(Is::Delayed), "a message is delivered early");
        self.expect(name == LOOSE || is == Some(Is::Ready), "a dead message is delivered");
        self.master.belief.totals[1] += 1;
        if lease == Lease::NoAck {
            self.master.belief.held[name] = None;
            return;
        }
        self.expect(grant.receipt.0 > self.last.1, "a receipt is given again");
        self.last.1 = grant.receipt.0;
        let first = self.given[name].map_or(grant.receipt, |(first, _)| first);
        self.given[name] = Some((first, grant.receipt));
        let deadline = grant.deadline.as_ms();
        self.expect(deadline >= self.now + LEASE, "a lease is too short");
        // The next run of a schedule, or a successor.
        self.master.belief.held[name].get_or_insert(Known::pushed(grant.sequence.0, self.now, None));
        self.change(name, |known| {
            known.attempts += 1;
            known.phase = Phase::Leased { receipt: grant.receipt.0, deadline };
            known.named = named;
        });
        let attempts = self.master.belief.held[name].map(|known| known.attempts);
        self.expect(name == LOOSE || attempts == Some(grant.attempt), "a delivery has the wrong attempt");
    }

    pub(super) fn forward(&mut self) -> bool {
        let now = ms(self.now);
        let mut next = Vec::new();
        self.master.queue.next_to_forward(now, Source::Due, 1, |message| {
            next.push(message.sequence);
            true
        });
        let removed = self.master.queue.forwarded(now, &next, |_| ());
        for sequence in &removed {
            if let Some(name) = self.master.belief.name_of(*sequence) {
                let ready = name == LOOSE || self.is(name) == Some(Is::Ready);
                self.expect(ready, "a message is forwarded that is not ready");
                self.master.belief.held[name] = None;
            }
            self.master.belief.totals[1] += 1;
        }
        let changed = !removed.is_empty();
        if changed {
            self.send(Effect::Forward(removed));
        }
        changed
    }
}
