//! What can happen, with the smallest arguments that differ.

use dq_queue::Verdict;

/// The name of one of three messages, by its place in [`NAMES`].
pub type Name = usize;

pub const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];

/// The message for which only receipts and leases are compared: it may recur or have a successor.
pub const LOOSE: Name = 2;

/// How a message is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Now,
    /// Due a millisecond later.
    Later,
    /// With a TTL of a millisecond.
    Expiring,
    /// In place of the message of its name.
    Replacing,
    /// In place of the message of its name, once the delivery of that has ended.
    ReplacingLater,
    /// In the only group.
    Grouped,
    /// In the only batch.
    Member,
}

/// Which receipt of a message a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Latest,
    First,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A millisecond passes.
    Pass,
    /// The timer of the master runs.
    Timer,
    /// The timer of the replica runs.
    ReplicaTimer,
    /// A client reads the queue on the replica, whose clock is ahead.
    ReplicaReads,
    Push(Name, How),
    PushBoth,
    /// One message is popped, under the name of a consumer.
    Pop,
    PopTwo,
    /// One message is popped without a lease.
    Take,
    Ack(Name, Which),
    /// Acks one message and pops another.
    AckPop(Name),
    Complete(Name),
    Nack(Name, Verdict),
    Extend(Name),
    Cancel(Name),
    Reschedule(Name),
    Promote,
    Bury(Name),
    Redrive,
    Purge,
    Release,
    Pause,
    Resume,
    /// No dead messages are kept from now on.
    KeepNoDead,
    ForwardTo,
    Forward,
    Schedule,
    /// A message with the id of [`LOOSE`] follows the batch from now on.
    Follow,
    /// The replica applies the next effect.
    Arrive,
    /// The replica gets the whole queue.
    Synchronise,
    /// The master restarts, from the queue that it saved. That the effects of its AOF make the same queue is checked
    /// after each act.
    Restart,
    /// The clock of the master steps forward by more than a day.
    StepForward,
    /// The clock of the master is set back to the beginning, and the master restarts.
    RestartEarlier,
    /// The replica becomes the master. What was on its way is lost, and the old master becomes its replica.
    TakeOver,
}

/// Whether the first message was pushed, and whether the schedule was declared: what [`Act::may_follow`] depends on.
pub fn chosen_from(path: &[Act]) -> (bool, bool) {
    let pushed = path.iter().any(|act| matches!(act, Act::Push(0, _) | Act::PushBoth));
    (pushed, path.contains(&Act::Schedule))
}

impl Act {
    /// Leaves out what is the same but for the names of messages.
    pub fn may_follow(self, path: &[Act]) -> bool {
        let (pushed, scheduled) = chosen_from(path);
        match self {
            Act::Push(1, _) => pushed,
            Act::Schedule => !scheduled,
            _ => true,
        }
    }
}

/// What is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Menu {
    /// Two messages and what happens to deliveries.
    Deliveries,
    /// A done message, a batch, and what follows it under the id of that message.
    Batches,
    /// A clock that was ahead, dead messages that are dropped, and a batch.
    Clocks,
    Everything,
}

impl Menu {
    pub fn acts(self) -> impl Iterator<Item = Act> {
        if self == Menu::Batches {
            let first = [Act::Push(LOOSE, How::Now), Act::Push(0, How::Member), Act::Pop, Act::Complete(LOOSE)];
            let rest = [Act::Follow, Act::Cancel(0), Act::ReplicaReads, Act::Arrive, Act::Synchronise];
            return [&first[..], &rest].concat().into_iter();
        }
        if self == Menu::Clocks {
            let clock = [Act::Pass, Act::StepForward, Act::RestartEarlier, Act::Arrive, Act::Timer, Act::KeepNoDead];
            let pushes = [Act::Push(0, How::Member), Act::Push(1, How::Expiring)];
            let others = [Act::Pop, Act::Bury(0), Act::Cancel(0)];
            return [&clock[..], &pushes, &others].concat().into_iter();
        }
        let common = [Act::Pass, Act::Pop, Act::Arrive, Act::TakeOver, Act::Restart, Act::Synchronise];
        let mut acts = common.to_vec();
        for name in 0..2 {
            acts.extend([Act::Push(name, How::Now), Act::Ack(name, Which::Latest), Act::Ack(name, Which::First)]);
            acts.push(Act::Nack(name, Verdict::Failed));
        }
        if self == Menu::Everything {
            acts.extend([Act::Timer, Act::ReplicaTimer, Act::PushBoth, Act::PopTwo, Act::Take, Act::Promote]);
            acts.extend([Act::Redrive, Act::Purge, Act::Release, Act::Pause, Act::Resume, Act::KeepNoDead]);
            acts.extend([Act::ForwardTo, Act::Forward, Act::Schedule]);
            acts.extend([How::Later, How::Expiring, How::Replacing].map(|how| Act::Push(0, how)));
            acts.extend([How::Now, How::ReplacingLater, How::Grouped].map(|how| Act::Push(LOOSE, how)));
            acts.extend([Act::Ack(LOOSE, Which::Latest), Act::Nack(LOOSE, Verdict::Failed), Act::Cancel(LOOSE)]);
            for name in 0..2 {
                acts.extend([Verdict::NotCounted, Verdict::Rejected].map(|verdict| Act::Nack(name, verdict)));
                acts.extend([Act::Extend(name), Act::Cancel(name), Act::Reschedule(name), Act::Bury(name)]);
                acts.extend([Act::Complete(name), Act::AckPop(name)]);
            }
        }
        acts.into_iter()
    }
}
