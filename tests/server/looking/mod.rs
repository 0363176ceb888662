//! Looking: messages, counts, totals and notifications tell the exact state of a queue, and reading changes nothing.

mod inspecting;
mod notifications;
mod peeking;
mod scanning;
mod statistics;
mod sums;
