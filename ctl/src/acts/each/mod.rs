//! A file for each act, in which the arguments of its command implement [`Change`].

mod alter;
mod batch;
mod bury;
mod cancel;
mod complete;
mod create;
mod delete;
mod nack;
mod pause;
mod promote;
mod purge;
mod push;
mod redrive;
mod release;
mod reschedule;
mod schedule;

use super::change::Change;
use crate::cli::Act;

impl Act {
    pub(super) fn change(&self) -> &dyn Change {
        match self {
            Act::Push(args) => args,
            Act::Schedule(args) => args,
            Act::Release(args) => args,
            Act::Complete(args) => args,
            Act::Cancel(args) => args,
            Act::Reschedule(args) => args,
            Act::Redrive(args) => args,
            Act::Bury(args) => args,
            Act::Nack(args) => args,
            Act::Promote(args) => args,
            Act::Batch(args) => args,
            Act::Create(args) => args,
            Act::Alter(args) => args,
            Act::Purge(args) => args,
            Act::Delete(args) => args,
            Act::Pause(args) => args,
            Act::Resume(args) => args,
        }
    }

    pub(super) fn change_mut(&mut self) -> &mut dyn Change {
        match self {
            Act::Push(args) => args,
            Act::Schedule(args) => args,
            Act::Release(args) => args,
            Act::Complete(args) => args,
            Act::Cancel(args) => args,
            Act::Reschedule(args) => args,
            Act::Redrive(args) => args,
            Act::Bury(args) => args,
            Act::Nack(args) => args,
            Act::Promote(args) => args,
            Act::Batch(args) => args,
            Act::Create(args) => args,
            Act::Alter(args) => args,
            Act::Purge(args) => args,
            Act::Delete(args) => args,
            Act::Pause(args) => args,
            Act::Resume(args) => args,
        }
    }
}
