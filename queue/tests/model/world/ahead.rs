//! A queue that comes from a server whose clock is ahead: by `MIGRATE` or `RESTORE`, or because the clock of its own
//! server was corrected before a restart.

use super::{ms, World};
use crate::history::{Act, Way};
use dq_queue::time::UnixMs;
use dq_queue::Effect;

impl World {
    /// A server whose clock is ahead by `ahead` ms holds the queue for one act.
    pub(super) fn act_ahead(&mut self, ahead: u64, act: &Act) {
        // The turns of groups that lie in the future are given anew, in an order that the model does not know.
        if self.replica.is_none() || self.model.by_turn() {
            return;
        }
        // It does not know either how to take back that a kept message has taken the place of another one.
        if self.model.messages.iter().any(|message| message.next.is_some()) {
            return;
        }
        let before = self.model.now;
        // Numbers beyond the last possible instant count as forged: they raise no floor.
        if before + ahead > UnixMs::MAX_AT {
            return;
        }
        self.model.watch_time();
        self.reload(Way::Save);
        self.restart_at(before + ahead);
        let (dead, held) = (self.dead_ids(), self.held());
        self.act(act);
        self.check_lost(act, &held);
        self.check_awaits(&dead);
        self.check_state(true);
        self.model.go_back_to(before);
        self.reload(Way::Rewrite);
        // The timer looks at a queue that was loaded.
        self.lazy.queue.advance(ms(self.clock), 0);
        self.pull_back();
        // The replica has seen the later time.
        self.replica_counts = false;
    }

    /// Each master corrects the recent deliveries that lie in the future, as the timer of a server does.
    fn pull_back(&mut self) {
        let corrected = [&mut self.eager.queue, &mut self.lazy.queue].map(|queue| queue.correct_clock(ms(self.clock)));
        assert_eq!(corrected[0], corrected[1]);
        if corrected[0].is_some() {
            self.model.pull_back();
            self.send(Effect::PullBack);
        }
    }
}
