#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
// They panic if the output is full or closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod backend;
mod board;
mod fetch;
mod leases;
mod log;
mod manage;
mod push;
mod results;
mod settle;
mod task;

pub use push::DueAt;
pub use settle::{LeaseLost, Settle};

use apalis_codec::json::JsonCodec;
use apalis_core::backend::codec::Codec;
use apalis_core::backend::future::BoxSyncFuture;
use apalis_core::task::Task;
use dq_client::{Client, Error, Queue, QueueName, Raw};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The codec of a storage that names no other: JSON.
pub type Json = JsonCodec<Vec<u8>>;

/// How many tasks a worker fetches in one command, as with `apalis-redis`.
const PREFETCH: u32 = 10;

/// A queue of dq as a backend of apalis, whose tasks are values of type `Args`.
///
/// Its clones push to the same queue; each can be the backend of a worker.
pub struct DqStorage<Args, C = Json> {
    source: Source,
    codec: C,
    /// Tasks that were given to the sink and are not yet sent.
    outgoing: Vec<Task<Vec<u8>>>,
    flush: Option<BoxSyncFuture<Result<(), Error>>>,
    work: Work,
    of: PhantomData<fn() -> Args>,
}

/// What a storage holds while it is the backend of a worker.
#[derive(Default)]
struct Work {
    /// Tasks that were delivered and are not yet handed out.
    incoming: VecDeque<Task<Vec<u8>>>,
    fetch: Option<BoxSyncFuture<Result<fetch::Fetched, Error>>>,
    give_back: Option<BoxSyncFuture<Result<(), Error>>>,
    leases: Option<Arc<leases::Leases>>,
}

/// What encodes the arguments of tasks: any codec whose errors can be shown.
pub trait TaskCodec<Args>: Codec<Args, Compact = Vec<u8>, Error: fmt::Display> + Clone + Send + Sync + 'static {}

impl<Args, C> TaskCodec<Args> for C where
    C: Codec<Args, Compact = Vec<u8>, Error: fmt::Display> + Clone + Send + Sync + 'static
{
}

/// The queue, and how workers take tasks from it.
#[derive(Clone, Debug)]
struct Source {
    queue: Queue<Raw>,
    client: Client,
    lease: Option<Duration>,
    retain: Option<Duration>,
    prefetch: u32,
}

impl<Args> DqStorage<Args> {
    /// The queue of this name. The first push creates it.
    pub fn new(client: Client, queue: impl Into<QueueName>) -> DqStorage<Args> {
        let source = Source { queue: client.queue(queue), client, lease: None, retain: None, prefetch: PREFETCH };
        DqStorage::with(source, Json::default())
    }
}

impl<Args, C> DqStorage<Args, C> {
    fn with(source: Source, codec: C) -> DqStorage<Args, C> {
        DqStorage { source, codec, outgoing: Vec::new(), flush: None, work: Work::default(), of: PhantomData }
    }

    /// Encodes tasks in another way, such as `apalis_codec::msgpack::MsgPackCodec`. Pushers and workers must agree.
    #[must_use]
    pub fn with_codec<D>(self, codec: D) -> DqStorage<Args, D> {
        DqStorage::with(self.source, codec)
    }

    /// How long a lease lasts: by default as long as the queue says. Leases are extended while their tasks run, so this
    /// decides only how soon the tasks of a killed worker are delivered again.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.source.lease = Some(lease);
        self
    }

    /// How long tasks that are pushed by this storage are kept with their results after they are done: the `RETAIN` of
    /// the queue by default. [`WaitForCompletion`](apalis_core::backend::WaitForCompletion) needs it.
    #[must_use]
    pub fn retain(mut self, retain: Duration) -> Self {
        self.source.retain = Some(retain);
        self
    }

    /// How many tasks a worker fetches in one command at most, 10 by default. They are under leases, which are
    /// extended, and a worker that stops gives back those that it has not begun. But no other worker can take them
    /// meanwhile, so use 1 if a task takes long.
    #[must_use]
    pub fn prefetch(mut self, tasks: u32) -> Self {
        self.source.prefetch = tasks.max(1);
        self
    }
}

impl<Args, C: Clone> Clone for DqStorage<Args, C> {
    fn clone(&self) -> Self {
        DqStorage::with(self.source.clone(), self.codec.clone())
    }
}

impl<Args, C> fmt::Debug for DqStorage<Args, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DqStorage").field(&self.source).finish()
    }
}
