//! The wrappers of the server's module API. They know nothing of queues.
//!
//! Each file wraps one side of the API in types that ordinary code cannot misuse: names that borrow, keys that close
//! themselves, replies that cannot break the protocol, a command as one row with its handler. Every entry from the
//! server goes through [`guard`](guard::guard), so that a bug is an error reply and a log line, and never an abort that
//! takes the data since the last fsync with it.

pub mod alarms;
pub mod alloc;
pub mod api;
pub mod args;
pub mod ctx;
pub mod guard;
pub mod key;
pub mod log;
pub mod register;
pub mod reply;
pub mod row;
