//! The module's keyspace events: one name for each kind of change.
//!
//! A command from a client publishes events, and so does a replica that applies the effect of a command. Changes that
//! follow from time alone are published by a master only.

use std::ffi::CStr;

use dq_queue::{Applied, Effect, Ended, Fate, Pause, Phase, Record, State};

/// Declares the events, each with the name that subscribers receive.
macro_rules! events {
    ($($(#[$doc:meta])* $event:ident $name:literal,)+) => {
        /// What happened to a queue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[$doc])* $event,)+ }

        impl Event {
            /// The name of the event that subscribers receive.
            pub const fn name(self) -> &'static CStr {
                match self { $(Event::$event => $name,)+ }
            }
        }
    };
}

events! {
    /// The queue was created by `DQ.CREATE` or `DQ.ALTER … MKQUEUE`.
    Create c"dq.create",
    /// The settings of the queue changed.
    Alter c"dq.alter",
    /// A message was added.
    Push c"dq.push",
    /// A message replaced another one.
    Replace c"dq.replace",
    /// A recurring message was declared.
    Schedule c"dq.schedule",
    /// Messages became due, or their leases ended.
    Ready c"dq.ready",
    /// Messages were delivered.
    Pop c"dq.pop",
    /// Messages were forwarded.
    Forward c"dq.forward",
    /// Dead messages were forwarded.
    DeadForward c"dq.deadforward",
    /// Messages were completed.
    Ack c"dq.ack",
    /// A message was completed with a result.
    Complete c"dq.complete",
    /// A message was given back.
    Nack c"dq.nack",
    /// The lease of a message was extended.
    Extend c"dq.extend",
    /// Messages became dead.
    Dead c"dq.dead",
    /// A message was made dead by `DQ.BURY`.
    Bury c"dq.bury",
    /// Messages were cancelled.
    Cancel c"dq.cancel",
    /// A message got another due time or priority.
    Reschedule c"dq.reschedule",
    /// Delayed messages were made due.
    Promote c"dq.promote",
    /// Dead messages were made live again.
    Redrive c"dq.redrive",
    /// A batch was closed, ended or was cancelled.
    Batch c"dq.batch",
    /// Messages were taken from a consumer that is gone.
    Release c"dq.release",
    /// Messages were purged.
    Purge c"dq.purge",
    /// Delivery was suspended.
    Pause c"dq.pause",
    /// Delivery was resumed.
    Resume c"dq.resume",
}

/// Whether a message is dead after a command that ended another one: the one that took its place, or the one that was
/// buried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Death {
    /// No message is.
    None,
    /// A message is.
    Some,
}

impl Death {
    /// By whether any message is dead.
    pub const fn if_any(died: bool) -> Death {
        if died {
            Death::Some
        } else {
            Death::None
        }
    }

    /// By the state of the message that took the place.
    pub fn from_state(next: Option<State>) -> Death {
        Death::if_any(matches!(next, Some(State::Dead { .. })))
    }

    /// By the record of a message that was pushed.
    pub fn from_record(record: &Record) -> Death {
        Death::if_any(matches!(record.phase, Phase::Dead { .. }))
    }

    fn from_applied(applied: Applied) -> Death {
        Death::if_any(applied == Applied::SuccessorDied)
    }
}

