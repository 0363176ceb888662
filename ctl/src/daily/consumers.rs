//! `dqctl consumers` and `dqctl release`.

use super::confirm::agrees;
use super::{exists, many, queue, queues};
use crate::cli::{QueueArgs, ReleaseArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output, Table};
use dq_client::Client;
use serde_json::json;
use std::time::UNIX_EPOCH;

const COLUMNS: &[Column] = &[Name("consumer"), Number("inflight"), Word("oldest-delivery")];

pub fn consumers(client: &Client, args: &QueueArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut table = Table::new(COLUMNS);
    let mut found = false;
    let mut consumers = queue(client, &args.queue).consumers().collect::<Result<Vec<_>, _>>()?;
    // The one that has held a message for longest is most likely gone.
    consumers.sort_by_key(|consumer| consumer.oldest_delivery);
    let mut named = 0;
    for consumer in consumers {
        found = true;
        named += consumer.inflight;
        let name = String::from_utf8_lossy(&consumer.name).into_owned();
        let since = consumer.oldest_delivery.duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        if output.json {
            let object = json!({ "consumer": name, "inflight": consumer.inflight, "oldest-delivery": oldest });
            output.result("", object)?;
        } else {
            table.row(vec![name, consumer.inflight.to_string(), output.instant(oldest)]);
        }
    }
    if !found && !exists(client, &args.queue)? {
        return Ok(Outcome::Nothing);
    }
    if !output.json {
        output.table(&table)?;
    }
    if output.is_for_people() {
        let inflight = queues::read(client, args.queue.as_bytes()).ok().flatten().and_then(|info| info.int("inflight"));
        let unnamed = inflight.and_then(|count| u64::try_from(count).ok()).unwrap_or(0).saturating_sub(named);
        if unnamed > 0 {
            output.remark(&format!(
                "{unnamed} more in flight with consumers that have no name: they popped without AS"
            ))?;
        }
    }
    Ok(Outcome::Done)
}

pub fn release(client: &Client, args: &ReleaseArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.dry_run {
        return many::count(&args.queue, output, || held(client, args));
    }
    let Some(most) = agrees(&args.confirm, output, &args.queue, "Release", || held(client, args))? else {
        return Ok(Outcome::Nothing);
    };
    let queue = queue(client, &args.queue);
    let most = u32::try_from(most).ok().or(args.count);
    let released = match (most, args.no_count) {
        (Some(0), _) => 0,
        (most, true) => queue.release_uncounted(&args.consumer, most)?,
        (most, false) => queue.release(&args.consumer, most)?,
    };
    output.counted(released, "released", json!({ "released": released }))?;
    if released == 0 {
        exists(client, &args.queue)?;
    }
    Ok(Outcome::found(released > 0))
}

/// How many messages a release would take. `None` if the queue does not exist.
fn held(client: &Client, args: &ReleaseArgs) -> Result<Option<u64>, Failure> {
    for consumer in queue(client, &args.queue).consumers() {
        let consumer = consumer?;
        if consumer.name == args.consumer.as_bytes() {
            return Ok(Some(consumer.inflight.min(args.count.map_or(u64::MAX, u64::from))));
        }
    }
    Ok(queues::read(client, args.queue.as_bytes())?.map(|_| 0))
}
