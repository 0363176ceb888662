//! The header of a message: 18 bytes, with the parts of a record packed as densely as possible.

use super::deliveries::{Delivery, DeliveryPlace, DELIVERIES_MAX};
use crate::id::{Receipt, Sequence};
use crate::record::{Phase, Reason};
use crate::time::UnixMs;

/// The order of the view that a message is in, which is the state that time has moved it to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Waiting,
    InFlight,
    Dead,
}

/// What is stored of every message in addition to its bytes.
///
/// The numbers are arrays of bytes, since a `u64` would align the header to 8 bytes and so take 24.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// The lower 48 bits of the sequence. Its segment has the upper ones, which all of its messages share.
    low: [u8; 6],
    /// The due time in the lower 44 bits, then 8 bits of priority, then the flags.
    word: [u8; 8],
    /// Where the bytes of the message begin.
    pub(super) offset: u16,
    /// The place of the delivery in the lower 12 bits, 0 for none, and [`GROUPED`], [`HEADED`], [`CHECKPOINT`] and
    /// [`BATCHED`].
    place: u16,
}

const _: () = assert!(size_of::<Header>() == 18);

/// The number of bits of a sequence that a header has. The sequences of 2^28 ms, about three days, share the others.
const LOW_BITS: u32 = 48;
pub(super) const LOW_MASK: u64 = (1 << LOW_BITS) - 1;

/// The part of a sequence that all messages of a segment share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Era(u16);

impl Era {
    pub fn containing(sequence: Sequence) -> Era {
        Era((sequence.0 >> LOW_BITS) as u16)
    }

    /// The sequence of a message whose header is `header`.
    pub fn sequence(self, header: &Header) -> Sequence {
        Sequence(u64::from(self.0) << LOW_BITS | header.low())
    }
}

const DUE_BITS: u32 = 44;
const DUE_MASK: u64 = (1 << DUE_BITS) - 1;
const PRIORITY_SHIFT: u32 = DUE_BITS;
const PRIORITY_MASK: u64 = 0xff << PRIORITY_SHIFT;
pub(super) const NAMED: u64 = 1 << 52;
pub(super) const RETRIES: u64 = 1 << 53;
pub(super) const LEASE: u64 = 1 << 54;
pub(super) const TTL: u64 = 1 << 55;
pub(super) const LARGE: u64 = 1 << 56;
pub(super) const ERROR: u64 = 1 << 57;
const PLACEMENT_SHIFT: u32 = 58;
const PLACEMENT_MASK: u64 = 3 << PLACEMENT_SHIFT;
const PHASE_SHIFT: u32 = 60;
const PHASE_MASK: u64 = 7 << PHASE_SHIFT;

/// Set for a message that has an entry in the map of recurring messages.
pub(super) const RECURRING: u64 = 1 << 63;

/// The bits of `place` that are a place.
const PLACE_MASK: u16 = DELIVERIES_MAX as u16;
const _: () = assert!(DELIVERIES_MAX < 1 << 12);

/// Set in `place` for a message that has a group.
const GROUPED: u16 = 1 << 15;

/// Set in `place` for a message that has headers.
const HEADED: u16 = 1 << 14;

/// Set in `place` for a message that has a checkpoint.
const CHECKPOINT: u16 = 1 << 13;

/// Set in `place` for a message that was pushed into a batch.
const BATCHED: u16 = 1 << 12;

impl Header {
    /// The header of a waiting message that has nothing but a due time and a priority.
    pub fn new(sequence: Sequence, due: UnixMs, priority: i8, offset: u16) -> Header {
        let [a, b, c, d, e, f, ..] = sequence.0.to_le_bytes();
        let mut header = Header { low: [a, b, c, d, e, f], word: [0; 8], offset, place: 0 };
        header.set_due_and_priority(due, priority);
        header.set_placement(Placement::Waiting);
        header
    }

