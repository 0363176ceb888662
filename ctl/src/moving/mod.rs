//! `dqctl dump`, `load` and `import`: messages from queue to file, and from elsewhere to a queue.
//!
//! What they push goes through [`push`]: under ids, in batches, so that each of them can be repeated.

pub mod dump;
mod field;
pub mod import;
mod line;
pub mod load;
mod pause;
mod push;
