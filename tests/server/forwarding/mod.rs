//! Forwarding: the server writes due messages to a stream, a list or a channel.

mod access;
mod dead;
mod dead_keys;
mod dead_queue;
mod durability;
mod failures;
mod keys;
mod limits;
mod moving_slots;
mod targets;
mod workers;

use crate::support::{eventually, Client, Fields};

/// The fields of each entry of a stream.
fn entries(c: &mut Client, stream: &str) -> Vec<Fields> {
    c.ask(format!("XRANGE {stream} - +")).items().iter().map(|entry| entry.items()[1].fields()).collect()
}

/// The ids of the messages in a stream, in its order.
fn ids(c: &mut Client, stream: &str) -> Vec<String> {
    entries(c, stream).iter().map(|entry| entry.text("id")).collect()
}

/// The elements of a list.
fn elements(c: &mut Client, list: &str) -> Vec<String> {
    c.ask(format!("LRANGE {list} 0 -1")).items().iter().map(|element| element.text()).collect()
}

/// Waits until a queue has forwarded this many messages.
#[track_caller]
fn until_forwarded(c: &mut Client, queue: &str, count: i64) {
    eventually("they are forwarded", || c.about(queue).int("forwarded") == count);
}

/// Waits until a queue cannot forward, and returns its error.
fn error_of(c: &mut Client, queue: &str) -> String {
    eventually("it cannot forward", || !c.about(queue).get("forward-error").is_null());
    c.about(queue).text("forward-error")
}
