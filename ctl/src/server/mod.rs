//! How the server is reached, what it replies, and the failures in which that ends.

mod advice;
mod connection;
mod failure;
pub mod info;
mod message;
pub mod reply;
mod server_info;
mod transfer;
mod writes;

pub use advice::{print_note, quoted};
pub use connection::Connection;
pub use failure::{is_cut, Failure, Outcome};
pub use info::QueueInfo;
pub use message::Message;
pub use reply::Fields;
#[cfg(test)]
pub use server_info::Clock;
pub use server_info::ServerInfo;
pub use transfer::{fewer, get_all, persistently, BATCH_BYTES};
pub use writes::Replicas;
