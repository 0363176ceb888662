//! `dqctl consumers` and `dqctl release`.

use super::{exists, queue};
use crate::cli::{QueueArgs, ReleaseArgs};
use crate::failure::{Failure, Outcome};
use crate::message::with_distance;
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output, Table};
use dq_client::Client;
use serde_json::json;
use std::time::UNIX_EPOCH;

const COLUMNS: &[Column] = &[Name("consumer"), Number("inflight"), Word("oldest-delivery")];

pub fn consumers(client: &Client, args: &QueueArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut table = Table::new(COLUMNS);
    let mut found = false;
    for consumer in queue(client, &args.queue).consumers() {
        let consumer = consumer?;
        found = true;
        let name = String::from_utf8_lossy(&consumer.name).into_owned();
        let since = consumer.oldest_delivery.duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        if output.json {
            let object = json!({ "consumer": name, "inflight": consumer.inflight, "oldest-delivery": oldest });
            output.result("", object)?;
        } else {
            table.row(vec![name, consumer.inflight.to_string(), with_distance(oldest)]);
        }
    }
    if !found && !exists(client, &args.queue)? {
        return Ok(Outcome::Nothing);
    }
    if !output.json {
        output.table(&table)?;
    }
    Ok(Outcome::Done)
}

pub fn release(client: &Client, args: &ReleaseArgs, output: &Output) -> Result<Outcome, Failure> {
    let queue = queue(client, &args.queue);
    let released = if args.no_count {
        queue.release_uncounted(&args.consumer, args.count)?
    } else {
        queue.release(&args.consumer, args.count)?
    };
    output.result(&released.to_string(), json!({ "released": released }))?;
    if released == 0 {
        exists(client, &args.queue)?;
    }
    Ok(Outcome::found(released > 0))
}
