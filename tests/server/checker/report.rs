//! What a check found.

use super::messages::{Message, Messages};
use std::collections::BTreeSet;
use std::fmt;

/// The number of findings that are printed in full.
const TOLD: usize = 10;

/// A violation of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An acknowledged message was neither delivered nor removed.
    Lost,
    /// A message was delivered that was never pushed, or whose push was refused.
    Unexpected,
    /// A message was delivered after it had been acked, cancelled or replaced.
    Returned,
    /// A message was delivered before its due time.
    Early,
    /// A message was delivered while another consumer held it.
    Overlap,
    /// The attempt of a delivery is not one more than that of the delivery before.
    Attempt,
    /// A receipt or its number was issued twice, or is lower than an earlier one.
    Receipt,
    /// A generated id was issued twice, or is lower than an earlier one.
    Id,
    /// A receipt still counted after a later delivery.
    Stale,
    /// An ack did not count although its delivery had not ended.
    Refused,
    /// More deliveries began within the period of a rate limit than it allows.
    Burst,
    /// An id was accepted again within its deduplication window.
    Again,
    /// A message was delivered although others occupied its group.
    Group,
    /// A message was delivered before another one of its group whose turn it was.
    Order,
    /// A message was in the target of its queue twice, or in both at once.
    Twice,
    /// A run of a schedule was lost, repeated, or overlapped another one.
    Run,
    /// What follows a batch was lost or repeated, or tells wrong numbers.
    Batch,
}

/// The numbers of a run, and the faults that were found.
#[derive(Default)]
pub struct Report {
    /// The number of pushes, with any outcome.
    pub attempted: usize,
    /// The number of pushes that were confirmed to the producer.
    pub acknowledged: usize,
    /// The number of messages that were delivered at least once.
    pub delivered: usize,
    /// The number of messages that were delivered more than once.
    pub duplicated: usize,
    /// The number of messages that were delivered although the reply to their push was lost.
    pub recovered: usize,
    /// The number of deliveries of schedules.
    pub runs: usize,
    /// The number of deliveries of messages that have a group.
    pub grouped: usize,
    /// The number of messages in the target of their queue.
    pub forwarded: usize,
    /// The number of messages that followed batches.
    pub batches: usize,
    /// The number of calls of an old master after its replica had taken over.
    pub abandoned: usize,
    /// The numbers of answered pushes and acks that no server knows after a takeover.
    pub forgotten_pushes: usize,
    pub forgotten_acks: usize,
    pub findings: Vec<(Fault, String)>,
    /// The commands that clients have sent, each with the words in capital letters that followed.
    pub said: BTreeSet<(String, String)>,
}

impl Report {
    /// Notes a fault of a message, with all calls that concern the message.
    pub fn find(&mut self, fault: Fault, messages: &Messages<'_>, message: &Message<'_>, what: impl fmt::Display) {
        let story = if self.findings.len() < TOLD { messages.story(message) } else { String::new() };
        self.note(fault, format!("{}: {what}{story}", message.payload));
    }

    /// Notes a fault.
    pub fn note(&mut self, fault: Fault, what: String) {
        self.findings.push((fault, what));
    }

    /// Returns how often a fault was found.
    pub fn count(&self, fault: Fault) -> usize {
        self.findings.iter().filter(|(found, _)| *found == fault).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { attempted, acknowledged, delivered, duplicated, recovered, .. } = self;
        let Report { runs, grouped, forwarded, batches, findings, .. } = self;
        let (lost, unexpected) = (self.count(Fault::Lost), self.count(Fault::Unexpected));
        write!(f, "attempted {attempted}, acknowledged {acknowledged}, delivered {delivered}, ")?;
        write!(
            f,
            "duplicated {duplicated}, recovered {recovered}, runs {runs}, grouped {grouped}, forwarded {forwarded}, \
             batches {batches}, lost {lost}, unexpected {unexpected}, "
        )?;
        if self.abandoned > 0 {
            let Report { abandoned, forgotten_pushes, forgotten_acks, .. } = self;
            write!(f, "abandoned {abandoned}, forgotten pushes {forgotten_pushes}, forgotten acks {forgotten_acks}, ")?;
        }
        write!(f, "other findings {}", findings.len() - lost - unexpected)?;
        for (fault, what) in findings.iter().take(TOLD) {
            write!(f, "\n{fault:?}: {what}")?;
        }
        Ok(())
    }
}
