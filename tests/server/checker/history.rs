//! What clients did and saw, with the earliest and the latest time at which it can have happened.

/// The time from a call to its reply, in ns since the run began, on a monotonic clock.
///
/// A call without a reply took effect, if at all, before its connection was seen to be broken, because clients never
/// give up on a live connection.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub called: u64,
    pub answered: u64,
    /// The process of the server that was asked.
    pub server: u32,
}

impl Span {
    /// Whether this call ended before the other one began. Only then is the order of the two known.
    pub fn before(&self, other: &Span) -> bool {
        self.answered < other.called
    }
}

/// What the client knows about the effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server replied that it carried out the call.
    Done,
    /// The server replied null or 0, so there was nothing to do. For a push this means that the id is taken.
    Nothing,
    /// The server refused the call with an error.
    Refused,
    /// No reply arrived.
    Unknown,
}

/// A due time on the server's clock. It lies between two instants, which are equal if it is known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub from: i64,
    pub to: i64,
}

impl Due {
    pub fn at(at: i64) -> Due {
        Due { from: at, to: at }
    }

    /// `delay` after an instant between the replies to two `TIME`s, each of which may be lost.
    pub fn after(delay: i64, earliest: Option<i64>, latest: Option<i64>) -> Due {
        let (from, to) =
            (earliest.map_or(i64::MIN, |at| at + delay), latest.map_or(i64::MAX, |at| at.saturating_add(delay)));
        Due { from, to }
    }
}

/// What the client asked for, and what the reply said.
#[derive(Clone, Debug)]
pub enum Act {
    /// A push. Each push has a payload of its own, even if it repeats an id, so the payload of a delivery identifies
    /// the push.
    Push {
        name: Option<String>,
        payload: String,
        due: Due,
        group: Option<String>,
        replace: bool,
        /// The id in the reply.
        given: Option<String>,
    },
    Pop {
        deliveries: Vec<Delivery>,
    },
    Ack {
        receipt: String,
    },
    Nack {
        receipt: String,
        /// The due time, if it changes.
        due: Option<Due>,
        /// Whether the delivery counts as an attempt.
        counts: bool,
    },
    Extend {
        receipt: String,
        lease: i64,
        /// The deadline in the reply.
        deadline: i64,
    },
    Cancel {
        id: String,
    },
    Reschedule {
        id: String,
        due: Due,
    },
    /// A `WAIT` that counted a replica, so the replica has everything that was answered before.
    Confirm,
}

/// A message as a consumer received it.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: String,
    pub payload: String,
    pub attempt: i64,
    pub receipt: String,
    /// The message was delivered between these two instants, on the server's clock. They are equal if the deadline is
    /// known.
    pub earliest: i64,
    pub latest: i64,
    pub lease: i64,
}

impl Delivery {
    /// The number of the receipt. Later deliveries have higher numbers.
    pub fn number(&self) -> u64 {
        self.receipt.rsplit('#').next().and_then(|number| number.parse().ok()).expect("a receipt is id#number")
    }
}

/// One call of one client.
#[derive(Clone, Debug)]
pub struct Op {
    pub span: Span,
    pub outcome: Outcome,
    pub act: Act,
}

impl Op {
    /// Whether the call may have had an effect.
    pub fn possible(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::Unknown)
    }

    /// Whether the call certainly had an effect.
    pub fn done(&self) -> bool {
        self.outcome == Outcome::Done
    }
}

/// A rate limit: at most `most` deliveries begin in any span of `period` ms.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub most: usize,
    pub period: i64,
}

/// What is in the target of a queue that forwards.
#[derive(Clone, Debug)]
pub struct Entry {
    pub payload: String,
    /// The fields of an entry of a stream: the id and the due time of the message, and when the entry was added.
    pub id: Option<String>,
    pub due: Option<i64>,
    pub added: Option<i64>,
}

/// A look at a queue that forwards and at its target.
#[derive(Clone, Debug)]
pub struct Look {
    pub span: Span,
    /// The look was made before this instant on the server's clock.
    pub latest: i64,
    /// The payloads in the queue. If it is `None`, only the newest entries of the target were read.
    pub queue: Option<Vec<String>>,
    pub target: Vec<Entry>,
}

/// One delivery of a schedule, and what its consumer did with it.
#[derive(Clone, Debug)]
pub struct Turn {
    pub span: Span,
    pub id: String,
    /// The number of the receipt.
    pub number: u64,
    pub attempt: i64,
    /// The run was delivered between these two instants, on the server's clock.
    pub earliest: i64,
    pub latest: i64,
    /// The outcome of its ack, if the consumer sent one.
    pub acked: Option<Outcome>,
}

/// A batch that was pushed and closed in one call.
#[derive(Clone, Debug)]
pub struct Batch {
    pub name: String,
    pub span: Span,
    pub pushed: Outcome,
    pub closed: Outcome,
}

/// A delivery of what follows a batch, with the numbers of members that it tells.
#[derive(Clone, Debug)]
pub struct Followed {
    pub batch: String,
    pub id: String,
    pub total: i64,
    pub ended: i64,
    pub span: Span,
}

/// A partition in which a replica took over from a master that went on.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// The process of the old master.
    pub old: u32,
    /// The replica had taken over by this instant, and no client had asked it anything.
    pub at: u64,
    /// The old master had refused a write by this instant, because it had lost its replicas.
    pub refused: Option<u64>,
    /// The old master followed the new one by this instant.
    pub healed: u64,
}

/// The time during which a server began to decide whose clock may be behind that of the one before.
#[derive(Clone, Copy, Debug)]
pub struct Rewind {
    pub begun: u64,
    pub over: u64,
    /// Whether the clocks of the servers differ.
    pub apart: bool,
}

impl Rewind {
    /// Whether it may lie between two calls, in whichever order they were made.
    pub fn separates(&self, one: &Span, other: &Span) -> bool {
        one.called.min(other.called) <= self.over && self.begun <= one.answered.max(other.answered)
    }
}

/// Everything that happened in a run.
#[derive(Default)]
pub struct History {
    pub ops: Vec<Op>,
    /// What was seen of the target of a queue that forwards. The last look was made when the queue was empty.
    pub looks: Vec<Look>,
    /// What happened to the schedules.
    pub series: Vec<Turn>,
    /// The pops of schedules whose reply was lost. Each of them may have delivered a run.
    pub hidden: Vec<Span>,
    /// What was wrong with the schedules at the end of the run.
    pub complaints: Vec<String>,
    /// The batches that were pushed, and what was seen to follow them.
    pub batches: Vec<Batch>,
    pub followed: Vec<Followed>,
    /// The rate limit of the queue, if it has one.
    pub rate: Option<Rate>,
    /// How many messages of one group may be out at a time, if the queue has groups.
    pub group_room: usize,
    /// Whether the deduplication window of the queue is longer than the run.
    pub dedupes: bool,
    /// The instants at which a replica took over from a lost master. The replica lacks what it had not received.
    pub losses: Vec<u64>,
    pub splits: Vec<Split>,
    pub rewinds: Vec<Rewind>,
    /// What an old master was asked after its replica had taken over.
    pub abandoned: Vec<Op>,
}

impl History {
    /// The number of takeovers that may have come before a call was carried out. It tells the order before the numbers
    /// of deliveries do: the clock, and with it the numbers, of a server that takes over may be behind.
    pub fn takeovers(&self, span: &Span) -> usize {
        self.losses.iter().filter(|at| **at < span.answered).count()
    }
}
