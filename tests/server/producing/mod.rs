//! Producing: what a push accepts, which ids it gives or refuses, and the place that a message takes in the queue.

mod batches;
mod deduplication;
mod past;
mod payload_limit;
mod pushing;
mod replacing;
mod replacing_later;
