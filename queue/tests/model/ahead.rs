//! Clocks that go back, in the reference model: a server whose clock was ahead had the queue for a while. What was
//! decided there stays; what time did after the instant to which the clock goes back is undone.

use crate::reference::{Message, Model, State};
use dq_queue::Reason;

/// What time did to a message.
#[derive(Clone)]
pub struct Happened {
    pub at: u64,
    pub before: Message,
    pub after: Message,
}

impl Model {
    /// From now on, what time does is written down.
    pub fn watch_time(&mut self) {
        self.happened = Some(Vec::new());
    }

    /// The clock goes back to `now`, at which [`Model::watch_time`] was called.
    pub fn go_back_to(&mut self, now: u64) {
        self.now = now;
        for Happened { at, before, after } in self.happened.take().into_iter().flatten().rev() {
            let held = self.messages.iter_mut().find(|message| message.sequence == after.sequence);
            // Whether a message is due follows from its due time.
            if (before.state, after.state) == (State::Delayed, State::Ready) {
                continue;
            }
            let last_decided = |message: &Message| {
                let state = if message.state == State::Ready { State::Delayed } else { message.state };
                (state, message.receipt, message.due, message.expires)
            };
            // A later decision stands.
            let Some(held) = held.filter(|held| last_decided(held) == last_decided(&after) && at > now) else {
                continue;
            };
            let leased = matches!(before.state, State::InFlight { .. });
            (held.state, held.chain) = (before.state, before.chain);
            self.totals.lease_expired -= u64::from(leased);
            if let State::Dead { reason, .. } = after.state {
                self.totals.died -= 1;
                self.totals.expired -= u64::from(reason == Reason::Expired);
            }
        }
        for message in self.messages.iter_mut().filter(|message| message.state == State::Ready && message.due > now) {
            message.state = State::Delayed;
        }
    }

    /// Deliveries that lie in the future count as if they had begun now.
    pub fn pull_back(&mut self) {
        let now = self.now;
        self.begun.iter_mut().for_each(|begun| *begun = (*begun).min(now));
        self.gates.pull_back_to(now);
    }

    /// The ids are forgotten whose window has ended: an effect is complete.
    pub fn forget_known(&mut self) {
        let mut known = std::mem::take(&mut self.known);
        known.retain(|(_, accepted)| self.window_holds(*accepted));
        self.known = known;
    }
}
