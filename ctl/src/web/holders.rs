//! Who holds messages, of all queues: a consumer that hangs or is gone holds some for longest.

use super::api::put;
use super::find;
use crate::board::row::Status;
use crate::board::Board;
use crate::failure::Failure;
use crate::reply::Fields;
use crate::time::now_ms;
use dq_client::{Client, Error};
use serde_json::{json, Map, Value as Json};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How long queues are read at most, and the rows with which no further one is read.
const READ: Duration = Duration::from_secs(5);
const ROWS: usize = 20_000;
/// What consumers without a name hold is shown if it was delivered so long before all others, in ms. The messages in flight and
/// those of consumers are counted one after the other, so the counts differ by what is delivered meanwhile.
const UNNAMED: i64 = 2_000;

/// The messages that one consumer holds in one queue.
pub struct Holder {
    pub queue: Vec<u8>,
    /// `None`: those of consumers that pop without `AS`.
    pub consumer: Option<Vec<u8>>,
    messages: i64,
    /// When the oldest of these deliveries began, in Unix ms.
    since: i64,
}

/// The holders of all queues, and of how many queues they were read.
#[derive(Default)]
pub struct Holders {
    /// Those that hold a message for longest come first.
    pub rows: Vec<Holder>,
    /// `None`: the queues are being looked for.
    pub queues: Option<usize>,
    pub read: usize,
}

impl Holder {
    pub fn contains(&self, part: &[u8]) -> bool {
        [Some(&self.queue), self.consumer.as_ref()].into_iter().flatten().any(|name| find::contains(name, part))
    }

    /// As an object with the number of its connections, if that can be told.
    pub fn json(&self, connections: Option<u64>) -> Json {
        let mut object = Map::new();
        put(&mut object, "queue", &self.queue);
        if let Some(consumer) = &self.consumer {
            put(&mut object, "consumer", consumer);
        }
        object.insert("messages".to_owned(), json!(self.messages));
        object.insert("since".to_owned(), json!(self.since));
        object.insert("connections".to_owned(), json!(connections));
        Json::Object(object)
    }
}

impl Holders {
    /// Reads the queues that have messages in flight, as long as the time allows it.
    pub fn read(client: &Client, board: &Board) -> Result<Holders, Failure> {
        if !board.wait()?.is_known {
            return Ok(Holders::default());
        }
        let (names, all) = board.rows(|rows| {
            let answering = rows.iter().filter(|(_, row)| row.status != Status::Lost);
            (answering.map(|(name, _)| name.clone()).collect::<Vec<_>>(), rows.len())
        });
        let mut holders = Holders { queues: Some(all), ..Holders::default() };
        let end = Instant::now() + READ;
        for name in &names {
            if Instant::now() > end || holders.rows.len() >= ROWS {
                break;
            }
            match holders.add(client, name) {
                Ok(()) => holders.read += 1,
                Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        holders.rows.sort_by_key(|row| row.since);
        Ok(holders)
    }

    fn add(&mut self, client: &Client, queue: &[u8]) -> Result<(), Error> {
        let Some(info) = find::read(client, queue)? else { return Ok(()) };
        let inflight = info.int("inflight").unwrap_or(0);
        if inflight == 0 {
            return Ok(());
        }
        let first = self.rows.len();
        for consumer in client.queue::<()>(queue).consumers() {
            let consumer = consumer?;
            let since = consumer.oldest_delivery.duration_since(UNIX_EPOCH).unwrap_or_default();
            self.rows.push(Holder {
                queue: queue.to_vec(),
                consumer: Some(consumer.name),
                messages: i64::try_from(consumer.inflight).unwrap_or(i64::MAX),
                since: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            });
        }
        let named = self.rows.get(first..).unwrap_or_default();
        let unnamed = unnamed(queue, &info, named, inflight);
        self.rows.extend(unnamed);
        Ok(())
    }
}

/// What consumers without a name hold, if that is old enough to be told from what was delivered between the two readings.
fn unnamed(queue: &[u8], info: &Fields, named: &[Holder], inflight: i64) -> Option<Holder> {
    let since = now_ms() - info.int("oldest-inflight")?;
    let first = named.iter().map(|row| row.since).min().unwrap_or_else(now_ms);
    let messages = inflight - named.iter().map(|row| row.messages).sum::<i64>();
    (messages > 0 && since + UNNAMED <= first).then(|| Holder {
        queue: queue.to_vec(),
        consumer: None,
        messages,
        since,
    })
}
