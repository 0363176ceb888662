//! How the server is reached, what it replies, and the failures in which that ends.

mod advice;
mod connection;
mod failure;
pub mod info;
pub mod reply;
mod transfer;

pub use advice::{print_note, quoted, redis_cli};
pub use connection::Connection;
pub use failure::{is_cut, Failure, Outcome};
pub use info::QueueInfo;
pub use reply::Fields;
pub use transfer::{fewer, get_all, persistently, BATCH_BYTES};
