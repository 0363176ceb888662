//! The operations on a queue, with a file for each command or capability.
//!
//! `DQ.COMPLETE` is in [`ack`], `DQ.PROMOTE` in [`reschedule`], `DQ.RESUME` in [`pause`]; `DQ.GET`, `DQ.PEEK` and
//! `DQ.LEN` are in [`look`], `DQ.RELEASE` is in [`consumers`], `MIN` and `LINGER` are [`gather`]. `REPLACE LATER` is
//! [`successor`], `RETAIN` is [`done`], and [`runs`] are those of schedules. [`advance`] is what time does, and
//! [`trim`] drops what `DEADLEN`, `DEADTTL` and `DONELEN` no longer keep.
//!
//! Every operation takes `now`, first records the time ([`Queue::observe`](super::Queue)), decides, applies the
//! decision, and returns what the [`Effect`](super::Effect) that replicates it needs. The part that applies a decision
//! is a method of its own, which `apply` calls for a decision that was made elsewhere.

pub mod ack;
pub mod advance;
pub mod alter;
pub mod batch;
pub mod bury;
pub mod cancel;
pub mod consumers;
pub mod dedupe;
pub mod done;
pub mod extend;
pub mod forward;
pub mod gather;
pub mod groups;
pub mod look;
pub mod lost;
pub mod maxwait;
pub mod nack;
pub mod pause;
pub mod pop;
pub mod purge;
pub mod push;
pub mod redrive;
pub mod reschedule;
pub mod runs;
pub mod scan;
pub mod schedule;
pub mod stats;
pub mod successor;
pub mod trim;

// The files of the operations import from here what most of them need.
use crate::id::{Id, Sequence};
use crate::lost::Loss;
use crate::record::{Phase, Reason, Record, State, StateKind};
use crate::recurring::Ended;
use crate::spans::Spans;
use crate::store::At;
use crate::time::{DurationMs, UnixMs};
use crate::Queue;
