//! The record of a message, and the function that computes the state of the message at an instant.
//!
//! The record holds what clients decided; [`Record::state_at`] adds what follows from time alone. It is therefore never
//! written anywhere that a message became due, that a lease expired or that a TTL ended: this can always be computed.

use super::id::{Receipt, Sequence};
use super::settings::Retries;
use super::sorted_set::Key;
use super::time::{DurationMs, UnixMs};

/// Why a message is dead. If several reasons apply at once, it is the first of these three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A command made it dead: `DQ.NACK` with `DEAD`, or `DQ.BURY`.
    Rejected,
    /// Its TTL ended before it was completed.
    Expired,
    /// Its last retry was spent.
    Retries,
}

impl Reason {
    /// The word that clients see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Rejected => "rejected",
            Reason::Expired => "expired",
            Reason::Retries => "retries",
        }
    }
}

/// The state of a message at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Due later.
    Delayed,
    /// May be delivered now.
    Ready,
    /// Leased to a consumer.
    InFlight,
    /// Dead since `died` because of `reason`, and kept for inspection.
    Dead {
        /// The instant of death, which may lie before the instant at which it was noticed.
        died: UnixMs,
        /// The reason.
        reason: Reason,
    },
}

impl State {
    /// The state without its details.
    pub const fn kind(self) -> StateKind {
        match self {
            State::Delayed => StateKind::Delayed,
            State::Ready => StateKind::Ready,
            State::InFlight => StateKind::InFlight,
            State::Dead { .. } => StateKind::Dead,
        }
    }

    /// The word that clients see.
    pub const fn as_str(self) -> &'static str {
        self.kind().as_str()
    }
}

/// One of the five states, without the details of a message in it.
///
/// The record of a message determines the first four. A done message has no record any more: see
/// [`super::DoneMessage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Due later.
    Delayed,
    /// May be delivered now.
    Ready,
    /// Leased to a consumer.
    InFlight,
    /// Dead, and kept for inspection.
    Dead,
    /// Completed, and retained for a time.
    Done,
}

impl StateKind {
    /// All five states, in the order in which a purge takes them.
    pub const ALL: [StateKind; 5] =
        [StateKind::Delayed, StateKind::Ready, StateKind::InFlight, StateKind::Dead, StateKind::Done];

    /// The word that clients see.
    pub const fn as_str(self) -> &'static str {
        match self {
            StateKind::Delayed => "delayed",
            StateKind::Ready => "ready",
            StateKind::InFlight => "inflight",
            StateKind::Dead => "dead",
            StateKind::Done => "done",
        }
    }

    /// Whether a message in this state is still to be completed.
    pub const fn is_open(self) -> bool {
        match self {
            StateKind::Delayed | StateKind::Ready | StateKind::InFlight => true,
            StateKind::Dead | StateKind::Done => false,
        }
    }

    /// Parses the word, regardless of case. Returns `None` for any other word.
    pub fn parse(word: &[u8]) -> Option<StateKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str().as_bytes().eq_ignore_ascii_case(word))
    }
}

/// A set of states, which is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(u8);

impl States {
    /// All five.
    pub const ALL: States = States(0b11111);
    /// All but done: the states of messages that are held with their payload.
    pub const HELD: States = States(0b1111);

    /// The set of this one state.
    pub const fn only(kind: StateKind) -> States {
        States(1 << kind as u8)
    }

    /// The union of both sets.
    #[must_use]
    pub const fn and(self, others: States) -> States {
        States(self.0 | others.0)
    }

    /// The states in both sets; `None` if there are none.
    #[must_use]
    pub const fn within(self, others: States) -> Option<States> {
        match self.0 & others.0 {
            0 => None,
            both => Some(States(both)),
        }
    }

    /// Whether the set contains this state.
    pub const fn contain(self, kind: StateKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}

/// The last decision of a client about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits to be delivered.
    Waiting,
    /// It was delivered, and the delivery was neither acked nor nacked yet.
    Leased {
        /// When the lease expires or expired.
        deadline: UnixMs,
        /// The delivery's receipt.
        receipt: Receipt,
    },
    /// It is the successor of a message that is delivered (`REPLACE LATER`), and takes its place when the delivery
    /// ends.
    Successor {
        /// When the lease of that delivery expires or expired.
        deadline: UnixMs,
        /// The receipt of that delivery.
        receipt: Receipt,
    },
    /// A nack or a burial made it dead.
    Dead {
        /// The instant of death.
        died: UnixMs,
        /// The reason.
        reason: Reason,
    },
}

