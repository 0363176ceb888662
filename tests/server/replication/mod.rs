//! Replication: replicas equal their master however they got the data, and a promoted replica continues without loss.

mod catching_up;
mod failover;
mod following;
mod listening;
mod promotion;
mod raw_writes;
mod replaying;
mod replication_ways;
mod sentinel;
mod upgrades;
