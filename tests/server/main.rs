//! What a user of the module relies on, checked against real servers.
//!
//! A file holds the promises of one subject, and a test is one promise. Each test has a server of its own, so that
//! none can disturb another. Nothing here depends on the speed of the machine: tests wait for conditions with generous
//! deadlines, and "never early" is compared with the server's own clock, exactly.
//!
//! `DQ_SERVER` names the server to test against (else `redis-server`, else `valkey-server` from the path),
//! `DQ_MODULE` the module (else the `libdq.so` that cargo built for this run).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

mod alarms;
mod batches;
mod blocking;
mod burying;
mod cancelling;
mod catching_up;
mod checker;
mod clients;
mod clocks;
mod cluster;
mod concurrency;
mod crash;
mod dead_ttl;
mod declaring;
mod delivery;
mod discovery;
mod docs;
mod errors;
mod examples;
mod failover;
mod full_disk;
mod generic_keys;
mod giving_back;
mod hostile;
mod jitter;
mod keyspace;
mod leases;
mod limits;
mod listening;
mod looking;
mod memory;
mod missing_keys;
mod notifications;
mod pausing;
mod pausing_for;
mod payload_limit;
mod peeking;
mod persistence;
mod persistence_ways;
mod producing;
mod promoting;
mod promotion;
mod purging;
mod purging_some;
mod python;
mod queue_settings;
mod races;
mod raw_writes;
mod readme;
mod redriving;
mod refused_writes;
mod replacing;
mod replication;
mod replication_ways;
mod rescheduling;
mod retries;
mod scanning;
mod sentinel;
mod several_queues;
mod slots;
mod sums;
mod time_to_live;
mod waiting;
mod what_happens_when;
