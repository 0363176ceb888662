//! Durability: a queue survives restarts and crashes unchanged, from an RDB file or an AOF.

mod crash;
mod cut_aof;
mod full_disk;
mod golden;
mod persistence;
mod persistence_ways;
mod power_cuts;
