//! `dq`: the delay queue as a native data type of Redis and Valkey.
//!
//! [`queue`] is the heart: a pure state machine that knows no clock and no server.

pub mod queue;
