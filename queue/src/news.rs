//! What an effect says to clients that wait for the end of a message (`DQ.AWAIT`).

use super::effect::{Effect, Fate};
use super::id::Sequence;
use super::record::Phase;
use super::recurring::{Next, RunEnd};
use std::collections::BTreeSet;

/// Something that an effect did to a message whose end a client may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// The message with this sequence was completed or removed, or became dead. If it had a successor, the successor
    /// now has its id and this sequence.
    Ended(Sequence),
    /// The message of this name now has this sequence.
    Named(&'a [u8], Sequence),
    /// The message with the first sequence now has the second one.
    Renewed(Sequence, Sequence),
    /// Messages may have ended that the effect does not name one by one.
    LookAgain,
}

impl Effect<'_> {
    /// Calls `report` with what the effect says to clients that wait for a message. No effect reports what time alone
    /// ends.
    pub fn news(&self, mut report: impl FnMut(News<'_>)) {
        match self {
            Effect::Push(_, images) => {
                for image in images {
                    image.name.into_iter().for_each(|name| report(News::Named(name, image.record.sequence)));
                    if matches!(image.record.phase, Phase::Dead { .. }) {
                        report(News::Ended(image.record.sequence));
                    }
                }
            }
            Effect::Schedule(_, image) => {
                image.name.into_iter().for_each(|name| report(News::Named(name, image.record.sequence)));
            }
            Effect::Deliver { acked: those, .. }
            | Effect::Take(those)
            | Effect::Forward(those)
            | Effect::Ack(those)
            | Effect::Cancel(those, _) => {
                those.iter().for_each(|sequence| report(News::Ended(*sequence)));
            }
            Effect::Complete { sequence, .. } | Effect::Bury(sequence, _) => report(News::Ended(*sequence)),
            Effect::Release { given_back, .. } => given_back.iter().for_each(|sequence| report(News::Ended(*sequence))),
            Effect::Nack { sequence, fate: Fate::Dead { .. }, .. } => report(News::Ended(*sequence)),
            Effect::EndRuns { others, ends, .. } => {
                // Forwarded messages are listed in their order, including those whose runs have ended.
                let ended: BTreeSet<Sequence> = ends.iter().map(|end| end.sequence).collect();
                let is_other = |sequence: &&Sequence| !ended.contains(*sequence);
                others.iter().filter(is_other).for_each(|sequence| report(News::Ended(*sequence)));
                ends.iter().filter_map(news_of_run).for_each(report);
            }
            // These remove many messages at once, or all of them.
            Effect::Purge { .. } | Effect::Batch { then: None, .. } | Effect::Begin(_) | Effect::Continue(_) => {
                report(News::LookAgain)
            }
            // These end no message that a client can wait for.
            Effect::Nack { fate: Fate::Due(_), .. } | Effect::Extend { .. } | Effect::Reschedule { .. } => {}
            Effect::Promote(..) | Effect::Redrive(..) | Effect::Declare(..) | Effect::PullBack => {}
            Effect::DeadForward(_) | Effect::Trim(_) | Effect::TrimDone(_) => {}
            Effect::Batch { then: Some(_), .. } | Effect::Batches(_) => {}
            Effect::Done(_) | Effect::Recall(_) | Effect::Leaving(_) | Effect::Gates(_) => {}
            Effect::Create(..) | Effect::Alter(..) | Effect::Pause { .. } | Effect::Turns(_) => {}
        }
    }
}

fn news_of_run(end: &RunEnd) -> Option<News<'static>> {
    match end.next {
        Next::At(_) => None,
        Next::Over => Some(News::Ended(end.sequence)),
        Next::Renewed(_, sequence) => Some(News::Renewed(end.sequence, sequence)),
    }
}
