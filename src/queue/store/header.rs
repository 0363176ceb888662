//! The header of a message: 24 bytes, with the parts of a record packed into two words.

use super::super::id::Receipt;
use super::super::record::{Phase, Reason};
use super::super::time::UnixMs;
use super::deliveries::{Delivery, DeliveryPlace};

/// The order of the view that a message is in, which is the state that time has moved it to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) enum Placement {
    Waiting,
    InFlight,
    Dead,
}

/// What is stored of every message beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub sequence: u64,
    /// The due time in the lower 44 bits, then 8 bits of priority, then the flags.
    pub(super) word: u64,
    pub(super) offset: u16,
    pub(super) flags: u16,
    pub delivery: Option<DeliveryPlace>,
}

const _: () = assert!(size_of::<Header>() == 24);

pub(super) const DUE_BITS: u32 = 44;
pub(super) const DUE_MASK: u64 = (1 << DUE_BITS) - 1;
pub(super) const PRIORITY_SHIFT: u32 = DUE_BITS;
pub(super) const PRIORITY_MASK: u64 = 0xff << PRIORITY_SHIFT;
pub(super) const NAMED: u64 = 1 << 52;
pub(super) const RETRIES: u64 = 1 << 53;
pub(super) const LEASE: u64 = 1 << 54;
pub(super) const TTL: u64 = 1 << 55;
pub(super) const LARGE: u64 = 1 << 56;
pub(super) const ERROR: u64 = 1 << 57;
pub(super) const PLACEMENT_SHIFT: u32 = 58;
pub(super) const PLACEMENT_MASK: u64 = 3 << PLACEMENT_SHIFT;
pub(super) const PHASE_SHIFT: u32 = 60;
pub(super) const PHASE_MASK: u64 = 7 << PHASE_SHIFT;

/// Set for a message that has an entry in the map of recurring messages.
pub(super) const RECURRING: u64 = 1 << 63;

/// Set in `flags` for a message that has a group.
pub(super) const GROUPED: u16 = 1;

/// The placement of a message that was removed.
pub(super) const REMOVED: u64 = 0;

impl Header {
    pub fn is_present(&self) -> bool {
        self.word & PLACEMENT_MASK != REMOVED
    }

    pub fn is_named(&self) -> bool {
        self.word & NAMED != 0
    }

    pub fn is_large(&self) -> bool {
        self.word & LARGE != 0
    }

    pub fn has_error(&self) -> bool {
        self.word & ERROR != 0
    }

    pub fn is_recurring(&self) -> bool {
        self.word & RECURRING != 0
    }

    pub fn is_grouped(&self) -> bool {
        self.flags & GROUPED != 0
    }

    /// Whether something of the message is stored apart from its segment.
    pub fn has_aside(&self) -> bool {
        self.word & (LARGE | ERROR | RECURRING) != 0
    }

    /// The number of bytes that the options before the group and the payload take.
    pub(super) fn options_len(&self) -> usize {
        (if self.word & RETRIES != 0 { size_of::<i32>() } else { 0 })
            + if self.word & LEASE != 0 { size_of::<u64>() } else { 0 }
            + if self.word & TTL != 0 { 2 * size_of::<u64>() } else { 0 }
    }

    pub fn due(&self) -> UnixMs {
        UnixMs::new(self.word & DUE_MASK)
    }

    pub fn priority(&self) -> i8 {
        ((self.word & PRIORITY_MASK) >> PRIORITY_SHIFT) as u8 as i8
    }

    pub fn placement(&self) -> Placement {
        match (self.word & PLACEMENT_MASK) >> PLACEMENT_SHIFT {
            2 => Placement::InFlight,
            3 => Placement::Dead,
            _ => Placement::Waiting,
        }
    }

    pub fn set_placement(&mut self, placement: Placement) {
        let bits = match placement {
            Placement::Waiting => 1,
            Placement::InFlight => 2,
            Placement::Dead => 3,
        };
        self.word = self.word & !PLACEMENT_MASK | bits << PLACEMENT_SHIFT;
    }

    pub(super) fn phase(&self) -> PhaseTag {
        match (self.word & PHASE_MASK) >> PHASE_SHIFT {
            1 => PhaseTag::Leased,
            2 => PhaseTag::Dead(Reason::Rejected),
            3 => PhaseTag::Dead(Reason::Expired),
            4 => PhaseTag::Dead(Reason::Retries),
            5 => PhaseTag::Kept,
            7 => PhaseTag::GivenBack,
            _ => PhaseTag::Waiting,
        }
    }

    pub(super) fn set_phase(&mut self, phase: PhaseTag) {
        let bits = match phase {
            PhaseTag::Waiting => 0,
            PhaseTag::Leased => 1,
            PhaseTag::Dead(Reason::Rejected) => 2,
            PhaseTag::Dead(Reason::Expired) => 3,
            PhaseTag::Dead(Reason::Retries) => 4,
            PhaseTag::Kept => 5,
            PhaseTag::GivenBack => 7,
        };
        self.word = self.word & !PHASE_MASK | bits << PHASE_SHIFT;
    }
}

/// The phase that a header and a delivery describe.
pub(super) fn phase_of(tag: PhaseTag, delivery: Delivery) -> Phase {
    let moment = UnixMs::new(delivery.moment);
    match tag {
        PhaseTag::Waiting | PhaseTag::GivenBack => Phase::Waiting,
        PhaseTag::Leased => Phase::Leased { deadline: moment, receipt: Receipt(delivery.receipt) },
        PhaseTag::Kept => Phase::Kept { deadline: moment, receipt: Receipt(delivery.receipt) },
        PhaseTag::Dead(reason) => Phase::Dead { died: moment, reason },
    }
}

/// A phase without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseTag {
    Waiting,
    /// It waits, and was delivered before, but the delivery was not counted. The record does not say this: it is only
    /// remembered so that the statistics count no second first delivery.
    GivenBack,
    Leased,
    Kept,
    Dead(Reason),
}

impl From<Phase> for PhaseTag {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Waiting => PhaseTag::Waiting,
            Phase::Leased { .. } => PhaseTag::Leased,
            Phase::Kept { .. } => PhaseTag::Kept,
            Phase::Dead { reason, .. } => PhaseTag::Dead(reason),
        }
    }
}
