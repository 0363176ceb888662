//! Changing messages that are already in a queue: cancel, reschedule, promote, bury, redrive and purge.

mod burying;
mod cancelling;
mod promoting;
mod purging;
mod purging_some;
mod redriving;
mod rescheduling;
