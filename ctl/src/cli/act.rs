//! The commands that change queues and messages. The page takes them too, with the same options.

use super::{
    AlterArgs, BatchArgs, BuryArgs, CancelArgs, CompleteArgs, CreateArgs, DeleteArgs, NackArgs, PauseArgs, PromoteArgs,
    PurgeArgs, PushArgs, RedriveArgs, ReleaseArgs, RescheduleArgs, ResumeArgs, ScheduleArgs,
};
use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub enum Act {
    /// Push a message and print its id
    Push(PushArgs),
    /// Declare a recurring message; without an ID, list the recurring messages
    Schedule(ScheduleArgs),
    /// Take from a consumer that is gone the messages that it holds
    Release(ReleaseArgs),
    /// Acknowledge a message in flight, with a result or without
    #[command(visible_alias = "ack")]
    Complete(CompleteArgs),
    /// Remove messages in any state, or the dead ones that conditions select
    Cancel(CancelArgs),
    /// Change the due time or the priority of a message
    Reschedule(RescheduleArgs),
    /// Make dead messages live again: all, the oldest, the given ones, or those that conditions select
    Redrive(RedriveArgs),
    /// Make messages dead, whether or not they were delivered
    Bury(BuryArgs),
    /// Give back messages in flight, to be delivered again or to become dead
    Nack(NackArgs),
    /// Make delayed messages due now: all, or the next ones
    Promote(PromoteArgs),
    /// Show how far a batch of messages is, say what follows it, or cancel it
    Batch(BatchArgs),
    /// Create a queue with its own settings
    Create(CreateArgs),
    /// Change settings of a queue
    Alter(AlterArgs),
    /// Remove the messages of a queue that are in some states
    Purge(PurgeArgs),
    /// Delete a queue with all its messages, its schedules and its settings
    Delete(DeleteArgs),
    /// Suspend what a queue delivers, or what it accepts
    Pause(PauseArgs),
    /// Resume what a queue delivers and accepts
    Resume(ResumeArgs),
}

impl Act {
    /// Whether it changes something. Without a name, schedules and batches are listed.
    pub fn is_change(&self) -> bool {
        match self {
            Act::Schedule(args) => args.id.is_some(),
            Act::Batch(args) => args.then.is_some() || args.cancel,
            Act::Push(_) | Act::Release(_) | Act::Complete(_) | Act::Cancel(_) | Act::Reschedule(_) => true,
            Act::Redrive(_) | Act::Bury(_) | Act::Nack(_) | Act::Promote(_) | Act::Purge(_) => true,
            Act::Create(_) | Act::Alter(_) | Act::Delete(_) | Act::Pause(_) | Act::Resume(_) => true,
        }
    }
}
