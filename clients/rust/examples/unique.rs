//! Unique keys with a ready time: however often a key is touched, it is handled once, some time after the first or the
//! last touch.
//!
//! ```text
//! cargo run -p dq-client --example unique -- work
//! cargo run -p dq-client --example unique -- first page-7 5000    # in 5 s; further touches until then change nothing
//! cargo run -p dq-client --example unique -- last page-7 5000     # 5 s after the last touch, within 60 s of the first
//! cargo run -p dq-client --example unique -- forget page-7
//! ```

use dq_client::{Client, Context, Failure, Pushed, Queue, Worker};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DQ_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".to_owned());
    let client = Client::open(&url)?;
    let keys: Queue<String> = client.queue("keys");
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["work"] => {
            Worker::new(client).queue("keys", 4, index).run().await?;
        }
        ["first", key, ms] => {
            let touch = keys.push(&(*key).to_owned()).id(key).delay(Duration::from_millis(ms.parse()?));
            match touch.await? {
                Pushed::New(_) => println!("{key} is ready in {ms} ms"),
                Pushed::Duplicate => println!("{key} waits already"),
            }
        }
        ["last", key, ms] => {
            let touch = keys.push(&(*key).to_owned()).id(key).delay(Duration::from_millis(ms.parse()?));
            touch.replace_within(Duration::from_secs(60)).await?;
            println!("{key} is ready in {ms} ms, unless it is touched again");
        }
        ["forget", key] => println!("{}", if keys.cancel(key).await? { "forgotten" } else { "not known" }),
        _ => return Err("usage: unique work | first KEY MS | last KEY MS | forget KEY".into()),
    }
    Ok(())
}

async fn index(key: String, _: Context) -> Result<(), Failure> {
    println!("{key}");
    Ok(())
}
