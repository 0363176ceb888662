//! Completed messages: what is kept of them, and clients that wait for them.

mod awaiting;
mod batches;
mod keeping;
mod results;
mod waking;
