//! The commands of clients to the master, but for pushes and deliveries.

use super::*;

impl Nodes {
    pub(super) fn command(&mut self, act: Act) -> bool {
        let now = ms(self.now);
        let all = |now: u64, is: fn(Is) -> bool| move |known: &&mut Known| is(known.at(now));
        match act {
            Act::Push(name, how) => return self.push(&[name], how),
            Act::PushBoth => return self.push(&[0, 1], How::Now),
            Act::Pop => return self.pop(1, Lease::For(DurationMs::new(LEASE)), Some(CONSUMER), Vec::new()),
            Act::PopTwo => return self.pop(2, Lease::Default, None, Vec::new()),
            Act::Take => return self.pop(1, Lease::NoAck, None, Vec::new()),
            Act::Ack(name, which) => {
                let Some(sequence) = self.finish(name, which, |queue, target| Some(queue.ack(now, target)?.sequence))
                else {
                    return false;
                };
                self.send(Effect::Ack(vec![sequence]));
            }
            Act::AckPop(name) => {
                let ack = |queue: &mut Queue, target: &Target<'_>| Some(queue.ack(now, target)?.sequence);
                let acked: Vec<_> = self.finish(name, Which::Latest, ack).into_iter().collect();
                let was_acked = !acked.is_empty();
                if !self.pop(1, Lease::Default, None, acked.clone()) && was_acked {
                    self.send(Effect::Ack(acked));
                }
                return was_acked;
            }
            Act::Complete(name) => {
                let how = Completion { result: Some(b"r"), retain: Some(DurationMs::new(RETAINED)) };
                let mut until = None;
                let Some(sequence) = self.finish(name, Which::Latest, |queue, target| {
                    let completed = queue.complete(now, target, &how)?;
                    until = completed.until;
                    Some(completed.sequence)
                }) else {
                    return false;
                };
                self.master.belief.done[name] = until.map_or(0, UnixMs::as_ms);
                self.send(Effect::Complete { sequence, until, result: Some(b"r") });
            }
            Act::Nack(name, verdict) => return self.nack(name, verdict),
            Act::Extend(name) => {
                let Some(target) = self.target(name, Which::Latest) else { return false };
                let extended = self.master.queue.extend(now, &target, None, None);
                let may = self.is(name) == Some(Is::InFlight) && self.is_current(name, &target);
                self.expect(
                    name == LOOSE || extended.is_some() == may,
                    "a lease is extended that does not run, or is not",
                );
                let Some((sequence, deadline)) = extended else { return false };
                self.change(name, |known| {
                    if let Phase::Leased { receipt, .. } = known.phase {
                        known.phase = Phase::Leased { receipt, deadline: deadline.as_ms() };
                    }
                });
                self.send(Effect::Extend { those: [(sequence, deadline)].into_iter().collect(), checkpoint: None });
            }
            Act::Cancel(name) => {
                let cancelled = self.master.queue.cancel(now, &id(name));
                self.expect(
                    name == LOOSE || self.is(name).is_none() || cancelled.is_some(),
                    "a message is not cancelled",
                );
                let Some((sequence, _)) = cancelled else { return false };
                self.master.belief.held[name] = None;
                self.master.belief.done[name] = 0;
                self.send(Effect::Cancel(vec![sequence], Vec::new()));
            }
            Act::Reschedule(name) => {
                let to = Reschedule { due: Some(Due::After(DurationMs::new(DELAY))), priority: None };
                let moved = self.master.queue.reschedule(now, &id(name), &to);
                let may = matches!(self.is(name), Some(Is::Delayed | Is::Ready));
                self.expect(moved.is_some() == may, "a message is moved that does not wait, or is not");
                let Some(moved) = moved else { return false };
                let (due, at) = (self.now + DELAY, self.now);
                self.change(name, |known| known.moved_to(due, at));
                self.send(Effect::Reschedule { sequence: moved.sequence, due: moved.due, priority: None });
            }
            Act::Promote => {
                let promoted = self.master.queue.promote(now, usize::MAX, None);
                let at = self.now;
                let delayed = self.master.belief.held.iter_mut().flatten().filter(all(at, |is| is == Is::Delayed));
                delayed.for_each(|known| known.moved_to(at, at));
                if promoted.count == 0 {
                    return false;
                }
                self.send(Effect::Promote(promoted.due, promoted.spans));
            }
            Act::Bury(name) => {
                let Some(buried) = self.master.queue.bury(now, &id(name), None) else { return false };
                let at = self.now;
                self.change(name, |known| known.phase = Phase::Dead { died: at, rejected: true });
                self.send(Effect::Bury(buried.sequence, None));
                self.drop_excess();
            }
            Act::Redrive => {
                let which = ToRedrive::Oldest(Oldest::first(usize::MAX));
                let redriven = self.master.queue.redrive(now, &which, Due::Now);
                let at = self.now;
                let dead = self.master.belief.held.iter_mut().flatten().filter(all(at, |is| matches!(is, Is::Dead(_))));
                dead.for_each(|known| {
                    known.moved_to(at, at);
                    known.attempts = 0;
                });
                if redriven.count == 0 {
                    return false;
                }
                self.send(Effect::Redrive(redriven.spans, redriven.due));
            }
            Act::Purge => {
                let purged = self.master.queue.purge(now, &ToPurge::all(States::HELD));
                if purged.count == 0 {
                    return false;
                }
                // A purge spares schedules.
                let loose =
                    self.master.belief.held[LOOSE].filter(|_| self.master.queue.find(now, &id(LOOSE)).is_some());
                self.master.belief.held = [None; NAMES.len()];
                self.master.belief.held[LOOSE] = loose;
                self.send(Effect::Purge { messages: purged.messages, done: purged.done });
            }
            Act::Release => {
                let released = self.master.queue.release(now, CONSUMER, None, Verdict::Failed);
                let at = self.now;
                let held = self.master.belief.held.iter_mut().flatten().filter(all(at, |is| is == Is::InFlight));
                for known in held.filter(|known| known.named) {
                    if let Phase::Leased { receipt, .. } = known.phase {
                        known.phase = Phase::Leased { receipt, deadline: at };
                    }
                }
                if released.count == 0 {
                    return false;
                }
                self.send(Effect::Release { ended: released.ended, given_back: released.given_back });
            }
            Act::Pause | Act::Resume => {
                let set = match act {
                    Act::Pause => self.master.queue.suspend(now, Flow::Out, None),
                    _ => self.master.queue.resume(now, Flow::Out).map(|flow| (Pause::Off, flow)),
                };
                let Some((pause, flow)) = set else { return false };
                let paused = act == Act::Pause;
                if std::mem::replace(&mut self.master.belief.paused, paused) == paused {
                    return false;
                }
                self.send(Effect::Pause { pause, flow, group: None });
            }
            Act::KeepNoDead => {
                if std::mem::replace(&mut self.master.belief.drops_dead, true) {
                    return false;
                }
                let settings = Settings { deadlen: Some(0), ..*self.master.queue.settings() };
                self.master.queue.alter(now, settings);
                let targets = self.master.queue.targets();
                self.send(Effect::Alter(settings, targets));
                self.drop_excess();
            }
            Act::ForwardTo => {
                if std::mem::replace(&mut self.master.belief.forwards, true) {
                    return false;
                }
                let to = Forward::Channel { name: b"other"[..].into() };
                self.master.queue.forward_to(now, Source::Due, Some(to));
                let (settings, targets) = (*self.master.queue.settings(), self.master.queue.targets());
                self.send(Effect::Alter(settings, targets));
            }
            Act::Forward => return self.forward(),
            Act::Schedule => return self.schedule(),
            Act::Follow => return self.follow(),
            _ => unreachable!("{act:?} is no command"),
        }
        true
    }

    pub(super) fn drop_excess(&mut self) {
        let trimmed = self.master.queue.trim_now(ms(self.now));
        self.note_trimmed(trimmed);
    }

    pub(super) fn is(&self, name: Name) -> Option<Is> {
        self.master.belief.held[name].map(|known| known.at(self.now))
    }

    pub(super) fn change(&mut self, name: Name, change: impl FnOnce(&mut Known)) {
        self.master.belief.held[name].as_mut().map(change);
    }
}
