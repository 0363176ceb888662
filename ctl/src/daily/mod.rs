//! The daily commands: they read what a person asked for and print it, or carry out an act.

mod act;
pub mod batch;
pub mod consumers;
pub mod dead;
pub mod done;
pub mod generate;
pub mod groups;
pub mod look;
pub mod ls;
pub mod queues;
pub mod schedule;

pub use act::act;

use crate::acts::no_such_queue;
use crate::server::advice::tell;
use crate::server::failure::Failure;
use crate::server::reply;
use crate::text::name::QueueName;
use dq_client::blocking::Client;

/// What failed if the user may not read each of many queues.
pub const NOT_ALL: &str = "not all queues could be read";

/// Whether the queue in which a command found nothing exists. Reports on standard error if it does not.
fn exists(client: &Client, name: &QueueName) -> Result<bool, Failure> {
    let exists = reply::info(client, name.as_bytes())?.is_some();
    if !exists {
        tell(no_such_queue(name));
    }
    Ok(exists)
}
