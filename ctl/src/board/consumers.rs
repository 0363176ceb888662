//! Who holds messages: the consumers of a queue with their deliveries.

use crate::server::QueueInfo;
use crate::text::unix_ms;
use dq_client::{blocking::Client, Error, Raw};

/// The messages that one consumer holds in one queue.
pub struct Holder {
    pub queue: Vec<u8>,
    pub consumer: Vec<u8>,
    pub messages: u64,
    /// When the oldest of these deliveries began, in Unix ms.
    pub since: i64,
}

/// The holders of a queue, and how many messages are in flight with consumers that have no name. `info` is its
/// `DQ.INFO`, so that nothing is read of a queue without consumers.
pub fn read(client: &Client, queue: &[u8], info: &QueueInfo) -> Result<(Vec<Holder>, u64), Error> {
    let mut holders = Vec::new();
    if info.consumers > 0 {
        for consumer in client.queue::<Raw>(queue).consumers() {
            let consumer = consumer?;
            let since = unix_ms(consumer.oldest_delivery);
            holders.push(Holder { queue: queue.to_vec(), consumer: consumer.name, messages: consumer.inflight, since });
        }
    }
    let named = holders.iter().map(|holder| holder.messages).sum();
    Ok((holders, info.inflight.saturating_sub(named)))
}
