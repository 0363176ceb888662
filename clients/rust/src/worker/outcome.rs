//! What a handler made of a message, and what is reported of it to the server.

use super::failure::Failure;
use super::lease::Lease;
use crate::error::Error;
use std::sync::Arc;

/// What a handler made of a payload.
pub(super) enum Verdict {
    /// With the result; empty if there is none.
    Done(Vec<u8>),
    /// With a result that cannot be kept, and why.
    Unkept(Error),
    Failed(Failure),
    Undecodable(Error),
}

/// What became of a message, to be reported to the server.
pub(super) struct Outcome {
    pub lease: Arc<Lease>,
    pub report: Report,
    /// Whether the report was sent before, and may have been executed.
    pub repeated: bool,
    /// Whether it holds a permit, which is to be released.
    pub has_permit: bool,
}

pub(super) enum Report {
    Ack,
    /// An ack with a result.
    Complete(Vec<u8>),
    Nack(Failure),
}

impl Outcome {
    /// Just before it is sent: a nack takes the checkpoint along that is not stored. An extension that was on its way
    /// with it when the handler ended has been answered by now, and has kept it if the server had refused it.
    pub fn with_checkpoint(mut self) -> Outcome {
        if let Report::Nack(Failure { nack, .. }) = &mut self.report {
            if let Some(bytes) = self.lease.take_checkpoint() {
                **nack = std::mem::take(&mut **nack).checkpoint(bytes);
            }
        }
        self
    }

    /// To be sent again; its permit has been released.
    pub fn again(self, repeated: bool) -> Outcome {
        Outcome { repeated: self.repeated || repeated, has_permit: false, ..self }
    }

    /// What is reported in place of this, which the server has refused; the same as an error if there is nothing.
    pub fn instead(self, error: &Error) -> Result<Outcome, Outcome> {
        let report = match &self.report {
            Report::Ack => None,
            // The work is done, and must not be repeated only because its result cannot be stored.
            Report::Complete(_) => Some(Report::Ack),
            // A failure counts although its delay or its checkpoint cannot be kept.
            Report::Nack(Failure { nack, text }) => nack.plain().map(|nack| {
                let text = text.as_ref().map(|text| format!("{error}; the failure was: {text}"));
                Report::Nack(text.map_or_else(Failure::give_back, |text| Failure::new(nack, text)))
            }),
        };
        match report {
            Some(report) => Ok(Outcome { report, ..self }.again(false)),
            None => Err(self),
        }
    }
}
