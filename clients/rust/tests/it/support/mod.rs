//! Test support: real servers, clusters, and waiting for conditions.

mod cluster;
mod process;
mod server;
mod wait;

pub use cluster::Cluster;
pub use process::Process;
pub use server::{free_port, in_both_protocols, Server};
pub use wait::{eventually, patience};
