//! Recurring messages: what a queue holds of a schedule in addition to the record of its message.
//!
//! A recurring message is one message that becomes due again and again. Each time at which it is due is a run of it. A
//! run ends when the message is completed or fails for good; the message then waits for the next time of its rule, or
//! is removed if the series is over. Only the few messages that recur have this state, in a side table of the store.

use super::groups::is_group_name;
use super::headers::HeaderBlock;
use super::id::Sequence;
use super::memory::{box_bytes, given};
use super::record::Reason;
use super::rule::Rule;
use super::settings::{Retries, MAX_LENGTH};
use super::time::{DurationMs, UnixMs};

/// The times of a recurring message, as a client declared them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// When it becomes due.
    pub rule: Rule,
    /// The last instant at which a run may be due; `None` means no end.
    pub until: Option<UnixMs>,
    /// The number of runs; `None` means no limit.
    pub times: Option<u64>,
}

impl Series {
    fn is_valid(&self) -> bool {
        self.rule.is_valid() && self.times.is_none_or(|times| (1..=MAX_LENGTH).contains(&times))
    }

    /// Whether a run may be due at `due`.
    pub(super) fn covers(&self, due: UnixMs) -> bool {
        self.until.is_none_or(|until| due <= until)
    }
}

/// A declaration of a schedule that applies from the next run on, because a run has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The times.
    pub series: Series,
    /// The due time of the first run, if the client set one.
    pub first: Option<UnixMs>,
    /// The payload.
    pub payload: Box<[u8]>,
    /// The priority.
    pub priority: i8,
    /// The number of redeliveries after the first delivery of each run.
    pub retries: Retries,
    /// The lease, which overrides the queue's setting.
    pub lease: Option<DurationMs>,
    /// The time to live of each run; zero means no limit.
    pub ttl: DurationMs,
    /// The name of its group.
    pub group: Option<Box<[u8]>>,
    /// Its headers.
    pub headers: Option<HeaderBlock>,
}

/// What a recurring message has in addition to its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recurring {
    /// The times; `None` if the message is still an ordinary one, which becomes recurring once it is completed or
    /// fails.
    pub series: Option<Series>,
    /// The declared priority. That of the record may differ for one run.
    pub priority: i8,
    /// The number of runs that are left, including the one that the message waits for or is in; `None` means no limit.
    pub times_left: Option<u64>,
    /// The number of runs that have ended.
    pub runs: u64,
    /// The number of runs that have failed; they are also counted in `runs`.
    pub failed_runs: u64,
    /// When the last delivery began.
    pub last_run: Option<UnixMs>,
    /// What was declared for the runs after the current one.
    pub declared: Option<Box<Declaration>>,
}

impl Recurring {
    /// The state of a new series.
    pub fn new(series: Series, priority: i8) -> Recurring {
        Recurring { times_left: series.times, series: Some(series), priority, ..Recurring::default() }
    }

    /// The times that clients see: those that apply now, or else those that will apply.
    pub fn shown(&self) -> Option<&Series> {
        self.series.as_ref().or(self.declared.as_ref().map(|declared| &declared.series))
    }

    /// Whether a queue could hold this state.
    pub(super) fn is_valid(&self) -> bool {
        let counts = [self.runs, self.failed_runs, self.times_left.unwrap_or(1)];
        self.shown().is_some()
            && self.series.as_ref().is_none_or(Series::is_valid)
            && counts.iter().all(|count| *count <= MAX_LENGTH)
            && self.declared.as_ref().is_none_or(|declared| declared.is_valid())
    }

    /// The number of bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let declared = self.declared.as_ref();
        box_bytes::<Recurring>()
            + self.series.as_ref().map_or(0, |series| series.rule.heap_bytes())
            + declared.map_or(0, |declared| {
                let group = declared.group.as_ref().map_or(0, |group| given(group.len()));
                box_bytes::<Declaration>()
                    + given(declared.payload.len())
                    + group
                    + declared.headers.as_ref().map_or(0, HeaderBlock::heap_bytes)
                    + declared.series.rule.heap_bytes()
            })
    }
}

impl Declaration {
    /// Whether a client could have declared this.
    pub(super) fn is_valid(&self) -> bool {
        self.series.is_valid()
            && self.lease.is_none_or(|lease| !lease.is_zero())
            && self.group.as_deref().is_none_or(is_group_name)
    }
}

/// How runs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<'a> {
    /// A consumer acknowledged them.
    Acked,
    /// A consumer completed them with `DQ.COMPLETE`.
    Completed,
    /// They were delivered without a lease.
    Taken,
    /// They were forwarded.
    Forwarded,
    /// A nack ended the last attempt.
    Nacked {
        /// Its error.
        error: Option<&'a [u8]>,
        /// The checkpoint that it stored.
        checkpoint: Option<&'a [u8]>,
    },
    /// They were made to fail by `DQ.BURY`, with this error.
    Buried(Option<&'a [u8]>),
    /// Time alone ended them.
    ByTime,
}

impl<'a> Ended<'a> {
    /// The error text that the dead copy of the run gets instead of that of the message.
    pub(super) fn error(self) -> Option<&'a [u8]> {
        match self {
            Ended::Nacked { error, .. } | Ended::Buried(error) => error,
            Ended::Acked | Ended::Completed | Ended::Taken | Ended::Forwarded | Ended::ByTime => None,
        }
    }

    /// The checkpoint that the dead copy of the run gets, in place of that of the message.
    pub(super) fn checkpoint(self) -> Option<&'a [u8]> {
        match self {
            Ended::Nacked { checkpoint, .. } => checkpoint,
            Ended::Acked | Ended::Completed | Ended::Taken | Ended::Forwarded | Ended::Buried(_) | Ended::ByTime => {
                None
            }
        }
    }
}

/// The end of one run of a recurring message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The message.
    pub sequence: Sequence,
    /// How it failed, if it did.
    pub failure: Option<Failure>,
    /// What becomes of the message.
    pub next: Next,
}

/// The failure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When it failed.
    pub died: UnixMs,
    /// Why it failed.
    pub reason: Reason,
    /// The number of deliveries that count: one less than there were if the last one was given back uncounted.
    pub attempts: u32,
    /// The sequence of the dead copy that is kept of it; `None` if none is kept.
    pub copy: Option<Sequence>,
}

/// What becomes of a recurring message when a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It waits for this instant.
    At(UnixMs),
    /// It waits for this instant as it was declared meanwhile, with this sequence.
    Renewed(UnixMs, Sequence),
    /// The series is over, and the message is removed.
    Over,
}

/// The ends of runs that operations of this queue have brought about and that were not replicated yet. Allocated with
/// the first one.
#[derive(Debug, Default)]
pub(super) struct UnsentEnds(pub Vec<RunEnd>);
