//! Changing messages that are already in a queue: cancel, reschedule, promote, bury, redrive and purge.

mod burying;
mod cancelling;
mod choosing_by_age;
mod promoting;
mod purging;
mod purging_some;
mod redriving;
mod rescheduling;
