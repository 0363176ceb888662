//! A producer and consumers of a topic in partitions, for more throughput than one shard of a cluster has.
//!
//! ```text
//! cargo run -p dq-client --example partitions -- consume 16
//! cargo run -p dq-client --example partitions -- produce 1000
//! ```
//!
//! `DQ_URL` names the cluster, such as `redis+cluster://127.0.0.1:7000`, or a single server. A message goes to one of
//! twelve queues by the murmur3 hash of its key; each consumer takes from all of them, on all shards.

use dq_client::{Client, Context, Failure, Partitions, Pool, Worker};

const TOPIC: &str = "orders";
/// Fixed while messages wait.
const PARTITIONS: u32 = 12;

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    customer: u32,
    amount: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::open(&url)?;
    let topic: Partitions<Order> = Partitions::new(&client, TOPIC, PARTITIONS);
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["produce", count] => {
            for number in 0..count.parse()? {
                let order = Order { customer: number % 100, amount: number };
                topic.push(format!("customer-{}", order.customer), &order).await?;
            }
            for (queue, info) in topic.queues().iter().zip(topic.info().await?) {
                println!("{}: {} ready", queue.name(), info.map_or(0, |info| info.ready));
            }
        }
        ["consume", concurrency] => {
            let pool = Pool::new(concurrency.parse()?).partitions(&topic);
            Worker::new(client).pool(pool, close).run().await?;
        }
        _ => return Err("usage: partitions produce COUNT | consume CONCURRENCY".into()),
    }
    Ok(())
}

async fn close(order: Order, context: Context) -> Result<(), Failure> {
    println!("{}: customer {} pays {}", context.queue(), order.customer, order.amount);
    Ok(())
}
