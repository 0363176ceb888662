//! The daily commands: they read what a person asked for and print it, or carry out an act.

mod act;
pub mod batch;
pub mod consumers;
pub mod dead;
pub mod done;
pub mod find;
pub mod generate;
pub mod groups;
pub mod look;
pub mod ls;
pub mod queues;
pub mod schedule;

pub use act::act;

/// What failed if the user may not read each of many queues.
pub const NOT_ALL: &str = "not all queues could be read";
