//! What a user of the module relies on, checked against real servers.
//!
//! A folder holds the tests of one area, a file those of one subject, and a test is one promise. Each test starts its
//! own server, so tests do not affect each other. No test depends on the speed of the machine: tests wait for
//! conditions with generous deadlines, and "never early" is compared with the clock of the server, exactly where that
//! clock does not step back.
//!
//! `DQ_SERVER` names the server to test (default: `redis-server`, then `valkey-server` from the path) and `DQ_MODULE`
//! the module (default: the `libdq.so` that cargo built for this run).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

mod changing;
mod checker;
mod client_libraries;
mod cluster;
mod completing;
mod delivery;
mod durability;
mod forwarding;
mod groups;
mod interface;
mod keyspace;
mod lifecycle;
mod looking;
mod producing;
mod replication;
mod robustness;
mod scheduling;
mod settings;
mod travelling;