/// A message's time to live: how long, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// The duration in force for this message, more than zero.
    pub duration: DurationMs,
    /// The absolute end.
    pub end: UnixMs,
}

impl Ttl {
    /// A time to live of `duration` from the later of `due` and `now`.
    pub fn starting(duration: DurationMs, due: UnixMs, now: UnixMs) -> Ttl {
        Ttl { duration, end: due.max(now).after(duration) }
    }
}

/// Everything about a message except its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its position in push order.
    pub sequence: Sequence,
    /// When it may be delivered.
    pub due: UnixMs,
    /// The priority; higher ones are delivered first.
    pub priority: i8,
    /// The number of redeliveries after the first delivery.
    pub retries: Retries,
    /// Its own lease, which overrides the queue's setting.
    pub lease: Option<DurationMs>,
    /// The time to live; `None` means no limit.
    pub ttl: Option<Ttl>,
    /// The number of deliveries that count: those since the push, the last redrive or the beginning of the run, except
    /// those that were given back uncounted.
    pub attempts: u32,
    /// The last decision about it.
    pub phase: Phase,
    /// Whether it is a recurring message, which has more state, in the store. Such a message never becomes dead by a
    /// decision: its run ends instead.
    pub recurring: bool,
}

impl Record {
    /// A message that waits to be delivered for the first time, with the priority 0 and no lease of its own. A time to
    /// live of zero is none; it begins at `now` or when the message is due.
    #[inline(always)]
    pub(super) fn new(sequence: Sequence, due: UnixMs, retries: Retries, ttl: DurationMs, now: UnixMs) -> Record {
        Record {
            sequence,
            due,
            priority: 0,
            retries,
            lease: None,
            ttl: (!ttl.is_zero()).then(|| Ttl::starting(ttl, due, now)),
            attempts: 0,
            phase: Phase::Waiting,
            recurring: false,
        }
    }

    /// The state at `now`, which follows from this record and the time alone.
    pub fn state_at(&self, now: UnixMs) -> State {
        // The instant at which its lease ended, if it was leased. A message in flight neither expires nor is delivered
        // again.
        let waits_since = match self.phase {
            Phase::Dead { died, reason } => return State::Dead { died, reason },
            Phase::Leased { deadline, .. } if now < deadline => return State::InFlight,
            Phase::Leased { deadline, .. } => Some(deadline),
            Phase::Successor { deadline, .. } if now < deadline => return State::InFlight,
            // It was not delivered itself, so it is as if it had waited, however the delivery ended.
            Phase::Successor { .. } | Phase::Waiting => None,
        };
        let expired = self.ttl.map(|ttl| ttl.end).filter(|end| *end <= now);
        match (waits_since, expired) {
            (Some(deadline), Some(end)) if end <= deadline => State::Dead { died: deadline, reason: Reason::Expired },
            (Some(deadline), _) if self.retries.spent(self.attempts) => {
                State::Dead { died: deadline, reason: Reason::Retries }
            }
            (_, Some(end)) => State::Dead { died: end, reason: Reason::Expired },
            (_, None) if now < self.due => State::Delayed,
            (_, None) => State::Ready,
        }
    }

    /// Whether it is a successor, and the delivery that it waits for runs at `now`.
    pub fn is_successor_at(&self, now: UnixMs) -> bool {
        matches!(self.phase, Phase::Successor { deadline, .. } if now < deadline)
    }

    /// The same message, waiting to be delivered at `due`, with its time to live restarted at `now`.
    #[must_use]
    pub fn moved_to(&self, due: UnixMs, now: UnixMs) -> Record {
        let ttl = self.ttl.map(|ttl| Ttl::starting(ttl.duration, due, now));
        Record { due, ttl, phase: Phase::Waiting, ..*self }
    }

