//! Typed queues: each method is one command.

mod batch;
mod commands;
mod control;
mod done;
mod group;
mod headers;
mod info;
mod message;
mod nack;
mod options;
mod pages;
mod pop;
mod push;
mod schedule;
mod settings;
#[cfg(feature = "otel")]
pub(crate) mod trace;

pub(crate) use done::{too_large, RESULT_BYTES};
pub use {batch::*, commands::*, control::*, done::*, group::*, headers::*, info::*, message::*, nack::*, pages::*};
pub use {pop::*, push::*, schedule::*, settings::*};

use crate::connect::Client;
use crate::mode::Mode;
use crate::names::QueueName;
use crate::request::Command;
use std::fmt;
use std::marker::PhantomData;

/// A queue whose messages carry values of type `T`.
///
/// Cheap to make and to clone, and usable by many threads and tasks. The first push creates the queue.
///
/// Every method can fail with [`Error::NoPermission`](crate::Error::NoPermission),
/// [`WrongType`](crate::Error::WrongType), [`NoModule`](crate::Error::NoModule),
/// [`Authentication`](crate::Error::Authentication), [`Connect`](crate::Error::Connect), [`Lost`](crate::Error::Lost)
/// or [`Unavailable`](crate::Error::Unavailable); other errors are listed at each method. Commands whose second
/// execution is harmless are repeated for the time of [`crate::Options::retry_for`], so the reply may be that of the
/// second execution: an ack that was repeated may count 0.
pub struct Queue<T, M> {
    pub(crate) client: Client<M>,
    name: QueueName,
    of: PhantomData<fn(T) -> T>,
}

impl<M: Mode> Client<M> {
    /// The queue of this name.
    pub fn queue<T>(&self, name: impl Into<QueueName>) -> Queue<T, M> {
        Queue { client: self.clone(), name: name.into(), of: PhantomData }
    }
}

impl<T, M> Queue<T, M> {
    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.name
    }

    pub(crate) fn command(&self, name: &str) -> Command {
        Command::new(name, &self.name)
    }
}

impl<T, M: Clone> Clone for Queue<T, M> {
    fn clone(&self) -> Queue<T, M> {
        Queue { client: self.client.clone(), name: self.name.clone(), of: PhantomData }
    }
}

impl<T, M> fmt::Debug for Queue<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.name).finish()
    }
}
