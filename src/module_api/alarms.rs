//! The words with which the log reports a bug in the module. They appear in no other case: the tests search for them,
//! and operators should alert on them.

/// The start of the log line that gives the location of a panic.
pub const PANIC: &str = "panic at ";

/// Part of every log line that reports a bug that the module has contained.
pub const BUG: &str = "a bug in the module";
