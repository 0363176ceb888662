//! Settings of a queue: how they are given and changed, the limits that they set, and pauses.

mod closing;
mod dead_ttl;
mod declaring;
mod default_delay;
mod limits;
mod pausing;
mod pausing_for;
mod queue_settings;
mod rate;
