//! Pausing: what a queue delivers, what it accepts, or both, and resuming it.

use super::{DurationMs, Queue, UnixMs};
use crate::gate::{Flow, Pause};

impl Queue {
    /// Suspends a flow for `length`, or until it is resumed if `length` is `None`. Never shortens a running pause.
    /// Returns the new pause and the flow whose pause it is, or `None` if that changed nothing. O(1).
    pub fn suspend(&mut self, now: UnixMs, flow: Flow, length: Option<DurationMs>) -> Option<(Pause, Flow)> {
        let now = self.observe(now);
        let pause = Pause::starting(now, length);
        let is_longer = |held: Pause| pause.holds_at(now) && (pause > held || !held.holds_at(now));
        let flow = self.part_of(flow, is_longer)?;
        self.gate.set_pause(pause, flow);
        Some((pause, flow))
    }

    /// Resumes a flow. Returns the part of it that was suspended, or `None` if nothing was. O(1).
    pub fn resume(&mut self, now: UnixMs, flow: Flow) -> Option<Flow> {
        let now = self.observe(now);
        let flow = self.part_of(flow, |held| held.holds_at(now))?;
        self.gate.set_pause(Pause::Off, flow);
        Some(flow)
    }

    /// [`Queue::suspend`] for the deliveries of one group, whether or not it has messages. Returns the new pause, or
    /// `None` if that changed nothing. O(log n), and without a `GROUPINFLIGHT` O(log n) for each message that waits.
    pub fn suspend_group(&mut self, now: UnixMs, name: &[u8], length: Option<DurationMs>) -> Option<Pause> {
        let now = self.observe(now);
        let (pause, held) = (Pause::starting(now, length), self.group_pause(name).at(now));
        (pause.holds_at(now) && pause > held).then(|| {
            self.set_group_pause(name, pause, now);
            pause
        })
    }

    /// Resumes a group. Returns whether it was suspended. The cost is that of [`Queue::suspend_group`].
    pub fn resume_group(&mut self, now: UnixMs, name: &[u8]) -> bool {
        let now = self.observe(now);
        let held = self.group_pause(name).holds_at(now);
        if held {
            self.set_group_pause(name, Pause::Off, now);
        }
        held
    }

    fn group_pause(&self, name: &[u8]) -> Pause {
        self.messages.gates().map_or(Pause::Off, |gates| gates.pause(name))
    }

    /// Sets the pause of a group at `now`.
    pub(crate) fn set_group_pause(&mut self, name: &[u8], pause: Pause, now: UnixMs) {
        self.messages.set_group_pause(name, pause, self.settings.grouprate, now);
        self.view.advance_due(now);
        if let Some(id) = self.group(name) {
            self.view.settle(&self.messages, id);
        }
    }

    /// The part of a flow whose pause that was last set is as asked for.
    fn part_of(&self, flow: Flow, is_so: impl Fn(Pause) -> bool) -> Option<Flow> {
        let out = flow.includes(Flow::Out) && is_so(self.gate.pause());
        let incoming = flow.includes(Flow::In) && is_so(self.gate.closed());
        match (out, incoming) {
            (true, true) => Some(Flow::Both),
            (true, false) => Some(Flow::Out),
            (false, true) => Some(Flow::In),
            (false, false) => None,
        }
    }

    /// Whether the queue accepts no messages at `now`, which is its own time.
    #[inline]
    pub(crate) fn is_closed(&self, now: UnixMs) -> bool {
        self.gate.closed().holds_at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Floor;
    use crate::ops::push::{NewMessage, NotPushed, OnDuplicate, Pushed};
    use crate::settings::Settings;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    fn length(ms: u64) -> Option<DurationMs> {
        Some(DurationMs::new(ms))
    }

    #[test]
    fn a_pause_ends_by_itself_and_is_never_shortened() {
        let mut queue = Queue::new(Settings::default());
        let suspend = |queue: &mut Queue, now, length| queue.suspend(at(now), Flow::Out, length).map(|set| set.0);
        assert_eq!(suspend(&mut queue, 1_000, length(500)), Some(Pause::Until(at(1_500))));
        assert_eq!(suspend(&mut queue, 1_100, length(100)), None);
        assert_eq!(queue.pause_at(at(1_499)), Pause::Until(at(1_500)));
        assert_eq!(queue.pause_at(at(1_500)), Pause::Off);
        assert_eq!(queue.resume(at(1_600), Flow::Both), None, "the pause had ended");
        assert_eq!(suspend(&mut queue, 1_700, None), Some(Pause::Endless));
        assert_eq!(suspend(&mut queue, 1_800, length(9_000)), None, "an operator's pause outlives a worker's");
        assert_eq!(queue.resume(at(1_900), Flow::Both), Some(Flow::Out));
        assert_eq!(suspend(&mut queue, 2_000, length(1)), Some(Pause::Until(at(2_001))));
    }

    #[test]
    fn each_flow_has_a_pause_of_its_own() {
        let mut queue = Queue::new(Settings::default());
        queue.suspend(at(1_000), Flow::In, None);
        assert_eq!((queue.pause_at(at(1_000)), queue.closed_at(at(1_000))), (Pause::Off, Pause::Endless));
        let until = Pause::Until(at(1_200));
        assert_eq!(queue.suspend(at(1_100), Flow::Both, length(100)), Some((until, Flow::Out)));
        assert_eq!(queue.resume(at(1_150), Flow::In), Some(Flow::In));
        assert_eq!((queue.pause_at(at(1_150)), queue.closed_at(at(1_150))), (until, Pause::Off));
        assert_eq!(queue.suspend(at(1_160), Flow::Both, None), Some((Pause::Endless, Flow::Both)));
        assert_eq!(queue.resume(at(1_170), Flow::Both), Some(Flow::Both));
        assert!(queue.gate.heap_bytes() == 0, "nothing is left of pauses that are over");
    }

    #[test]
    fn a_closed_queue_answers_duplicates_and_refuses_the_rest() {
        let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
        let held = NewMessage { name: Some(b"held"), ..NewMessage::default() };
        let replacement = NewMessage { on_duplicate: OnDuplicate::Replace, ..held };
        queue.push(at(1_000), &mut floor, &held);
        queue.suspend(at(1_000), Flow::In, length(100));
        assert_eq!(queue.push(at(1_099), &mut floor, &held), Pushed::Duplicate);
        assert_eq!(queue.push(at(1_099), &mut floor, &replacement), Pushed::Closed);
        let refused = queue.push_all(at(1_099), &mut floor, &[held, NewMessage::default()], |_| ());
        assert_eq!(refused, Err(NotPushed::Closed));
        assert_eq!(queue.push_all(at(1_099), &mut floor, &[held, held], |_| ()), Ok(()));
        assert!(matches!(queue.push(at(1_100), &mut floor, &replacement), Pushed::Added { .. }));
    }
}
