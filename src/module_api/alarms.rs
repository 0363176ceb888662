//! What the log says of a bug in the module, and only then. The tests look for these words, and so should operators.

/// How the line begins that says where a panic happened.
pub const PANIC: &str = "panic at ";

/// What a line says of a bug that was contained.
pub const BUG: &str = "a bug in the module";
