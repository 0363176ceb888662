//! The host: everything that holds queues in a server. This is the value of a key and its callbacks, the path of a
//! change out of a queue, the blocked clients, the module's settings and sums, and what the server reports about
//! replicas, slot imports and databases.

pub mod admission;
pub mod advance;
pub mod authority;
pub mod config;
pub mod datatype;
pub mod disposal;
pub mod event;
pub mod floor;
pub mod forward;
pub mod forward_dead;
pub mod gauges;
pub mod imports;
pub mod info;
pub mod init;
pub mod listeners;
pub mod open;
pub mod origin;
pub mod punctuality;
pub mod queue_value;
pub mod server_events;
pub mod session;
pub mod slot;
pub mod trim;
pub mod waiting;
pub mod warnings;
pub mod write;
