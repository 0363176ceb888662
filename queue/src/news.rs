//! What an effect says to clients that wait for the end of a message (`DQ.AWAIT`).

use super::effect::{Effect, Fate};
use super::id::Sequence;
use super::recurring::{Next, RunEnd};

/// One thing that an effect did to messages for whose end somebody may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// The message with this sequence was completed or removed, or became dead. If another message was kept during its
    /// delivery, that one has its id and its sequence from now on.
    Ended(Sequence),
    /// The message of this name has this sequence from now on.
    Named(&'a [u8], Sequence),
    /// The message with the first sequence has the second one from now on.
    Renewed(Sequence, Sequence),
    /// Messages may have ended that the effect does not name one by one.
    LookAgain,
}

impl Effect<'_> {
    /// Calls `tell` with what the effect says to clients that wait for a message. No effect reports what time alone
    /// ends.
    pub fn news(&self, mut tell: impl FnMut(News<'_>)) {
        match self {
            Effect::Push(_, images) => {
                for image in images {
                    image.name.into_iter().for_each(|name| tell(News::Named(name, image.record.sequence)));
                }
            }
            Effect::Schedule(_, image) => {
                image.name.into_iter().for_each(|name| tell(News::Named(name, image.record.sequence)));
            }
            Effect::Deliver { acked: those, .. }
            | Effect::Take(those)
            | Effect::Forward(those)
            | Effect::Ack(those)
            | Effect::Cancel(those, _) => {
                those.iter().for_each(|sequence| tell(News::Ended(*sequence)));
            }
            Effect::Complete { sequence, .. } | Effect::Bury(sequence, _) => tell(News::Ended(*sequence)),
            Effect::Release { given_back, .. } => given_back.iter().for_each(|sequence| tell(News::Ended(*sequence))),
            Effect::Nack { sequence, fate: Fate::Dead { .. }, .. } => tell(News::Ended(*sequence)),
            Effect::EndRuns { others, ends, .. } => {
                // Forwarded messages are told in their order, with those whose runs have ended among them.
                let is_other = |sequence: &&Sequence| ends.iter().all(|end| end.sequence != **sequence);
                others.iter().filter(is_other).for_each(|sequence| tell(News::Ended(*sequence)));
                ends.iter().filter_map(news_of_run).for_each(tell);
            }
            // These remove many messages at once, or all of them.
            Effect::Purge { .. } | Effect::Begin(_) | Effect::Continue(_) => tell(News::LookAgain),
            // These leave every message that somebody can wait for as it is, or do not end it.
            Effect::Nack { fate: Fate::Due(_), .. } | Effect::Extend { .. } | Effect::Reschedule { .. } => {}
            Effect::Promote(..) | Effect::Redrive(..) | Effect::Declare(..) | Effect::PullBack => {}
            Effect::Trim(_) | Effect::TrimDone(_) | Effect::Done(_) | Effect::Recall(_) | Effect::Leaving(_) => {}
            Effect::Create(..) | Effect::Alter(..) | Effect::Pause(_) | Effect::Turns(_) => {}
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
