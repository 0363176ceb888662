//! Test support: real servers, clusters, and waiting for conditions.

mod cluster;
// Where servers of tests keep their files is decided once, for the tests of the module too.
#[path = "../../../../../tests/server/support/place.rs"]
mod place;
mod process;
mod proxy;
mod server;
mod tls;
mod wait;

pub use cluster::Cluster;
pub use process::Process;
pub use proxy::Proxy;
pub use server::{free_port, in_both_protocols, Server};
pub use tls::Tls;
pub use wait::{eventually, patience};