    /// The lower bits of the sequence, by which the headers of a segment are ordered.
    pub fn low(&self) -> u64 {
        let [a, b, c, d, e, f] = self.low;
        u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    fn word(&self) -> u64 {
        u64::from_le_bytes(self.word)
    }

    fn set_word(&mut self, word: u64) {
        self.word = word.to_le_bytes();
    }

    /// Whether any of the flags is set.
    pub fn has(&self, flags: u64) -> bool {
        self.word() & flags != 0
    }

    /// Sets or clears flags.
    pub fn set(&mut self, flags: u64, to: bool) {
        self.set_word(if to { self.word() | flags } else { self.word() & !flags });
    }

    pub fn set_due_and_priority(&mut self, due: UnixMs, priority: i8) {
        let both = due.as_ms() | u64::from(priority as u8) << PRIORITY_SHIFT;
        self.set_word(self.word() & !(DUE_MASK | PRIORITY_MASK) | both);
    }

    /// The place of its last delivery.
    pub fn delivery(&self) -> Option<DeliveryPlace> {
        DeliveryPlace::new(self.place & PLACE_MASK)
    }

    pub fn set_delivery(&mut self, place: Option<DeliveryPlace>) {
        self.place = self.place & !PLACE_MASK | place.map_or(0, DeliveryPlace::get);
    }

    pub fn set_grouped(&mut self) {
        self.place |= GROUPED;
    }

    pub fn set_batched(&mut self) {
        self.place |= BATCHED;
    }

    pub fn set_headed(&mut self) {
        self.place |= HEADED;
    }

    /// Marks the message as removed.
    pub fn set_removed(&mut self) {
        self.set(PLACEMENT_MASK, false);
    }

    pub fn is_present(&self) -> bool {
        self.has(PLACEMENT_MASK)
    }

    pub fn is_named(&self) -> bool {
        self.has(NAMED)
    }

    pub fn is_large(&self) -> bool {
        self.has(LARGE)
    }

    pub fn has_error(&self) -> bool {
        self.has(ERROR)
    }

    pub fn is_recurring(&self) -> bool {
        self.has(RECURRING)
    }

    pub fn is_grouped(&self) -> bool {
        self.place & GROUPED != 0
    }

    pub fn is_batched(&self) -> bool {
        self.place & BATCHED != 0
    }

    /// Whether headers stand in front of the payload.
    pub fn is_headed(&self) -> bool {
        self.place & HEADED != 0
    }

    pub fn has_checkpoint(&self) -> bool {
        self.place & CHECKPOINT != 0
    }

    pub fn set_checkpoint(&mut self, present: bool) {
        self.place = if present { self.place | CHECKPOINT } else { self.place & !CHECKPOINT };
    }

    /// Whether the bytes in the segment are nothing but the payload, or a part of a message that has no payload there.
    pub(super) fn is_plain(&self) -> bool {
        !self.has(NAMED | RETRIES | LEASE | TTL) && self.place & (GROUPED | HEADED | BATCHED) == 0
    }

    /// Whether something of the message is stored apart from its segment.
    pub fn has_attachment(&self) -> bool {
        self.has(LARGE | ERROR | RECURRING) || self.has_checkpoint()
    }

    /// The number of bytes that the options before the group take.
    pub(super) fn options_len(&self) -> usize {
        (if self.has(RETRIES) { size_of::<i32>() } else { 0 })
            + if self.has(LEASE) { size_of::<u64>() } else { 0 }
            + if self.has(TTL) { 2 * size_of::<u64>() } else { 0 }
    }

    /// The number of bytes that the numbers of the group and the batch take, which follow the options.
    #[inline]
    pub(super) fn numbers_len(&self) -> usize {
        (self.place & (GROUPED | BATCHED)).count_ones() as usize * size_of::<u32>()
    }

    pub fn due(&self) -> UnixMs {
        UnixMs::new(self.word() & DUE_MASK)
    }

    pub fn priority(&self) -> i8 {
        ((self.word() & PRIORITY_MASK) >> PRIORITY_SHIFT) as u8 as i8
    }

    pub fn placement(&self) -> Placement {
        match (self.word() & PLACEMENT_MASK) >> PLACEMENT_SHIFT {
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
        self.set_word(self.word() & !PLACEMENT_MASK | bits << PLACEMENT_SHIFT);
    }

    pub(super) fn phase(&self) -> PhaseTag {
        match (self.word() & PHASE_MASK) >> PHASE_SHIFT {
            1 => PhaseTag::Leased,
            2 => PhaseTag::Dead(Reason::Rejected),
            3 => PhaseTag::Dead(Reason::Expired),
            4 => PhaseTag::Dead(Reason::Retries),
            5 => PhaseTag::Successor,
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
            PhaseTag::Successor => 5,
            PhaseTag::GivenBack => 7,
        };
        self.set_word(self.word() & !PHASE_MASK | bits << PHASE_SHIFT);
    }
}

/// The phase that a header and a delivery describe.
pub(super) fn phase_of(tag: PhaseTag, delivery: Delivery) -> Phase {
    let moment = UnixMs::new(delivery.moment);
    match tag {
        PhaseTag::Waiting | PhaseTag::GivenBack => Phase::Waiting,
        PhaseTag::Leased => Phase::Leased { deadline: moment, receipt: Receipt(delivery.receipt) },
        PhaseTag::Successor => Phase::Successor { deadline: moment, receipt: Receipt(delivery.receipt) },
        PhaseTag::Dead(reason) => Phase::Dead { died: moment, reason },
    }
}

/// A phase without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseTag {
    Waiting,
    /// It waits, and was delivered before, but the delivery was not counted. The record does not say this: it is only
    /// remembered so that the statistics do not count another first delivery.
    GivenBack,
    Leased,
    Successor,
    Dead(Reason),
}

impl From<Phase> for PhaseTag {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Waiting => PhaseTag::Waiting,
            Phase::Leased { .. } => PhaseTag::Leased,
            Phase::Successor { .. } => PhaseTag::Successor,
            Phase::Dead { reason, .. } => PhaseTag::Dead(reason),
        }
    }
}
