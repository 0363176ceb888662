//! The acts of clients, applied to the model and to both masters.

use super::words::*;
use super::{ms, DeliveredMeta, World};
use crate::history::{
    headers, targets, Aim, Beside, Due, Every, Lease, Purge, Push, Redriven, Who, CONSUMERS, GROUPS, NAMES,
};
use crate::reference::{self, Message, NackedTo, State};
use dq_queue::forward::Source;
use dq_queue::id::{Id, Sequence};
use dq_queue::settings::Settings;
use dq_queue::time::DurationMs;
use dq_queue::{Effect, Fate, Flow, Nack, NewMessage, Oldest, Pop, StateKind, States, ToPurge, Verdict, Which};

impl World {
    pub(super) fn push(&mut self, push: &Push) {
        let (mut images, past) = (Vec::new(), past_of(push));
        let payloads: Vec<Vec<u8>> =
            (0..push.copies).map(|copy| vec![(self.steps + copy) as u8; push.size + copy % 7]).collect();
        for (copy, payload) in payloads.iter().enumerate() {
            let name = push.name.filter(|_| copy == 0).map(|nth| NAMES[nth]);
            let (message, request) = asked(push, &past, payload, name, copy as u64 % 5, &self.model);
            let pushed = self.eager.push(self.clock, &message);
            assert_eq!(self.lazy.push(self.clock, &message), pushed);

            let sequence = match &pushed {
                dq_queue::Pushed::Added { image, .. } => Some(image.record.sequence.0),
                _ => None,
            };
            let expected = self.model.push(&request, sequence);
            match (pushed, expected) {
                (dq_queue::Pushed::Added { image, replaced }, reference::Pushed::Added { replaced: expected }) => {
                    assert_eq!(replaced, expected);
                    self.give_sequence(image.record.sequence);
                    images.push(image);
                }
                (dq_queue::Pushed::Duplicate, reference::Pushed::Duplicate) => {}
                (dq_queue::Pushed::HeldDead, reference::Pushed::HeldDead) => {}
                (dq_queue::Pushed::TooLarge, reference::Pushed::TooLarge) => {}
                (dq_queue::Pushed::Closed, reference::Pushed::Closed) => {}
                (dq_queue::Pushed::Full { held }, reference::Pushed::Full(expected)) => assert_eq!(held, expected),
                (pushed, expected) => panic!("{pushed:?} and not {expected:?}"),
            }
        }
        if !images.is_empty() {
            let settings = self.replica.is_none().then_some(self.model.settings);
            self.send(Effect::Push(settings, images));
        }
    }

    /// Pushes or declares a message of the same name as one in flight; does nothing if there is none.
    pub(super) fn act_beside(&mut self, which: usize, of: &Beside) {
        let in_flight = self.model.messages.iter().filter(|message| message.kind() == StateKind::InFlight);
        let names: Vec<&[u8]> = in_flight.filter_map(|message| message.name.as_deref()).collect();
        let Some(name) = names.get(which % names.len().max(1)) else { return };
        let name = NAMES.iter().position(|known| known == name).expect("all names are known");
        match of {
            Beside::Push(push) => {
                self.push(&Push { name: Some(name), replace: true, later: push.past.is_none(), ..push.clone() });
            }
            Beside::Schedule(every) => self.schedule(&Every { name, ..every.clone() }),
        }
    }

