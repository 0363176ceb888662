//! The module of the feature `next-format` as a target of its own.

#[path = "../../src/lib.rs"]
mod face;
// The rooms name each other from the root of the crate.
use face::*;
