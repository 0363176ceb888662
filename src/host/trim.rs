//! Drops the dead and done messages that the settings of a queue no longer keep, as far as a command does. The timer
//! drops the rest ([`super::advance`]).

use super::listeners;
use super::queue_value::QueueValue;
use super::session::Session;
use crate::schedule::with_schedule;
use dq_queue::Trimmed;

/// The maximum number of excess dead and done messages that one command drops.
const TRIMMED: usize = 64;

impl Session<'_> {
    /// Drops the dead and done messages that exceed the limits after a change, and replicates that.
    #[inline]
    pub fn keep_limits(&self, held: &mut QueueValue) {
        if held.queue.has_excess() {
            self.trim_excess(held);
        }
    }

    #[cold]
    fn trim_excess(&self, held: &mut QueueValue) {
        let trimmed = held.queue.trim(TRIMMED);
        self.replicate_trim(held, trimmed);
        if held.queue.has_excess() {
            with_schedule(|schedule| schedule.look_at(&self.ctx, self.now, self.db, self.name.bytes()));
        }
    }

    /// Drops dead and done messages that the settings no longer keep, after a change of the settings.
    pub fn trim(&self, held: &mut QueueValue) {
        let trimmed = held.queue.trim_now(self.now);
        self.replicate_trim(held, trimmed);
    }

    /// Drops the message with the id `id` if it is a dead message that the settings no longer keep, for a push of that
    /// id. Returns whether it did.
    pub fn drop_excess(&self, held: &mut QueueValue, id: &[u8]) -> bool {
        let Some(dropped) = held.queue.drop_excess(self.now, id) else { return false };
        self.replicate_trim(held, dropped);
        true
    }

    fn replicate_trim(&self, held: &mut QueueValue, trimmed: Trimmed) {
        if listeners::any(self.ctx) {
            trimmed.effects().for_each(|effect| self.replicate(held, effect));
        }
    }
}
