//! What clients did and saw, with the earliest and latest time at which it can have happened.

/// From the call to the answer, in ns since the run began, on a clock that never steps.
///
/// What has no answer took effect, if at all, before its connection was seen to be broken: clients never give up on a
/// connection that lives.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub called: u64,
    pub answered: u64,
}

impl Span {
    /// Whether this was over before the other began: only then is the order of the two known.
    pub fn before(&self, other: &Span) -> bool {
        self.answered < other.called
    }
}

/// What the client knows about the effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server replied that it did it.
    Done,
    /// The server replied null or 0: there was nothing to do. For a push: the id is taken.
    Nothing,
    /// The server refused: an error.
    Refused,
    /// No answer came.
    Unknown,
}

/// What was asked for, and what the answer told.
#[derive(Clone, Debug)]
pub enum Act {
    /// Each push has a payload of its own, also where it repeats an id: the payload tells which push was delivered.
    Push {
        name: Option<String>,
        payload: String,
        /// Not to be delivered before, on the server's clock.
        due: i64,
        replace: bool,
        /// The id of the answer.
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
        due: i64,
    },
    Extend {
        receipt: String,
        lease: i64,
        /// The deadline of the answer.
        deadline: i64,
    },
    Cancel {
        id: String,
    },
    Reschedule {
        id: String,
        due: i64,
    },
    /// A `WAIT` that counted a replica: it holds all that was answered before.
    Confirm,
}

/// A message as a consumer got it.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: String,
    pub payload: String,
    pub attempt: i64,
    pub receipt: String,
    /// Between these two, on the server's clock, it was delivered. They are equal where the deadline is known.
    pub earliest: i64,
    pub latest: i64,
    pub lease: i64,
}

impl Delivery {
    /// The number of the receipt. Later deliveries have higher ones.
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
    /// Whether it had an effect, as far as anybody can tell.
    pub fn possible(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::Unknown)
    }

    /// Whether it certainly had one.
    pub fn done(&self) -> bool {
        self.outcome == Outcome::Done
    }
}

/// Everything that happened in a run.
#[derive(Default)]
pub struct History {
    pub ops: Vec<Op>,
    /// When a master was gone for good and its replica took over. It forgets what it had not received.
    pub losses: Vec<u64>,
}
