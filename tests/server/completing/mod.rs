//! Completed messages: what is kept of them, and clients that wait for them.

mod awaiting;
mod keeping;
mod results;
mod waking;
