#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
// They panic if the output is full or closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod connect;
mod connection_error;
mod error;
mod mode;
mod murmur3;
mod names;
mod partitions;
mod payload;
mod queue;
mod reply;
mod request;
mod sync;
mod time;
mod worker;

pub use connect::{Address, Options};
pub use connection_error::{ConnectionError, ConnectionErrorKind};
pub use error::Error;
pub use mode::{Async, Blocking, Mode};
pub use names::{MessageId, QueueName, Receipt};
#[cfg(feature = "msgpack")]
pub use payload::MsgPack;
pub use payload::{Decode, Encode, Raw};
pub use queue::{
    BatchInfo, Consumer, DeadFilter, Declared, Delivery, Flow, Forward, GroupInfo, GroupOrder, GroupPause, Headers,
    Histogram, Info, Message, Meta, Nack, PastError, Pushed, Reason, Recurring, Settings, State, Stats, Totals,
};
pub use request::Resend;
pub use worker::{shutdown_signal, Context, Event, Failure, Loss, Metrics, Pool, QueueMetrics, Stopped, Stopper};

/// The commands and values of `redis-rs`, for [`Client::call`].
pub use redis::{cmd, from_redis_value, Cmd, Value};

/// A client, whose calls are futures. See [`both::Client`].
pub type Client = connect::Client<Async>;
/// A queue, whose calls are futures. See [`both::Queue`].
pub type Queue<T> = queue::Queue<T, Async>;
/// A topic over several queues. See [`both::Partitions`].
pub type Partitions<T> = partitions::Partitions<T, Async>;
/// A worker, whose handlers are futures or functions. See [`both::Worker`].
pub type Worker = worker::Worker<Async>;
/// A worker that was started. See [`both::Running`].
pub type Running = worker::Running<Async>;

/// The types of both faces: `M` is [`Async`] or [`Blocking`].
///
/// Every method is there for both. It returns a future, which is [`Sent`](both::Sent)`<Async, R>`, or the result, which
/// is `Sent<Blocking, R>`.
pub mod both {
    pub use crate::connect::{Client, Sent};
    pub use crate::partitions::Partitions;
    pub use crate::queue::{AckPop, Batch, Complete, Group, Pages, Pop, PopAny, Push, PushAll, Queue, Schedule, Then};
    pub use crate::worker::{Running, Worker};
}

/// The same client for programs without an asynchronous runtime: calls block the thread.
///
/// Builders end with `send()`: `queue.push(&mail).delay(minute).send()?`. Calls panic within asynchronous code.
#[cfg(feature = "blocking")]
pub mod blocking {
    use crate::{connect, partitions, queue, worker, Blocking};

    /// A client, whose calls block. See [`both::Client`](crate::both::Client).
    pub type Client = connect::Client<Blocking>;
    /// A queue, whose calls block. See [`both::Queue`](crate::both::Queue).
    pub type Queue<T> = queue::Queue<T, Blocking>;
    /// A topic over several queues. See [`both::Partitions`](crate::both::Partitions).
    pub type Partitions<T> = partitions::Partitions<T, Blocking>;
    /// A worker, whose handlers are functions. See [`both::Worker`](crate::both::Worker).
    pub type Worker = worker::Worker<Blocking>;
    /// A worker that was started. See [`both::Running`](crate::both::Running).
    pub type Running = worker::Running<Blocking>;
}
