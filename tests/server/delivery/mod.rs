//! Delivery: every message goes to exactly one consumer, when it is due and in the documented order, and no blocked
//! client is forgotten.

mod acks_and_pops;
mod blocking;
mod concurrency;
mod consumers;
mod gathering;
mod losing;
mod popping;
mod punctuality;
mod races;
mod refused_writes;
mod several_queues;
mod waiting;
