//! The parts that few queues have in addition to their messages.

use super::batches::Batches;
use super::done::Done;
use super::forward::Forwarding;
use super::known::Known;
use super::lost::Losses;
use super::recurring::UnsentEnds;
use std::ops::Deref;

/// The parts that few queues have, in one allocation that exists while there is at least one of them. A queue without
/// any spends one word.
#[derive(Debug, Default)]
pub(super) struct Optional(Option<Box<OptionalParts>>);

/// One word for each part; each part is allocated separately.
#[derive(Debug, Default)]
pub(super) struct OptionalParts {
    /// Allocated with the first id that outlives its message.
    pub known: Option<Box<Known>>,
    /// Allocated with the first message that is retained after its completion.
    pub done: Option<Box<Done>>,
    /// Ends of runs that are still to be replicated; allocated with the first one.
    pub unsent: Option<Box<UnsentEnds>>,
    /// Where messages are forwarded when they are due, if they are.
    pub forwarding: Option<Box<Forwarding>>,
    /// Where dead messages are forwarded, if they are.
    pub dead_forwarding: Option<Box<Forwarding>>,
    /// Lost deliveries of which consumers are still to be notified; allocated with the first one.
    pub lost: Option<Box<Losses>>,
    /// Allocated with the first batch.
    pub batches: Option<Box<Batches>>,
}

/// The parts of a queue that has none.
static NONE: OptionalParts = OptionalParts {
    known: None,
    done: None,
    unsent: None,
    forwarding: None,
    dead_forwarding: None,
    lost: None,
    batches: None,
};

/// For reading.
impl Deref for Optional {
    type Target = OptionalParts;

    #[inline]
    fn deref(&self) -> &OptionalParts {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl Optional {
    /// The parts, if there are any.
    pub fn held(&self) -> Option<&OptionalParts> {
        self.0.as_deref()
    }

    /// The parts, if there are any, to change them.
    #[inline]
    pub fn held_mut(&mut self) -> Option<&mut OptionalParts> {
        self.0.as_deref_mut()
    }

    /// The parts, to add one; allocates them first if necessary.
    #[inline]
    pub fn for_adding(&mut self) -> &mut OptionalParts {
        self.0.get_or_insert_default()
    }

    /// Takes out the part that `of` selects.
    pub fn take<T>(&mut self, of: impl FnOnce(&mut OptionalParts) -> &mut Option<Box<T>>) -> Option<Box<T>> {
        let parts = self.0.as_deref_mut()?;
        let taken = of(parts).take();
        let OptionalParts { known, done, unsent, forwarding, dead_forwarding, lost, batches } = parts;
        let forwards = forwarding.is_some() || dead_forwarding.is_some();
        let is_unsent = unsent.is_some() || lost.is_some();
        if known.is_none() && done.is_none() && batches.is_none() && !is_unsent && !forwards {
            self.0 = None;
        }
        taken
    }
}
