//! Groups: messages of one group are delivered in order, and at most `GROUPINFLIGHT` of them at a time.
//!
//! A message *occupies* its group from its first delivery until it is completed, removed or dead. `GROUPINFLIGHT` is
//! the number of messages that may occupy a group; the next message of a group waits until there is room.
//!
//! Blocked messages must cost a delivery nothing, so they do not stand in the delivery order. The waiting messages of a
//! group are divided into those that the group would deliver (they are *open*: as many as there is room for, and all
//! that occupy the group already) and those that wait for the group (they are *blocked*). The first open message, by
//! due time and push order, is the *head* of its group. Only heads stand in the delivery order, next to the messages
//! without a group. A delivery or the end of an occupation moves the head of one group and admits at most a few
//! messages; nothing moves when a message falls due, since every key is fixed between two changes.
//!
//! ```text
//!   group a (room for 1)          group b (occupied)              delivery order
//!   head   a1  due 10  ─────────────────────────────────────────▶ a1, messages without a group, …
//!   blocked a2, a3, a4 …          retry b1, due 90 (its head) ──▶ …, b1
//!                                 blocked b2, b3 …
//! ```
//!
//! A group that is paused or at its rate ([`gates`]) delivers nothing until an instant, or until it is resumed. All of
//! its messages are blocked until then, those that wait for a retry too, so a pop never meets them. A group whose rate
//! has room for a few has no more than these open. The instants stand in one order ([`view`]), which says when to look
//! at which group again, and is part of the queue's next wake-up.
//!
//! Where a message of a group stands, in the sets of its [`slot`] and in the orders of the [`view`]:
//!
//! | message | set | order |
//! | --- | --- | --- |
//! | never delivered, and the group has room for it | `admitted` | the delivery order as the head, or `behind` |
//! | never delivered, and there is no room | `parked` | `blocked` |
//! | delivered before | `retries` | as an admitted one |
//! | delivered before, in a group that is paused or at its rate | `retries` | `blocked` |
//! | in flight | `leased` | the leases of the queue's view |
//! | dead | `dead` | the dead messages of the queue's view |
//!
//! What moves a message out of its set:
//!
//! | set | what moves it |
//! | --- | --- |
//! | `admitted` | a delivery takes it; less room, or an earlier message, parks the last one |
//! | `parked` | the end of an occupation admits the first one |
//! | `retries` | a delivery takes it |
//! | `leased` | an ack, a nack, a removal, the end of the lease |
//! | `dead` | a redrive, a removal |
//!
//! A pause, or a rate that is spent, blocks retries, until the pause ends or the rate has room.
//!
//! [`names`] knows which groups there are, how many messages each has, and when each had its last turn: it belongs to
//! the messages and is saved. [`view`] says where each message of a group stands: it belongs to the view and follows
//! from the records and the time.

mod gates;
mod line;
mod names;
mod slab;
mod slot;
#[cfg(test)]
mod tests;
mod turns;
mod upcoming;
mod view;

pub use gates::GroupGate;
pub(super) use gates::{GroupGates, Room};
pub use names::{Claim, TurnState};
pub(super) use names::{GroupNames, Membership};
pub(super) use upcoming::{Pops, Upcoming};
pub(super) use view::GroupView;

use super::gate::Pause;
use super::id::{first_tick, GroupId, COUNT_BITS};
use super::rate::Rate;
use super::settings::{GroupOrder, Settings};
use super::time::UnixMs;

/// The longest name of a group, in bytes.
pub const GROUP_NAME_MAX: usize = 255;

/// Whether clients may give a group this name.
pub fn is_group_name(name: &[u8]) -> bool {
    (1..=GROUP_NAME_MAX).contains(&name.len())
}

/// The settings that concern groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupLimits {
    /// How many messages may occupy a group; zero means no limit.
    pub inflight: u64,
    /// Whether groups take turns.
    pub by_turn: bool,
    /// How many messages of a group may be delivered in a period.
    pub rate: Rate,
}

impl From<&Settings> for GroupLimits {
    fn from(settings: &Settings) -> GroupLimits {
        GroupLimits {
            inflight: settings.groupinflight,
            by_turn: settings.grouporder == GroupOrder::Turn,
            rate: settings.grouprate,
        }
    }
}

/// The last turn of a millisecond. Turns are numbered like sequences and receipts.
fn last_turn_at(time: UnixMs) -> u64 {
    first_tick(time) | ((1 << COUNT_BITS) - 1)
}

/// When a group gets its turn, given the due time of its first message: at that time, but not before the group's last
/// turn. Never returns zero, which stands for no turn.
fn place_in_round(due: UnixMs, last_turn: u64) -> u64 {
    first_tick(due).max(last_turn).max(1)
}

/// What clients see of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The messages that wait, due or not, and do not occupy it.
    pub waiting: usize,
    /// The messages that occupy it.
    pub occupied: usize,
    /// The earliest due time of the waiting ones.
    pub oldest_due: Option<UnixMs>,
    /// The pause that holds for it.
    pub pause: Pause,
    /// The instant at which its rate allows a delivery again; `None` if it allows one now.
    pub next_delivery: Option<UnixMs>,
}
