//! Gathering: a consumer that prefers many messages at once waits for them, but no message waits for long.
//!
//! Whether there are enough follows from the queue and the time alone, so nothing about it is stored: a consumer that
//! gathers is a question, asked again whenever a message becomes deliverable and at the instant at which the wait ends.

use super::pop::Pop;
use super::{DurationMs, Queue, UnixMs};

/// What a consumer gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The smallest number of messages that it wants at once.
    pub least: usize,
    /// How long after its due time a message waits for others at most.
    pub linger: DurationMs,
}

/// Whether a consumer that gathers is to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathered {
    /// It is: there are enough messages, or the first of them has waited for long enough.
    Enough,
    /// It is not, and at this instant the first message will have waited for long enough.
    Until(UnixMs),
    /// It is not: there is no message for it.
    Nothing,
}

impl Queue {
    /// Whether `available` messages, as [`Queue::deliverable`] has just returned for `pop`, are enough for a consumer.
    ///
    /// If limits leave room for fewer messages than it wants, as many as they allow are enough. O(log n).
    pub fn gathered(&self, now: UnixMs, pop: &Pop, gather: &Gather, available: usize) -> Gathered {
        let now = self.own_time(now);
        let Some(first) = self.view.earliest_open().filter(|_| available > 0) else { return Gathered::Nothing };
        let room = self.gate.room(&self.settings, self.view.inflight(), pop.lease, now);
        // If that many are due, and groups hold some of them back, the others are all that there will be for now.
        let open = if self.view.ready() < gather.least { usize::MAX } else { self.view.open() };
        let end = first.after(gather.linger);
        if available >= gather.least.min(room).min(open) || end <= now {
            Gathered::Enough
        } else {
            Gathered::Until(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Lease;
    use crate::id::Floor;
    use crate::ops::push::NewMessage;
    use crate::rate::Rate;
    use crate::settings::Settings;

    const GATHER: Gather = Gather { least: 3, linger: DurationMs::new(100) };

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    fn push(queue: &mut Queue, now: u64, group: Option<&[u8]>) {
        queue.push(at(now), &mut Floor::default(), &NewMessage { group, ..NewMessage::default() });
    }

    fn gathered(queue: &mut Queue, now: u64) -> Gathered {
        let pop = Pop { count: 9, lease: Lease::Default };
        let available = queue.deliverable(at(now), &pop);
        queue.gathered(at(now), &pop, &GATHER, available)
    }

    #[test]
    fn enough_messages_or_a_message_that_waited_are_delivered() {
        let mut queue = Queue::new(Settings::default());
        assert_eq!(gathered(&mut queue, 1_000), Gathered::Nothing);
        push(&mut queue, 1_000, None);
        assert_eq!(gathered(&mut queue, 1_001), Gathered::Until(at(1_100)));
        push(&mut queue, 1_050, None);
        assert_eq!(gathered(&mut queue, 1_099), Gathered::Until(at(1_100)));
        assert_eq!(gathered(&mut queue.duplicate().unwrap(), 1_100), Gathered::Enough);
        push(&mut queue, 1_099, None);
        assert_eq!(gathered(&mut queue, 1_099), Gathered::Enough);
    }

    #[test]
    fn what_limits_allow_is_enough() {
        let limits = [
            Settings { maxinflight: 2, ..Settings::default() },
            Settings { rate: Rate { most: 2, period: DurationMs::new(50) }, ..Settings::default() },
        ];
        for settings in limits {
            let mut queue = Queue::new(settings);
            push(&mut queue, 1_000, None);
            assert_eq!(gathered(&mut queue, 1_000), Gathered::Until(at(1_100)), "there is room for two");
            push(&mut queue, 1_001, None);
            assert_eq!(gathered(&mut queue, 1_001), Gathered::Enough);
        }
    }

    #[test]
    fn what_groups_allow_is_enough_once_that_many_are_due() {
        let mut queue = Queue::new(Settings::default());
        push(&mut queue, 1_000, Some(b"g"));
        push(&mut queue, 1_001, Some(b"g"));
        assert_eq!(gathered(&mut queue, 1_001), Gathered::Until(at(1_100)), "another group may have a message");
        push(&mut queue, 1_002, Some(b"g"));
        assert_eq!(gathered(&mut queue, 1_002), Gathered::Enough);
    }
}