impl Event {
    /// The events of a push, which is announced as a replacement if each of its messages replaced another.
    pub const fn after_push(only_replaced: bool, death: Death) -> &'static [Event] {
        match (only_replaced, death) {
            (false, Death::None) => &[Event::Push],
            (false, Death::Some) => &[Event::Push, Event::Dead],
            (true, Death::None) => &[Event::Replace],
            (true, Death::Some) => &[Event::Replace, Event::Dead],
        }
    }

    /// The events of a nack, which depend on the fate of the message.
    pub const fn after_nack(fate: Fate) -> &'static [Event] {
        match fate {
            Fate::Due(_) => &[Event::Nack],
            Fate::Dead { .. } => &[Event::Nack, Event::Dead],
        }
    }

    /// The events of acks.
    pub const fn after_acks(death: Death) -> &'static [Event] {
        match death {
            Death::None => &[Event::Ack],
            Death::Some => &[Event::Ack, Event::Dead],
        }
    }

    /// The events of a delivery, after the acks of the same command if it made any.
    pub const fn after_delivery(acks: Option<Death>) -> &'static [Event] {
        match acks {
            None => &[Event::Pop],
            Some(Death::None) => &[Event::Ack, Event::Pop],
            Some(Death::Some) => &[Event::Ack, Event::Dead, Event::Pop],
        }
    }

    /// The events of a completion with a result.
    pub const fn after_completion(death: Death) -> &'static [Event] {
        match death {
            Death::None => &[Event::Ack, Event::Complete],
            Death::Some => &[Event::Ack, Event::Complete, Event::Dead],
        }
    }

    /// The events of a release.
    pub const fn after_release(death: Death) -> &'static [Event] {
        match death {
            Death::None => &[Event::Release],
            Death::Some => &[Event::Release, Event::Dead],
        }
    }

    /// The events of a burial.
    pub const fn after_burial(death: Death) -> &'static [Event] {
        match death {
            Death::None => &[Event::Bury],
            Death::Some => &[Event::Bury, Event::Dead],
        }
    }

    /// The events of a command whose effect is applied on this server.
    pub fn after_effect(effect: &Effect<'_>, applied: Applied) -> &'static [Event] {
        match effect {
            Effect::Push(_, images) => {
                let death = images.iter().map(|image| Death::from_record(&image.record)).max();
                Event::after_push(applied == Applied::OnlyReplaced, death.unwrap_or(Death::None))
            }
            Effect::Schedule(..) | Effect::Declare(..) => &[Event::Schedule],
            Effect::EndRuns { how, .. } => match how {
                Ended::Acked => Event::after_acks(Death::from_applied(applied)),
                Ended::Completed => Event::after_completion(Death::from_applied(applied)),
                Ended::Taken => &[Event::Pop],
                Ended::Forwarded => &[Event::Forward],
                Ended::Nacked { .. } => &[Event::Nack, Event::Dead],
                Ended::Buried(_) => &[Event::Bury, Event::Dead],
                // Only a master announces the changes that time makes.
                Ended::ByTime => &[],
            },
            Effect::Take(_) => &[Event::Pop],
            Effect::Deliver { acked, .. } => {
                Event::after_delivery((!acked.is_empty()).then_some(Death::from_applied(applied)))
            }
            Effect::Forward(_) => &[Event::Forward],
            Effect::DeadForward(_) => &[Event::DeadForward],
            Effect::Ack(_) => Event::after_acks(Death::from_applied(applied)),
            Effect::Complete { .. } => Event::after_completion(Death::from_applied(applied)),
            Effect::Nack { fate, .. } => Event::after_nack(*fate),
            Effect::Extend { .. } => &[Event::Extend],
            Effect::Cancel(..) => &[Event::Cancel],
            Effect::Reschedule { .. } => &[Event::Reschedule],
            Effect::Promote(..) => &[Event::Promote],
            Effect::Bury(..) => Event::after_burial(Death::if_any(applied != Applied::Succeeded)),
            Effect::Redrive(..) => &[Event::Redrive],
            Effect::Release { .. } => Event::after_release(Death::if_any(applied == Applied::Died)),
            Effect::Batch { .. } => &[Event::Batch],
            Effect::Purge { .. } => &[Event::Purge],
            Effect::Create(..) => &[Event::Create],
            Effect::Alter(..) => &[Event::Alter],
            Effect::Pause { pause: Pause::Off, .. } => &[Event::Resume],
            Effect::Pause { .. } => &[Event::Pause],
            // These are housekeeping, or transfer a whole queue. No client's command caused them.
            Effect::Trim(_) | Effect::TrimDone(_) | Effect::PullBack => &[],
            Effect::Begin(_) | Effect::Continue(_) | Effect::Done(_) | Effect::Recall(_) => &[],
            Effect::Leaving(_) | Effect::Turns(_) | Effect::Gates(_) | Effect::Batches(_) => &[],
        }
    }
}
