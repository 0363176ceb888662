//! The program `dqctl` on real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

// The servers are those of the client's tests.
#[allow(dead_code, unused_imports)]
#[path = "../../../clients/rust/tests/it/support/mod.rs"]
mod support;

mod batches;
mod confirm;
mod contrib;
mod daily;
mod dead;
mod doctor;
mod done;
mod dqctl;
mod dump;
mod errors;
mod export;
mod generate;
mod held;
mod http;
mod import;
mod import_libraries;
mod import_ties;
mod letters;
mod lists;
mod look;
mod lost_reply;
mod names;
mod no_module;
mod nothing_to_do;
mod post;
mod progress;
mod queues;
mod top;
mod unread;
mod web;
mod work;
mod work_limits;
mod work_log;
mod workers;
