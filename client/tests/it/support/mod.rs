//! Test support: real servers, clusters, and waiting for conditions.

mod cluster;
mod server;
mod wait;

pub use cluster::Cluster;
pub use server::{free_port, Server};
pub use wait::{eventually, patience};
