//! Safe wrappers of the server's module API. This room knows nothing about queues.
//!
//! Each file wraps one part of the API in types that ordinary code cannot misuse: names that borrow, keys that close
//! themselves, replies that cannot break the protocol, and a command as one row with its handler. Every call from the
//! server passes through [`guard`](guard::guard), so a bug leads to an error reply and a log line, and never to an
//! abort that loses everything written since the last fsync.

pub mod alarms;
pub mod alloc;
pub mod api;
pub mod args;
pub mod call;
pub mod ctx;
pub mod filter;
pub mod guard;
pub mod key;
pub mod key_flags;
pub mod log;
pub mod register;
pub mod reply;
pub mod row;
pub mod timerfd;
