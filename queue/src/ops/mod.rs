//! The operations on a queue, with a file for each family of them.
//!
//! Every operation takes `now`, first records the time ([`Queue::observe`](super::Queue)), decides, applies the
//! decision, and returns what the [`Effect`](super::Effect) that replicates it needs. The part that applies a decision
//! is a method of its own, which `apply` calls for a decision that was made elsewhere.

pub mod advance;
pub mod alter;
pub mod cancel;
pub mod debounce;
pub mod dedupe;
pub mod deliver;
pub mod done;
pub mod extend;
pub mod finish;
pub mod forward;
pub mod give_back;
pub mod groups;
pub mod keep;
pub mod look;
pub mod purge;
pub mod push;
pub mod redrive;
pub mod reschedule;
pub mod runs;
pub mod scan;
pub mod schedule;
pub mod stats;
pub mod trim;
