//! What travels with a message besides its payload.

mod checkpoints;
mod errors;
mod headers;
mod meta;
mod surviving;