    /// The key under which the message stands among the leases: (deadline, sequence).
    pub(super) fn lease_key(&self) -> Option<Key> {
        match self.phase {
            Phase::Leased { deadline, .. } | Phase::Successor { deadline, .. } => {
                Some(Key::at(deadline, self.sequence))
            }
            Phase::Waiting | Phase::Dead { .. } => None,
        }
    }

    /// The key under which the message stands among the dead once it is dead: (died, sequence). Time never revives a
    /// dead message, so its instant of death is the same at every later instant.
    pub(super) fn death_key(&self) -> Option<Key> {
        match self.state_at(UnixMs::MAX) {
            State::Dead { died, .. } => Some(Key::at(died, self.sequence)),
            State::Delayed | State::Ready | State::InFlight => None,
        }
    }

    /// Whether a queue could have written this record; records from a file or from the replication stream must pass
    /// this check.
    pub fn is_valid(&self) -> bool {
        self.lease.is_none_or(|lease| !lease.is_zero())
            && self.ttl.is_none_or(|ttl| !ttl.duration.is_zero())
            && !(self.recurring && matches!(self.phase, Phase::Dead { .. }))
            && match self.phase {
                Phase::Leased { .. } => self.attempts > 0,
                Phase::Successor { .. } => self.attempts == 0,
                Phase::Waiting | Phase::Dead { .. } => true,
            }
    }

    /// The receipt that is accepted at `now`: that of the last delivery, whether or not its lease has expired; `None`
    /// once a successor has taken the place of the delivered message.
    pub fn receipt_at(&self, now: UnixMs) -> Option<Receipt> {
        match self.phase {
            Phase::Successor { deadline, .. } if deadline <= now => None,
            Phase::Waiting | Phase::Leased { .. } | Phase::Successor { .. } | Phase::Dead { .. } => self.receipt(),
        }
    }

    /// The receipt of the last delivery, whether or not its lease has expired; for a successor, that of the delivery
    /// that it waits for.
    pub fn receipt(&self) -> Option<Receipt> {
        match self.phase {
            Phase::Leased { receipt, .. } | Phase::Successor { receipt, .. } => Some(receipt),
            Phase::Waiting | Phase::Dead { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(retries: i32, ttl_end: Option<u64>) -> Record {
        let ttl = ttl_end.map(|end| Ttl { duration: DurationMs::new(1), end: UnixMs::new(end) });
        Record {
            sequence: Sequence(1),
            due: UnixMs::new(10),
            priority: 0,
            retries: Retries::new(retries).unwrap(),
            lease: None,
            ttl,
            attempts: 1,
            phase: Phase::Leased { deadline: UnixMs::new(100), receipt: Receipt(1) },
            recurring: false,
        }
    }

    fn dead(died: u64, reason: Reason) -> State {
        State::Dead { died: UnixMs::new(died), reason }
    }

    #[test]
    fn a_waiting_message_is_delayed_then_ready_then_expired() {
        let record = Record { phase: Phase::Waiting, ..leased(0, Some(50)) };
        let states: Vec<State> = [9, 10, 49, 50].map(|now| record.state_at(UnixMs::new(now))).into();
        assert_eq!(states, [State::Delayed, State::Ready, State::Ready, dead(50, Reason::Expired)]);
    }

    #[test]
    fn a_lease_ends_at_its_deadline_and_not_before() {
        assert_eq!(leased(1, None).state_at(UnixMs::new(99)), State::InFlight);
        assert_eq!(leased(1, None).state_at(UnixMs::new(100)), State::Ready);
        assert_eq!(leased(0, None).state_at(UnixMs::new(500)), dead(100, Reason::Retries));
    }

    #[test]
    fn a_ttl_that_ends_in_flight_applies_at_the_deadline() {
        let record = leased(0, Some(60));
        assert_eq!(record.state_at(UnixMs::new(99)), State::InFlight);
        assert_eq!(record.state_at(UnixMs::new(200)), dead(100, Reason::Expired));
    }

    #[test]
    fn spent_retries_come_before_a_ttl_that_ends_later() {
        assert_eq!(leased(0, Some(150)).state_at(UnixMs::new(200)), dead(100, Reason::Retries));
        assert_eq!(leased(1, Some(150)).state_at(UnixMs::new(200)), dead(150, Reason::Expired));
    }
}
