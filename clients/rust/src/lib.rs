#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
// They panic if the output is full or closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod connect;
mod error;
mod murmur3;
mod partitions;
mod payload;
mod queue;
mod reply;
mod worker;

pub use connect::{Address, Client, Options, Resend};
pub use error::Error;
pub use partitions::Partitions;
pub use payload::{Decode, Encode, Json, Raw};
pub use queue::{
    AckPop, Batch, BatchInfo, Complete, Consumer, Consumers, DeadFilter, Declared, Delivery, Flow, Forward, Group,
    GroupInfo, GroupOrder, GroupPause, Groups, Headers, Histogram, Id, Info, ListEnd, Message, Meta, Nack, PastError,
    Pop, PopAny, Push, PushAll, Pushed, Queue, Reason, Receipt, Recurring, Scan, Schedule, Settings, State, Stats,
    Then, Totals,
};
pub use worker::{Context, Event, Failure, Loss, Metrics, Pool, QueueMetrics, Running, Stopped, Stopper, Worker};

/// The commands and values of `redis-rs`, for [`Client::call`].
pub use redis::{cmd, Cmd, Value};
