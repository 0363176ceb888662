//! Changing the settings.

use super::{Queue, UnixMs};
use crate::settings::Settings;
use std::sync::Arc;

impl Queue {
    /// Replaces the settings. They apply from now on: messages keep the retries and the TTL with which they were
    /// pushed. Dead messages that a lower `DEADLEN` or `DEADTTL` no longer keeps are dropped by
    /// [`Queue::trim_now`]. O(1), and O(n log n) at most if the settings of groups change.
    pub fn alter(&mut self, now: UnixMs, settings: Settings) {
        let now = self.observe(now);
        self.change_settings(now, settings);
    }

    /// Applies new settings.
    pub(crate) fn change_settings(&mut self, now: UnixMs, settings: Settings) {
        self.gate.alter(&settings);
        // Ids whose window has ended stay forgotten under a longer one, and a shorter one applies at once.
        self.forget_ended(now);
        self.settings = Arc::new(settings);
        self.forget_ended(now);
        self.change_group_limits(now);
    }
}
