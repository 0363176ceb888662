//! Test support: real servers, clusters, and waiting for conditions.

mod cluster;
mod process;
mod server;
mod tls;
mod wait;

pub use cluster::Cluster;
pub use process::Process;
pub use server::{free_port, in_both_protocols, Server};
pub use tls::Tls;
pub use wait::{eventually, patience};
