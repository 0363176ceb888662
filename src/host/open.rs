//! How a call opens its key, and how it changes the queue there or makes one.

use super::queue_value::QueueValue;
use super::session::Session;
use super::{config, datatype};
use crate::module_api::key::{Content, OpenKey, Refusal, Touch};
use dq_queue::settings::Settings;
use dq_queue::Queue;

impl<'a> Session<'a> {
    /// Opens the key for reading.
    #[inline(always)]
    pub fn open_read(&self, touch: Touch) -> OpenKey<'a, QueueValue> {
        OpenKey::open_read(self.ctx, self.db, self.name, datatype::handle(), touch)
    }

    /// Opens the key for writing.
    #[inline(always)]
    pub fn open_write(&self) -> OpenKey<'a, QueueValue> {
        OpenKey::open_write(self.ctx, self.db, self.name, datatype::handle())
    }

    /// Opens the key for writing without counting as an access, for changes that are made by time and not by a client.
    pub fn open_untouched(&self) -> OpenKey<'a, QueueValue> {
        OpenKey::open_write_untouched(self.ctx, self.db, self.name, datatype::handle())
    }

    /// Ensures that the timer looks at the queue when it has something to do.
    #[inline]
    pub fn arm(&self, held: &mut QueueValue) {
        held.arm(self.ctx, self.db, self.name);
    }
}

/// What a call did to the queue of a key, or to a new one.
pub struct Changed<'k, R> {
    /// What it did.
    pub outcome: R,
    /// The queue; `None` if a new one was not stored.
    pub held: Option<&'k mut QueueValue>,
    /// The settings of a new queue that was stored.
    pub made_with: Option<Settings>,
}

/// Calls `change` with the queue of a key. If there is none, calls it with a new queue, which is stored if `keeps`
/// accepts the outcome: a refused call creates no queue.
#[inline(always)]
pub fn change_or_make<'k, R>(
    content: Content<'k, '_, QueueValue>,
    change: impl FnOnce(&mut Queue) -> R,
    keeps: impl FnOnce(&R) -> bool,
) -> Result<Changed<'k, R>, Refusal> {
    match content {
        Content::Refused(why) => Err(why),
        Content::Holds(held) => Ok(Changed { outcome: change(&mut held.queue), held: Some(held), made_with: None }),
        Content::Missing(vacant) => {
            let settings = config::defaults();
            let mut queue = Queue::new(settings);
            let outcome = change(&mut queue);
            if !keeps(&outcome) {
                return Ok(Changed { outcome, held: None, made_with: None });
            }
            Ok(Changed { outcome, held: Some(vacant.create(QueueValue::made(queue))?), made_with: Some(settings) })
        }
    }
}
