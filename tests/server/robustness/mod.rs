//! Robustness: hostile input, memory limits, clocks that jump and bugs in the module do not harm the server or a queue.

mod clocks;
mod hostile;
mod memory;
mod panics;