    pub(super) fn push_all(&mut self, of: &Push, names: Option<&[usize]>) {
        let payloads: Vec<Vec<u8>> = (0..of.copies).map(|copy| vec![self.steps as u8; of.size + copy % 7]).collect();
        let name = |copy: usize| names.and_then(|names| names.get(copy)).map(|nth| NAMES[*nth]);
        let past = past_of(of);
        let (messages, requests): (Vec<NewMessage<'_>>, Vec<_>) = payloads
            .iter()
            .enumerate()
            .map(|(copy, payload)| asked(of, &past, payload, name(copy), 0, &self.model))
            .unzip();

        let mut pushed = Vec::new();
        let outcome = self.eager.queue.push_all(ms(self.clock), &mut self.eager.floor, &messages, |outcome| {
            pushed.push(outcome);
        });
        let mut likewise = Vec::new();
        let other = self.lazy.queue.push_all(ms(self.clock), &mut self.lazy.floor, &messages, |outcome| {
            likewise.push(outcome);
        });
        assert_eq!((other, &likewise), (outcome, &pushed));
        let added = pushed.iter().filter_map(|pushed| match pushed {
            dq_queue::Pushed::Added { image, .. } => Some(image.clone()),
            _ => None,
        });
        let images: Vec<_> = added.collect();
        let sequences: Vec<u64> = images.iter().map(|image| image.record.sequence.0).collect();
        match (outcome, self.model.push_all(&requests, &sequences)) {
            (Err(dq_queue::NotPushed::Full(held)), Err(reference::Refused::Full(expected))) => {
                assert_eq!((held, pushed.len()), (expected, 0));
            }
            (Err(dq_queue::NotPushed::TooLarge(size)), Err(reference::Refused::TooLarge(expected))) => {
                assert_eq!((size, pushed.len()), (expected, 0));
            }
            (Err(dq_queue::NotPushed::Closed), Err(reference::Refused::Closed)) => assert_eq!(pushed.len(), 0),
            (Ok(()), Ok(expected)) => {
                let pushed = pushed.iter().map(|pushed| match pushed {
                    dq_queue::Pushed::Added { replaced, .. } => reference::Pushed::Added { replaced: *replaced },
                    dq_queue::Pushed::HeldDead => reference::Pushed::HeldDead,
                    _ => reference::Pushed::Duplicate,
                });
                assert_eq!(pushed.collect::<Vec<_>>(), expected);
            }
            (outcome, expected) => panic!("{outcome:?} and not {expected:?}"),
        }
        images.iter().for_each(|image| self.give_sequence(image.record.sequence));
        if !images.is_empty() {
            let settings = self.replica.is_none().then_some(self.model.settings);
            self.send(Effect::Push(settings, images));
        }
    }

    pub(super) fn cancel(&mut self, aims: &[Aim]) {
        let (mut gone, mut forgotten) = (Vec::new(), Vec::new());
        for aim in aims {
            let text = self.text(aim);
            let Some((id, name)) = named(&text) else { continue };
            let cancelled = self.eager.queue.cancel(ms(self.clock), &id);
            assert_eq!(self.lazy.queue.cancel(ms(self.clock), &id), cancelled);
            assert_eq!(cancelled.map(|(sequence, state)| (sequence.0, state)), self.model.cancel(&name));
            gone.extend(cancelled.map(|(sequence, _)| sequence));
            if let (None, Id::Named(text)) = (cancelled, id) {
                let was_known = self.model.forget(text);
                assert_eq!(self.eager.queue.forget(ms(self.clock), text), was_known);
                assert_eq!(self.lazy.queue.forget(ms(self.clock), text), was_known);
                forgotten.extend(was_known.then(|| text.to_vec()));
            }
        }
        if !gone.is_empty() || !forgotten.is_empty() {
            self.send(Effect::Cancel(gone, forgotten.iter().map(|name| &name[..]).collect()));
        }
    }

    pub(super) fn reschedule(&mut self, aim: &Aim, due: Option<Due>, priority: Option<i8>) {
        let text = self.text(aim);
        let Some((id, name)) = named(&text) else { return };
        let due = due.map(|due| due_of(due, 0, self.model.now));
        let instant = due.map(|(_, instant)| instant);
        let to = dq_queue::Reschedule { due: due.map(|(due, _)| due), priority };
        let moved = self.eager.queue.reschedule(ms(self.clock), &id, &to);
        assert_eq!(self.lazy.queue.reschedule(ms(self.clock), &id, &to), moved);
        let expected = self.model.reschedule(&name, instant, priority);
        assert_eq!(moved.map(|moved| moved.sequence.0), expected);
        if let Some(moved) = moved {
            assert_eq!((moved.due.map(|due| due.as_ms()), moved.priority), (instant, priority));
            self.send(Effect::Reschedule { sequence: moved.sequence, due: moved.due, priority: moved.priority });
        }
    }

    pub(super) fn bury(&mut self, aim: &Aim, error: Option<&[u8]>) {
        let text = self.text(aim);
        let Some((id, name)) = named(&text) else { return };
        let buried = self.eager.queue.bury(ms(self.clock), &id, error);
        assert_eq!(self.lazy.queue.bury(ms(self.clock), &id, error), buried);
        let expected = self.model.bury(&name, error);
        let was = expected.map(|(sequence, was, _)| (sequence, was));
        assert_eq!(buried.map(|buried| (buried.sequence.0, buried.was)), was);
        self.expect_end(expected.and_then(|(_, _, end)| end));
        if let Some(buried) = buried {
            self.send(Effect::Bury(buried.sequence, buried.error));
        }
    }

    pub(super) fn promote(&mut self, count: usize, until: Option<i64>) {
        let until = until.map(|from_now| ms(self.model.now.saturating_add_signed(from_now)));
        let promoted = self.eager.queue.promote(ms(self.clock), count, until);
        assert_eq!(self.lazy.queue.promote(ms(self.clock), count, until), promoted);
        let expected = self.model.promote(count, until.map_or(reference::NEVER, |until| until.as_ms()));
        assert_eq!(promoted.count, expected.len());
        assert!(expected.iter().all(|sequence| promoted.spans.contain(Sequence(*sequence))));
        assert_eq!(promoted.due, ms(self.model.now));
        if promoted.count > 0 {
            self.send(Effect::Promote(promoted.due, promoted.spans));
        }
    }

    pub(super) fn redrive(&mut self, which: &Redriven, delay: u64) {
        let (due, instant) = due_of(Due::After(delay), 0, self.model.now);
        let texts: Vec<Vec<u8>> = match which {
            Redriven::Oldest(..) => Vec::new(),
            Redriven::Named(aims) => aims.iter().map(|aim| self.text(aim)).collect(),
        };
        let ids: Vec<_> = texts.iter().map(|text| Id::parse(text)).collect();
        let names: Vec<_> = texts.iter().filter_map(|text| Some(named(text)?.1)).collect();
        let (which, oldest, names) = match which {
            Redriven::Oldest(count, older, reason) => {
                let oldest = Oldest { count: *count, older: older.map(DurationMs::new), reason: *reason };
                (Which::Oldest(oldest), oldest, None)
            }
            Redriven::Named(_) => (Which::Named(&ids), Oldest::first(0), Some(&names[..])),
        };
        let redriven = self.eager.queue.redrive(ms(self.clock), &which, due);
        assert_eq!(self.lazy.queue.redrive(ms(self.clock), &which, due), redriven);
        assert_eq!(redriven.count, self.model.redrive(&oldest, names, instant));
        assert_eq!(redriven.due.as_ms(), instant);
        if redriven.count > 0 {
            self.send(Effect::Redrive(redriven.spans, redriven.due));
        }
    }

    /// What a purge removes: the states for the model, and all of it for the queue.
    fn to_purge(of: &Purge) -> (Vec<StateKind>, ToPurge) {
        let kinds: Vec<StateKind> = of.states.iter().map(|nth| StateKind::ALL[*nth]).collect();
        let states = kinds.iter().map(|kind| States::only(*kind)).reduce(States::and).unwrap();
        (kinds, ToPurge { states, count: of.count, older: of.older.map(DurationMs::new), spare: of.spare })
    }

    pub(super) fn purge(&mut self, of: &Purge) {
        let (kinds, which) = World::to_purge(of);
        let purged = self.eager.queue.purge(ms(self.clock), &which);
        assert_eq!(self.lazy.queue.purge(ms(self.clock), &which), purged);
        if of.count.is_none() && of.older.is_none() {
            assert_eq!(purged.count, self.model.purge(&kinds, of.spare));
        } else {
            let expected = self.model.purge_first(&kinds, of.count.unwrap_or(usize::MAX), of.older, of.spare);
            assert_eq!(purged.count, expected.len());
            let named = |sequence| purged.messages.contain(sequence) || purged.done.contain(sequence);
            assert!(expected.iter().all(|sequence| named(Sequence(*sequence))));
        }
        if purged.count > 0 {
            self.send(Effect::Purge { messages: purged.messages, done: purged.done });
        }
    }

    pub(super) fn purge_group(&mut self, group: usize, of: &Purge) {
        let (kinds, which) = World::to_purge(of);
        let purged = self.eager.queue.purge_group(ms(self.clock), GROUPS[group], &which);
        assert_eq!(self.lazy.queue.purge_group(ms(self.clock), GROUPS[group], &which), purged);
        let expected = self.model.purge_group(GROUPS[group], &kinds, of);
        assert_eq!(purged.count, expected.len());
        assert!(expected.iter().all(|sequence| purged.messages.contain(Sequence(*sequence))));
        if purged.count > 0 {
            self.send(Effect::Purge { messages: purged.messages, done: purged.done });
        }
    }

    /// Changes the settings. One master drops the dead messages that a lower `deadlen` does not keep, and the other one
    /// applies its effect.
    pub(super) fn alter(&mut self, settings: Settings, by: Who) {
        self.model.alter(settings);
        let now = ms(self.clock);
        self.eager.queue.alter(now, settings);
        self.lazy.queue.alter(now, settings);
        if self.replica.is_none() {
            return self.send(Effect::Create(settings, self.targets.clone()));
        }
        self.send(Effect::Alter(settings, self.targets.clone()));
        let trimmed = match by {
            Who::Eager => self.eager.queue.trim_now(now),
            Who::Lazy => self.lazy.queue.trim_now(now),
        };
        let excess = self.model.excess_dead() + self.model.excess_done().len();
        assert_eq!(self.note_trimmed(trimmed, by), excess);
    }

    /// Sets where the queue forwards to.
    pub(super) fn set_target(&mut self, source: Source, to: Option<usize>) {
        if self.replica.is_none() {
            return;
        }
        let to = to.map(|nth| targets()[nth].clone());
        for master in [&mut self.eager, &mut self.lazy] {
            master.queue.forward_to(ms(self.clock), source, to.clone());
        }
        self.targets.set(source, to);
        self.model.moves_dead = self.targets.dead.is_some();
        self.send(Effect::Alter(self.model.settings, self.targets.clone()));
    }

    /// Forwards up to `count` dead messages; the target accepts only the first `taken`.
    pub(super) fn forward_dead(&mut self, count: usize, taken: usize) {
        let now = ms(self.clock);
        let expected = self.model.clone().forward_dead(count);
        let has_dead = !self.model.clone().forward_dead(1).is_empty();
        assert_eq!(self.eager.queue.next_forward(Source::Dead).is_some(), self.model.moves_dead && has_dead);
        let taken = taken.min(expected.len());
        let mut removed = Vec::new();
        for queue in [&mut self.eager.queue, &mut self.lazy.queue] {
            let mut next = Vec::new();
            queue.next_to_forward(now, Source::Dead, count, |message| {
                let expected: &Message = &expected[next.len()];
                let death = message.death.expect("it is dead");
                let state = State::Dead { died: death.died.as_ms(), reason: death.reason };
                assert_eq!(
                    (message.sequence.0, message.due.as_ms(), state),
                    (expected.sequence, expected.due, expected.state)
                );
                assert_eq!((message.name, message.payload), (expected.name.as_deref(), &expected.payload[..]));
                assert_eq!((death.error, death.attempts), (expected.error.as_deref(), expected.attempts));
                assert_eq!((message.headers, message.priority), (expected.headers.map(headers), expected.priority));
                next.push(message.sequence);
                true
            });
            assert_eq!(next.len(), expected.len());
            removed.push(queue.forwarded_dead(now, &next[..taken]));
        }
        assert_eq!(removed[0], removed[1]);
        self.model.forward_dead(taken);
        if taken > 0 {
            self.send(Effect::DeadForward(removed.swap_remove(0)));
        }
    }

    /// A command ends a bounded number of leases, so a message of a higher priority may wait for the timer. This is the
    /// timer if there are many.
    fn catch_up_lazy(&mut self) {
        if self.lazy.queue.counts().inflight > self.eager.queue.counts().inflight + 250 {
            self.advance_lazy(usize::MAX);
        }
    }

    /// Forwards up to `count` messages; the target accepts only the first `taken`.
    pub(super) fn forward(&mut self, count: usize, taken: usize) {
        self.catch_up_lazy();
        let now = ms(self.clock);
        let expected = self.model.clone().forward(count, &mut Vec::new()).len();
        let is_due = self.eager.queue.next_forward(Source::Due).is_some();
        assert_eq!(is_due, self.targets.due.is_some() && self.model.deliverable(usize::MAX, true) > 0);
        let [next, same] = [&mut self.eager.queue, &mut self.lazy.queue].map(|queue| {
            let mut next = Vec::new();
            queue.next_to_forward(now, Source::Due, count, |message| {
                let headers = message.headers.map(|headers| headers.block().to_vec());
                next.push((message.sequence, message.payload.to_vec(), message.due, headers));
                true
            });
            next
        });
        assert_eq!(next, same);
        assert_eq!(next.len(), expected);
        let taken = taken.min(expected);
        let sequences: Vec<Sequence> = next.iter().take(taken).map(|(sequence, ..)| *sequence).collect();
        for queue in [&mut self.eager.queue, &mut self.lazy.queue] {
            assert_eq!(queue.forwarded(now, &sequences, |_| ()), sequences);
            assert_eq!(queue.forwarded(now, &sequences[..0], |_| ()), []);
        }
        let mut ends = Vec::new();
        let delivered = self.model.forward(taken, &mut ends);
        self.expected_ends.extend(ends);
        for ((sequence, payload, due, found), message) in next.iter().zip(&delivered) {
            assert_eq!((sequence.0, payload, due.as_ms()), (message.sequence, &message.payload, message.due));
            assert_eq!(found.as_deref(), message.headers.map(|nth| headers(nth).block()));
        }
        if !sequences.is_empty() {
            self.send(Effect::Forward(sequences));
        }
    }

    pub(super) fn suspend(&mut self, flow: Flow, length: Option<u64>) {
        if self.replica.is_none() {
            return;
        }
        let until = length.map_or(reference::NEVER, |length| reference::after(self.model.now, length));
        let set = self.eager.queue.suspend(ms(self.clock), flow, length.map(DurationMs::new));
        assert_eq!(self.lazy.queue.suspend(ms(self.clock), flow, length.map(DurationMs::new)), set);
        assert_eq!(set.map(|(_, flow)| flow), self.model.suspend(flow, until));
        if let Some((pause, flow)) = set {
            self.send(Effect::Pause { pause, flow, group: None });
        }
    }

    pub(super) fn resume(&mut self, flow: Flow) {
        let resumed = self.eager.queue.resume(ms(self.clock), flow);
        assert_eq!(self.lazy.queue.resume(ms(self.clock), flow), resumed);
        assert_eq!(resumed, self.model.resume(flow));
        if let Some(flow) = resumed {
            self.send(Effect::Pause { pause: dq_queue::Pause::Off, flow, group: None });
        }
    }

    pub(super) fn suspend_group(&mut self, group: &[u8], length: Option<u64>) {
        if self.replica.is_none() {
            return;
        }
        let until = length.map_or(reference::NEVER, |length| reference::after(self.model.now, length));
        let length = length.map(DurationMs::new);
        let set = self.eager.queue.suspend_group(ms(self.clock), group, length);
        assert_eq!(self.lazy.queue.suspend_group(ms(self.clock), group, length), set);
        assert_eq!(set.is_some(), self.model.suspend_group(group, Some(until)));
        if let Some(pause) = set {
            self.send(Effect::Pause { pause, flow: Flow::Out, group: Some(group) });
        }
    }

    pub(super) fn resume_group(&mut self, group: &[u8]) {
        let resumed = self.eager.queue.resume_group(ms(self.clock), group);
        assert_eq!(self.lazy.queue.resume_group(ms(self.clock), group), resumed);
        assert_eq!(resumed, self.model.suspend_group(group, None));
        if resumed {
            self.send(Effect::Pause { pause: dq_queue::Pause::Off, flow: Flow::Out, group: Some(group) });
        }
    }

    /// Checks that a new sequence is higher than all others, and that it follows from the time unless the clock stepped
    /// back.
    pub(super) fn give_sequence(&mut self, sequence: Sequence) {
        let expected = (self.model.now << 20).max(self.given.0 + 1);
        assert_eq!(sequence.0, expected, "{sequence}");
        self.given.0 = sequence.0;
        self.model.given = sequence.0;
    }

    pub(super) fn pop(&mut self, count: usize, lease: Lease) {
        self.pop_after(Vec::new(), count, lease);
    }

    /// Acks messages and pops in one command.
    pub(super) fn ack_pop(&mut self, aims: &[Aim], count: usize, lease: Option<u64>) {
        let acked = self.ack_each(aims);
        if !acked.is_empty() {
            let now = ms(self.model.now);
            [&mut self.eager, &mut self.lazy].into_iter().for_each(|master| master.queue.settle(now));
            self.settle_batches();
        }
        self.pop_after(acked, count, lease.map_or(Lease::Default, Lease::For));
    }

    /// Pops after these messages were acked.
    fn pop_after(&mut self, acked: Vec<Sequence>, count: usize, lease: Lease) {
        let pop = Pop {
            count,
            lease: match lease {
                Lease::Default => dq_queue::Lease::Default,
                Lease::For(lease) => dq_queue::Lease::For(DurationMs::new(lease)),
                Lease::NoAck => dq_queue::Lease::NoAck,
            },
        };
        let expected = self.model.deliverable(count, matches!(lease, Lease::NoAck));
        if self.eager.queue.has_deliverable(ms(self.clock)) != (expected > 0) {
            panic!("has_deliverable where {expected} can be delivered");
        }
        self.catch_up_lazy();
        let now = ms(self.clock);
        assert!(self.lazy.queue.has_deliverable(now) || expected == 0);
        if self.lazy.queue.deliverable(now, &pop) < expected {
            // A command ends a bounded number of TTLs. Messages behind the head of a group may wait for the timer then.
            assert!(self.lazy.queue.groups() > 0 && self.lazy.queue.next_wake().is_some_and(|wake| wake <= now));
            self.lazy.queue.advance(now, usize::MAX);
        }
        assert_eq!(self.lazy.queue.deliverable(now, &pop), expected);
        let (delivered, grants) = self.eager.pop(self.clock, &pop);
        assert_eq!(self.lazy.pop(self.clock, &pop), (delivered.clone(), grants.clone()));

        let lent = match lease {
            Lease::Default => Some(None),
            Lease::For(lease) => Some(Some(lease)),
            Lease::NoAck => None,
        };
        let receipts: Vec<u64> = delivered.iter().filter_map(|popped| popped.receipt).collect();
        let (mut ends, members) = (Vec::new(), self.model.members.clone());
        let expected = self.model.pop(count, lent, &receipts, &mut ends);
        self.expected_ends.extend(ends);
        assert_eq!(delivered.len(), expected.len());
        assert_eq!(grants.len(), expected.len());
        for (popped, message) in delivered.iter().zip(&expected) {
            assert_eq!(popped.sequence, message.sequence);
            assert_eq!(popped.name, message.name);
            assert_eq!(popped.payload, message.payload);
            assert_eq!(popped.attempt, message.attempts + 1);
            let meta = DeliveredMeta {
                created: message.sequence >> 20,
                due: message.due,
                priority: message.priority,
                group: message.group.clone(),
                headers: message.headers.map(|nth| headers(nth).block().to_vec()),
                checkpoint: message.checkpoint.clone(),
                error: message.error.clone(),
                batch: members.iter().find(|(member, _)| *member == message.sequence).map(|(_, name)| name.clone()),
            };
            assert_eq!(popped.meta, meta);
            assert_eq!(popped.receipt.is_some(), lent.is_some());
            if let Some(receipt) = popped.receipt {
                assert!(receipt > self.given.1, "receipts never repeat");
                self.given.1 = receipt;
                self.receipts.push((id_of(message), receipt));
            }
        }
        if grants.is_empty() {
            if !acked.is_empty() {
                self.send(Effect::Ack(acked));
            }
        } else {
            let consumer = self.consumer.map(|nth| CONSUMERS[nth]).filter(|_| lent.is_some());
            if let Some(name) = consumer {
                for master in [&mut self.eager, &mut self.lazy] {
                    master.queue.hold_as(grants.iter().map(|grant| grant.sequence), name);
                }
                self.model.hold_as(&receipts, name);
            }
            self.send(match lease {
                Lease::NoAck => Effect::Take(grants.iter().map(|grant| grant.sequence).collect()),
                Lease::Default | Lease::For(_) => Effect::Deliver { grants, acked, consumer },
            });
        }
    }

    /// The bytes by which a client refers to the message.
    pub(super) fn text(&self, aim: &Aim) -> Vec<u8> {
        let messages = &self.model.messages;
        let nth = |nth: usize, len: usize| if len == 0 { None } else { Some(nth % len) };
        let receipt = |id: &[u8], receipt: u64| [id, format!("#{receipt}").as_bytes()].concat();
        let nothing = || b"0-99".to_vec();
        match aim {
            Aim::Id(which) => nth(*which, messages.len()).map_or_else(nothing, |at| id_of(&messages[at])),
            Aim::Receipt(which) => {
                let having: Vec<_> = messages.iter().filter(|message| message.receipt.is_some()).collect();
                nth(*which, having.len()).map_or_else(nothing, |at| {
                    let message = having[at];
                    receipt(&id_of(message), message.receipt.unwrap())
                })
            }
            Aim::OldReceipt(which) => nth(*which, self.receipts.len())
                .map_or_else(nothing, |at| receipt(&self.receipts[at].0, self.receipts[at].1)),
            Aim::Sequence(which) => nth(*which, messages.len())
                .map_or_else(nothing, |at| Sequence(messages[at].sequence).to_string().into_bytes()),
            Aim::Known(which) => {
                let known = &self.model.known;
                nth(*which, known.len()).map_or_else(nothing, |at| known[at].0.clone())
            }
            Aim::Done(which) => {
                let done = &self.model.done;
                let id = |at: usize| {
                    done[at].name.clone().unwrap_or_else(|| Sequence(done[at].sequence).to_string().into_bytes())
                };
                nth(*which, done.len()).map_or_else(nothing, id)
            }
            Aim::Nothing => b"nothing".to_vec(),
        }
    }

    pub(super) fn ack(&mut self, aims: &[Aim]) {
        let acked = self.ack_each(aims);
        if !acked.is_empty() {
            self.send(Effect::Ack(acked));
        }
    }

    /// Acks messages, and returns their sequences.
    fn ack_each(&mut self, aims: &[Aim]) -> Vec<Sequence> {
        let mut acked = Vec::new();
        for aim in aims {
            let text = self.text(aim);
            let (target, name, receipt) = parsed(&text);
            let had_next = self.model.find(&name).is_some_and(|at| self.model.messages[at].next.is_some());
            let done = self.eager.queue.ack(ms(self.clock), &target);
            assert_eq!(self.lazy.queue.ack(ms(self.clock), &target), done);
            let expected = self.model.ack(&name, receipt);
            assert_eq!(done.map(|done| done.sequence.0), expected.map(|(sequence, _)| sequence));
            let next = self.model.find(&name).filter(|_| had_next && done.is_some());
            let next = next.map(|at| self.model.messages[at].state);
            assert_eq!(done.and_then(|done| done.next).map(|state| state_of(state, 0)), next);
            self.expect_end(expected.and_then(|(_, end)| end));
            acked.extend(done.map(|done| done.sequence));
        }
        acked
    }

    pub(super) fn nack(
        &mut self,
        aim: &Aim,
        delay: Option<u64>,
        error: Option<&[u8]>,
        verdict: Verdict,
        checkpoint: Option<&[u8]>,
    ) {
        let text = self.text(aim);
        let (target, name, receipt) = parsed(&text);
        let nack = Nack { delay: delay.map(DurationMs::new), error, verdict, checkpoint };
        let jitter = u64::from(self.model.settings.backoff.jitter.get());
        let nacked = self.eager.queue.nack(ms(self.clock), &target, &nack);
        assert_eq!(self.lazy.queue.nack(ms(self.clock), &target, &nack), nacked);
        let waited = nacked.and_then(|nacked| match nacked.fate {
            Fate::Due(due) => Some(due.as_ms().saturating_sub(self.model.now)),
            Fate::Dead { .. } => None,
        });
        // The model does not compute the jitter. It only checks that the jitter is within its share.
        let jittered = |full: u64| match waited {
            Some(waited) if jitter > 0 => waited.clamp((full - full * jitter / 100).saturating_sub(1), full),
            _ => full,
        };
        let expected = self.model.nack(&name, receipt, delay, (error, checkpoint), verdict, jittered);
        let Some(nacked) = nacked else { return assert_eq!(expected, None) };
        let (sequence, to, state, end) = expected.expect("it is not in flight");
        self.expect_end(end);
        assert_eq!(nacked.sequence.0, sequence);
        assert_eq!(state_of(nacked.state, 0), state);
        match (nacked.fate, to) {
            (Fate::Due(due), NackedTo::Due(expected)) => assert_eq!(due.as_ms(), expected),
            (Fate::Dead { died, reason }, NackedTo::Dead(expected)) => {
                assert_eq!(reason, expected);
                assert_eq!(State::Dead { died: died.as_ms(), reason }, state);
            }
            (fate, to) => panic!("{fate:?} and not {to:?}"),
        }
        self.send(Effect::Nack {
            sequence: nacked.sequence,
            fate: nacked.fate,
            attempts: nacked.attempts,
            error: nacked.error,
            checkpoint: nacked.checkpoint,
        });
    }

    pub(super) fn extend(&mut self, aims: &[Aim], lease: Option<u64>, checkpoint: Option<&[u8]>) {
        let mut those = Vec::new();
        for aim in aims {
            let text = self.text(aim);
            let (target, name, receipt) = parsed(&text);
            let lease_ms = lease.map(DurationMs::new);
            let extended = self.eager.queue.extend(ms(self.clock), &target, lease_ms, checkpoint);
            assert_eq!(self.lazy.queue.extend(ms(self.clock), &target, lease_ms, checkpoint), extended);
            let expected = self.model.extend(&name, receipt, lease, checkpoint);
            assert_eq!(extended.map(|(sequence, deadline)| (sequence.0, deadline.as_ms())), expected);
            those.extend(extended);
            // A lease that was cut has ended.
            self.advance_eager();
        }
        if !those.is_empty() {
            self.send(Effect::Extend { those: those.into(), checkpoint });
        }
    }
}
