//! What a check found.

use super::messages::{Message, Messages};
use std::fmt;

/// How many findings are printed in full.
const TOLD: usize = 10;

/// A violation of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A push that was acknowledged, and nobody got it or removed it.
    Lost,
    /// A delivery of what was never pushed, or of what was refused.
    Unexpected,
    /// A delivery of what had been acked, cancelled or replaced before.
    Returned,
    /// A delivery before the due time.
    Early,
    /// A delivery while another consumer held the message.
    Overlap,
    /// An attempt that is not one more than the last.
    Attempt,
    /// A receipt, or its number, given twice; or one lower than an earlier one.
    Receipt,
    /// A generated id given twice, or one lower than an earlier one.
    Id,
    /// A receipt that still counted after a later delivery.
    Stale,
    /// An ack that did not count though nothing had happened to the delivery.
    Refused,
}

/// The numbers of a run, and what was wrong with it.
#[derive(Default)]
pub struct Report {
    /// Pushes, with whatever outcome.
    pub attempted: usize,
    /// Pushes of which the producer was told that they are safe.
    pub acknowledged: usize,
    /// Messages that were delivered at least once.
    pub delivered: usize,
    /// Messages that were delivered more than once.
    pub duplicated: usize,
    /// Messages that were delivered though their producer had no answer.
    pub recovered: usize,
    pub findings: Vec<(Fault, String)>,
}

impl Report {
    /// Notes what is wrong with a message, with all that happened to it.
    pub fn find(&mut self, fault: Fault, messages: &Messages<'_>, message: &Message<'_>, what: impl fmt::Display) {
        let story = if self.findings.len() < TOLD { messages.story(message) } else { String::new() };
        self.note(fault, format!("{}: {what}{story}", message.payload));
    }

    /// Notes what is wrong.
    pub fn note(&mut self, fault: Fault, what: String) {
        self.findings.push((fault, what));
    }

    /// How often a fault was found.
    pub fn count(&self, fault: Fault) -> usize {
        self.findings.iter().filter(|(found, _)| *found == fault).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { attempted, acknowledged, delivered, duplicated, recovered, findings } = self;
        let (lost, unexpected) = (self.count(Fault::Lost), self.count(Fault::Unexpected));
        write!(f, "attempted {attempted}, acknowledged {acknowledged}, delivered {delivered}, ")?;
        write!(f, "duplicated {duplicated}, recovered {recovered}, lost {lost}, unexpected {unexpected}, ")?;
        write!(f, "other findings {}", findings.len() - lost - unexpected)?;
        for (fault, what) in findings.iter().take(TOLD) {
            write!(f, "\n{fault:?}: {what}")?;
        }
        Ok(())
    }
}
