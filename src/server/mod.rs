//! The shell: all that touches the server, and the only room with `unsafe` in it.
//!
//! Each file wraps one side of the module API in types that ordinary code cannot misuse: names that borrow,
//! keys that close themselves, replies that cannot break the protocol, a command as one row with its handler.
//! Every entry from the server goes through [`guard`], so that a bug is an error reply and a log line, and never
//! an abort that takes the data since the last fsync with it.

pub mod admission;
pub mod agenda;
pub mod alarms;
pub mod alloc;
pub mod api;
pub mod args;
pub mod blocked_keys;
pub mod config;
pub mod ctx;
pub mod datatype;
pub mod disposal;
pub mod event;
pub mod gauges;
pub mod guard;
pub mod import;
pub mod info;
pub mod key;
pub mod listeners;
pub mod load;
pub mod log;
pub mod origin;
pub mod register;
pub mod reply;
pub mod row;
pub mod state;
pub mod sweep;
pub mod timer;
pub mod waiters;
pub mod write;
