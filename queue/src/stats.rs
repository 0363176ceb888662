//! Statistics of one queue: how late its messages are delivered, and how long consumers work on them.
//!
//! They belong to the value in memory, on the server that makes the decisions: they are neither saved nor replicated,
//! and no effect counts in them. So a copy, a loaded queue and a replica start at zero, and a queue from which nothing
//! was ever popped has none. The buckets of the histograms are in `histogram.rs`.

use super::histogram::Histogram;
use super::time::{DurationMs, UnixMs};

/// What was measured in a queue since its value was created or loaded on this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How long after its due time each message was delivered for the first time.
    pub lateness: Histogram,
    /// How long after its delivery each message was completed.
    pub runtime: Histogram,
    /// Pops that were answered with null.
    pub pops_empty: u64,
    /// When the last delivery began.
    pub(super) last_delivery: UnixMs,
    /// The time in ms during which the rate limit alone held a message back, up to the first instant in `limited`.
    rate_limited_ms: u64,
    /// Since when the rate limit alone holds a message back, and when it will allow a delivery.
    pub(super) limited: Option<(UnixMs, UnixMs)>,
}

impl Stats {
    /// Records that from `now` on the rate limit alone holds a message back, until `until`; or that it does not, if
    /// `until` is `None`.
    pub(super) fn note_limited(&mut self, now: UnixMs, until: Option<UnixMs>) {
        self.rate_limited_ms = self.rate_limited_ms(now);
        self.limited = until.map(|until| (now, until));
    }

    /// The time in ms, up to `now`, during which the rate limit alone held a message back.
    pub fn rate_limited_ms(&self, now: UnixMs) -> u64 {
        let running = self.limited.map_or(DurationMs::ZERO, |(since, until)| now.min(until).since(since));
        self.rate_limited_ms.saturating_add(running.as_ms())
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.lateness.heap_bytes() + self.runtime.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Floor, Target};
    use crate::rate::Rate;
    use crate::settings::Settings;
    use crate::{Due, Flow, Lease, Nack, NewMessage, Pop, Queue, Verdict};

    const START: u64 = 1_760_000_000_000;

    fn ms(ms: u64) -> DurationMs {
        DurationMs::new(ms)
    }

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(START + ms)
    }

    #[test]
    fn the_time_of_the_rate_limit_saturates() {
        let mut stats = Stats { rate_limited_ms: u64::MAX - 1, ..Stats::default() };
        stats.note_limited(at(0), Some(at(5)));
        assert_eq!(stats.rate_limited_ms(at(9)), u64::MAX);
    }

    #[test]
    fn the_time_counts_in_which_the_rate_limit_alone_holds_a_message_back() {
        let rate = Rate { most: 1, period: ms(100) };
        let mut queue = Queue::new(Settings { rate, ..Settings::default() });
        let mut floor = Floor::default();
        let at = |ms: u64| UnixMs::new(START + ms);
        let mut act = |queue: &mut Queue, now: u64, push: Option<Due>, pop: usize| {
            if push.is_some() {
                queue.push(at(now), &mut floor, &NewMessage { due: push, ..NewMessage::default() });
            }
            let pop = Pop { count: pop, lease: Lease::Default };
            queue.pop(at(now), &mut floor, &pop, &mut Vec::new(), |_| ());
            queue.note_rate_limit(at(now));
        };
        let limited = |queue: &Queue, now| queue.stats().map(|stats| stats.rate_limited_ms(at(now)));
        act(&mut queue, 0, Some(Due::Now), 1);
        assert_eq!(limited(&queue, 50), Some(0), "nothing is ready");
        act(&mut queue, 20, Some(Due::Now), 0);
        assert_eq!((limited(&queue, 50), limited(&queue, 150)), (Some(30), Some(80)));
        queue.suspend(at(60), Flow::Out, None);
        act(&mut queue, 60, None, 0);
        assert_eq!(limited(&queue, 90), Some(40), "the pause holds it back too");
    }

    struct Scene {
        queue: Queue,
        floor: Floor,
    }

    impl Scene {
        /// A queue with the message `m`, due at 0.
        fn new() -> Scene {
            let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
            let message =
                NewMessage { payload: b"x", name: Some(b"m"), due: Some(Due::At(at(0))), ..NewMessage::default() };
            queue.push(at(0), &mut floor, &message);
            Scene { queue, floor }
        }

        fn pop(&mut self, now: u64, lease: Lease) -> Option<DurationMs> {
            let mut lateness = None;
            let pop = Pop { count: 1, lease };
            self.queue.pop(at(now), &mut self.floor, &pop, &mut Vec::new(), |message| lateness = message.lateness);
            lateness
        }

        fn nack(&mut self, now: u64, verdict: Verdict) {
            let nack = Nack { verdict, delay: Some(DurationMs::ZERO), ..Nack::default() };
            self.queue.nack(at(now), &Target::parse(b"m").unwrap(), &nack).unwrap();
        }

        fn seen(&self) -> (u64, u64) {
            let count = |histogram: &Histogram| histogram.cumulative().last().unwrap().1;
            self.queue.stats().map_or((0, 0), |stats| (count(&stats.lateness), count(&stats.runtime)))
        }
    }

    #[test]
    fn a_queue_that_was_never_popped_has_no_statistics() {
        let scene = Scene::new();
        assert_eq!(scene.queue.stats(), None);
        assert_eq!(size_of::<Option<Box<Stats>>>(), 8);
    }

    #[test]
    fn only_the_first_delivery_is_late() {
        let mut scene = Scene::new();
        assert_eq!(scene.pop(7, Lease::Default), Some(ms(7)));
        scene.nack(8, Verdict::Failed);
        assert_eq!(scene.pop(9, Lease::NoAck), None);
        assert_eq!(scene.seen(), (1, 0));
    }

    #[test]
    fn a_delivery_given_back_without_blame_was_the_first() {
        let mut scene = Scene::new();
        scene.pop(7, Lease::Default);
        scene.nack(8, Verdict::NotCounted);
        scene.queue.promote(at(8), 1, None);
        assert_eq!(scene.pop(9, Lease::Default), None, "it has attempt 1 again");
        scene.nack(10, Verdict::NotCounted);
        assert_eq!(scene.pop(11, Lease::Default), None);
        assert_eq!(scene.seen(), (1, 0));
    }

    #[test]
    fn a_runtime_ends_with_the_ack_even_a_late_one() {
        let mut scene = Scene::new();
        scene.pop(7, Lease::For(ms(10)));
        assert!(scene.queue.ack(at(107), &Target::parse(b"m").unwrap()).is_some());
        assert_eq!(scene.queue.stats().unwrap().runtime.sum_ms(), 100);
        assert_eq!(scene.seen(), (1, 1));
    }

    #[test]
    fn a_copy_starts_at_zero() {
        let mut scene = Scene::new();
        scene.pop(7, Lease::Default);
        scene.queue.count_empty_pop();
        assert_eq!(scene.queue.duplicate().unwrap().stats(), None);
        assert_eq!(scene.queue.stats().unwrap().pops_empty, 1);
    }
}
