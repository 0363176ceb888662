//! The keyspace: a queue is a key like any other, whatever the generic commands do to it.

mod changing_keys;
mod generic_keys;
mod missing_keys;
