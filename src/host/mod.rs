//! What holds queues in a server: the value of a key and its callbacks, the way in which a change leaves a queue, the
//! clients that are blocked on it, and what the server tells of replicas, imports and databases.
//!
//! A change takes one way: a command asks the queue, and [`write`] replicates the effect, re-arms the timer, wakes
//! blocked clients and announces the event. [`advance`] does the same for what time moves.

pub mod admission;
pub mod advance;
pub mod blocked;
pub mod blocked_keys;
pub mod config;
pub mod datatype;
pub mod disposal;
pub mod event;
pub mod floor;
pub mod gauges;
pub mod imports;
pub mod info;
pub mod init;
pub mod listeners;
pub mod origin;
pub mod write;
