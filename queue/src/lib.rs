//! The delay queue itself: a deterministic state machine.
//!
//! Nothing here knows of Redis, reads a clock, draws a random number, does I/O or holds a global. Every method that
//! depends on time takes `now`, and every answer follows from the state, the call and that `now`. What holds for a
//! [`Queue`] in a test therefore also holds in a server, in a replica, and in an AOF replay.
//!
//! # The idea
//! A message has a [`Record`], which holds what clients decided about it. The state of the message at an instant
//! (delayed, ready, in flight, dead) follows from its record and the time: [`Record::state_at`]. The `view` keeps the
//! messages in the orders that delivery, leases, TTLs and dead messages need. It is derived from the records, and
//! [`Queue::advance`] brings it up to a time. Changes that time alone makes to the view are never replicated. Decisions
//! of clients are replicated, as an [`Effect`] with absolute times and explicit sequences, and [`Queue::apply`] is the
//! only way in which an effect is applied, whether it comes from a master, from the AOF or from another slot.

#![forbid(unsafe_code)]

mod apply;
pub mod backoff;
mod batches;
mod checkpoint;
mod consumers;
mod counters;
pub mod cron;
mod delivery_starts;
mod done;
mod effect;
mod errors;
pub mod forward;
mod gate;
mod groups;
mod headers;
mod histogram;
pub mod id;
mod known;
mod lost;
mod memory;
mod messages;
mod name_index;
mod news;
mod ops;
mod optional;
mod origin;
mod queue;
pub mod rate;
mod record;
mod recurring;
pub mod rule;
pub mod settings;
pub mod sorted_set;
mod spans;
mod stats;
mod store;
pub mod time;
mod view;
mod waiting;
pub mod wire;

pub use apply::Applied;
pub use batches::{is_batch_name, Batch, BatchState, FollowUp, BATCH_NAME_MAX};
pub use checkpoint::CHECKPOINT_MAX;
pub use consumers::{is_consumer_name, CONSUMER_NAME_MAX};
pub use counters::{Counts, Totals};
pub use done::{DoneMessage, RESULT_MAX};
pub use effect::{Deadlines, Effect, Fate, Grant, Image, QueueHeader, Stamped};
pub use errors::{Errors, PastError, ERRORS_MAX, ERROR_MAX};
pub use gate::{Flow, Lease, Pause};
pub use groups::{is_group_name, Claim, Group, GroupGate, TurnState, GROUP_NAME_MAX};
pub use headers::{
    BadHeaders, HeaderBlock, Headers, HEADERS_BYTES_MAX, HEADERS_MAX, HEADER_NAME_MAX, HEADER_VALUE_MAX,
};
pub use histogram::Histogram;
pub use known::KnownId;
pub use lost::{Loss, Losses, Lost};
pub use news::News;
pub use ops::ack::{Acked, Completed, Completion};
pub use ops::advance::Advanced;
pub use ops::batch::Closed;
pub use ops::bury::Buried;
pub use ops::consumers::{Consumer, Released};
pub use ops::forward::{Death, Health, Outgoing};
pub use ops::gather::{Gather, Gathered};
pub use ops::look::{Message, Shown};
pub use ops::nack::{Nack, Nacked, Verdict};
pub use ops::pop::{Delivered, Details, Meta, Pop};
pub use ops::purge::{Purged, Spare, ToPurge};
pub use ops::push::{Due, NewMessage, NotPushed, OnDuplicate, Past, Pushed, PAYLOAD_MAX};
pub use ops::redrive::{Oldest, Redriven, Which};
pub use ops::reschedule::{Promoted, Reschedule, Rescheduled};
pub use ops::scan::ScanFilter;
pub use ops::schedule::{Schedule, Scheduled};
pub use ops::trim::Trimmed;
pub use origin::Origin;
pub use queue::Queue;
pub use record::{Phase, Reason, Record, State, StateKind, States, Ttl};
pub use recurring::{Declaration, Ended, Failure, Next, Recurring, RunEnd, Series};
pub use spans::{Span, Spans};
pub use stats::Stats;
pub use wire::Refused;
