//! Tests of the client against real servers. Each is named after what a user relies on.
//!
//! `DQ_SERVER` names the server, `DQ_MODULE` the module; by default cargo builds the module first.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod asynchronous;
mod batches;
mod choosing;
mod connections;
mod consumers;
mod coverage;
mod examples;
mod faults;
mod groups;
mod limits;
mod partitions;
mod queues;
mod results;
mod storm;
mod support;
#[cfg(feature = "otel")]
mod traces;
mod travelling;
mod worker;
