//! One topic over several queues, for more throughput than one shard of a cluster has.

use crate::connect::{send, Client, Sent};
use crate::mode::Mode;
use crate::murmur3::murmur3;
use crate::payload::Encode;
use crate::queue::{Info, Push, Queue};
use crate::request::Request;

/// A topic over n queues `{topic:0}` … `{topic:n-1}`, which a cluster spreads over its shards.
///
/// A message belongs to the partition that the murmur3 hash (x86, 32 bits, seed 0) of its key names, modulo n, so that
/// producers in any language agree. While messages wait, n must not change.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> Result<(), dq_client::Error> {
/// use dq_client::{Client, Partitions};
/// let client = Client::open("redis+cluster://127.0.0.1:7000")?;
/// let orders: Partitions<String> = Partitions::new(&client, "orders", 12);
/// orders.push("customer-17", &"close order 1001".to_owned()).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Partitions<T, M> {
    queues: Vec<Queue<T, M>>,
}

impl<T: 'static, M: Mode> Partitions<T, M> {
    /// The topic of this name over `count` queues, at least one.
    pub fn new(client: &Client<M>, topic: &str, count: u32) -> Partitions<T, M> {
        let queues = (0..count.max(1)).map(|number| client.queue(format!("{{{topic}:{number}}}"))).collect();
        Partitions { queues }
    }

    /// The queues, in the order of their numbers.
    pub fn queues(&self) -> &[Queue<T, M>] {
        &self.queues
    }

    /// The number of the partition that has this key.
    pub fn number_of(&self, key: impl AsRef<[u8]>) -> usize {
        let hash = usize::try_from(murmur3(key.as_ref(), 0)).unwrap_or_default();
        hash % self.queues.len()
    }

    /// The queue that has this key.
    #[must_use]
    #[allow(clippy::indexing_slicing, reason = "a number modulo the length, which is at least 1")]
    pub fn queue_of(&self, key: impl AsRef<[u8]>) -> &Queue<T, M> {
        &self.queues[self.number_of(key)]
    }

    /// The reply of `DQ.INFO` for each queue, in the order of their numbers; `None` for those that do not exist.
    ///
    /// # Errors
    /// Those of [`Queue::info`].
    pub fn info(&self) -> Sent<M, Vec<Option<Info>>> {
        let info = |queue: &Queue<T, M>| Request::harmless(queue.command("DQ.INFO"));
        let asked: Vec<_> = self.queues.iter().map(info).collect();
        self.queue_of("").client.run(|core| async move {
            futures_util::future::try_join_all(asked.into_iter().map(|request| send(&core, request))).await
        })
    }
}

impl<T: Encode + 'static, M: Mode> Partitions<T, M> {
    /// Pushes a message to the partition of its key.
    pub fn push(&self, key: impl AsRef<[u8]>, payload: &T) -> Push<T, M> {
        self.queue_of(key).push(payload)
    }
}

impl<T, M: Clone> Clone for Partitions<T, M> {
    fn clone(&self) -> Partitions<T, M> {
        Partitions { queues: self.queues.clone() }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Client, Partitions};

    #[test]
    fn a_key_always_has_the_same_partition() {
        let client = Client::open("redis://").unwrap();
        let topic: Partitions<u8> = Partitions::new(&client, "orders", 12);
        // murmur3("test") is 0xba6bd213.
        assert_eq!(topic.number_of("test"), (0xba6b_d213_usize) % 12);
        let expected = format!("{{orders:{}}}", 0xba6b_d213_usize % 12);
        assert_eq!(topic.queue_of("test").name().to_string(), expected);
        assert_eq!(Partitions::<u8>::new(&client, "one", 0).queues().len(), 1);
    }
}
