//! What can be done with a queue: a file for each family of operations.
//!
//! Every operation takes `now`, first notes the time ([`Queue::observe`](super::Queue)), decides, carries the decision
//! out, and returns what others need to know of it: enough for the [`Effect`](super::Effect) that replicates it. The
//! part that carries a decision out is a method of its own, which `apply` calls for a decision that was made elsewhere.

pub mod advance;
pub mod alter;
pub mod cancel;
pub mod deliver;
pub mod extend;
pub mod finish;
pub mod give_back;
pub mod look;
pub mod purge;
pub mod push;
pub mod redrive;
pub mod reschedule;
pub mod scan;
pub mod trim;
