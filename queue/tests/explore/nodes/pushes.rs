//! What adds messages to the master.

use super::*;

impl Nodes {
    pub(super) fn push(&mut self, names: &[Name], how: How) -> bool {
        let (due, ttl) = (how == How::Later, how == How::Expiring);
        let messages: Vec<NewMessage<'_>> = names
            .iter()
            .map(|name| NewMessage {
                payload: b"x",
                name: Some(NAMES[*name]),
                due: due.then_some(Due::After(DurationMs::new(DELAY))),
                ttl: ttl.then_some(DurationMs::new(DELAY)),
                on_duplicate: match how {
                    How::Replacing => OnDuplicate::Replace,
                    How::ReplacingLater => OnDuplicate::ReplaceLater,
                    How::Now | How::Later | How::Expiring | How::Grouped | How::Member => OnDuplicate::Refuse,
                },
                group: (how == How::Grouped).then_some(b"g"),
                batch: (how == How::Member).then_some(BATCH),
                ..NewMessage::default()
            })
            .collect();
        let mut outcomes = Vec::new();
        let Node { queue, floor, .. } = &mut self.master;
        match &messages[..] {
            [message] => outcomes.push(queue.push(ms(self.now), floor, message)),
            _ => queue.push_all(ms(self.now), floor, &messages, |outcome| outcomes.push(outcome)).unwrap(),
        }
        let mut images = Vec::new();
        for (name, outcome) in names.iter().zip(outcomes) {
            let known = self.master.belief.held[*name];
            // A dead message that may be dropped at any time may be there or not.
            let unsure = *name == LOOSE || self.master.belief.drops_dead;
            let Pushed::Added { image, replaced } = outcome else {
                let done = self.master.belief.done[*name] > self.now;
                self.expect(unsure || known.is_some() || done, "a new message is refused");
                continue;
            };
            let done = self.master.belief.done[*name] > self.now;
            self.expect(unsure || replaced == (known.is_some() || done), "a message is replaced that is not there");
            let sequence = image.record.sequence.0;
            self.expect(sequence > self.last.0, "a sequence is given again");
            self.last.0 = sequence;
            let due = self.now + if due { DELAY } else { 0 };
            let mut pushed = Known::pushed(sequence, due, ttl.then_some(DELAY));
            if let (dq_queue::Phase::Successor { .. }, Some(known)) = (image.record.phase, known) {
                (pushed.phase, pushed.named) = (known.phase, known.named);
            }
            self.master.belief.held[*name] = Some(pushed);
            self.master.belief.done[*name] = 0;
            self.master.belief.loose |= *name == LOOSE;
            self.master.belief.totals[0] += 1;
            images.push(image);
        }
        let changed = !images.is_empty();
        if changed {
            self.send(Effect::Push(None, images));
        }
        changed
    }

    /// Says what follows the batch. It is pushed as the third message, or with a generated id if that is taken, so both
    /// are compared loosely.
    pub(super) fn follow(&mut self) -> bool {
        let Node { queue, floor, belief } = &mut self.master;
        let then = FollowUp { name: Some(NAMES[LOOSE].into()), ..FollowUp::default() };
        if queue.batch(ms(self.now), BATCH).is_some_and(|batch| batch.then.is_some()) {
            return false;
        }
        belief.loose = true;
        let last = queue.close_batch(ms(self.now), floor, BATCH, &then).unwrap().last;
        self.send(Effect::Batch { settings: None, name: BATCH, last, then: Some(Box::new(then)) });
        true
    }

    pub(super) fn schedule(&mut self) -> bool {
        let rule = Rule::Every { every: DurationMs::new(2), offset: DurationMs::ZERO };
        let schedule = Schedule {
            name: NAMES[LOOSE],
            payload: b"x",
            series: Series { rule, until: None, times: None },
            first: None,
            priority: 0,
            retries: None,
            lease: None,
            ttl: None,
            group: None,
            headers: None,
        };
        let Node { queue, floor, belief } = &mut self.master;
        let effect = match queue.schedule(ms(self.now), floor, &schedule) {
            Scheduled::Created(image) | Scheduled::Changed(image) => {
                self.last.0 = self.last.0.max(image.record.sequence.0);
                let pushed = Known::pushed(image.record.sequence.0, image.record.due.as_ms(), None);
                let (phase, named) =
                    belief.held[LOOSE].map_or((Phase::Waiting, false), |known| (known.phase, known.named));
                belief.held[LOOSE] = Some(Known { phase, named, ..pushed });
                Effect::Schedule(None, image)
            }
            Scheduled::Deferred(sequence, declared) => Effect::Declare(sequence, declared),
            _ => return false,
        };
        belief.loose = true;
        self.send(effect);
        true
    }
}
