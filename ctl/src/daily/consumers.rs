//! `dqctl consumers`.

use super::NOT_ALL;
use crate::board::{consumers, names, Holder};
use crate::cli::ConsumersArgs;
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output};
use crate::server::{info, Failure, Outcome};
use crate::text::{put, shown};
use dq_client::blocking::Client;
use serde_json::Map;

const COLUMNS: &[Column] = &[Name("consumer"), Number("inflight"), Word("oldest-delivery")];
/// The same for all queues.
const OF_ALL: &[Column] = &[Name("consumer"), Name("queue"), Number("inflight"), Word("oldest-delivery")];

pub fn consumers(client: &Client, args: &ConsumersArgs, output: &Output) -> Result<Outcome, Failure> {
    let (queues, missing) = match &args.queue {
        Some(queue) => (vec![queue.as_bytes().to_vec()], None),
        None => names::find_reachable(client, args.pattern.as_deref())?,
    };
    let (mut found, mut unnamed, mut denied) = (Vec::new(), 0, None);
    for name in &queues {
        let read = |info: Option<_>| Ok(consumers::read(client, name, &info.unwrap_or_default())?);
        match info::read(client, name).and_then(read) {
            Ok((holders, others)) => {
                found.extend(holders);
                unnamed += others;
            }
            Err(failure) if failure.is_denied() && args.queue.is_none() => denied = Some(failure.in_context(NOT_ALL)),
            Err(failure) => return Err(failure),
        }
    }
    if let (true, Some(queue)) = (found.is_empty(), &args.queue) {
        info::existing(client, queue)?;
    }
    // The one that has held a message for longest is most likely gone.
    found.sort_by_key(|holder| holder.since);
    found.truncate(args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)));
    print(&found, args.queue.is_none(), output)?;
    if unnamed > 0 {
        output.remark(&format!("{unnamed} more in flight with consumers that have no name: they popped without AS"))?;
    }
    missing.or(denied).map_or(Ok(Outcome::Done), Err)
}

fn print(found: &[Holder], is_of_all: bool, output: &Output) -> Result<(), Failure> {
    let name = |holder: &Holder| String::from_utf8_lossy(&holder.consumer).into_owned();
    let object = |holder: &Holder| {
        let mut object = Map::new();
        if is_of_all {
            put(&mut object, "queue", &holder.queue);
        }
        object.insert("consumer".to_owned(), name(holder).into());
        object.insert("inflight".to_owned(), holder.messages.into());
        object.insert("oldest-delivery".to_owned(), holder.since.into());
        object
    };
    let row = |holder: &Holder| {
        let mut row = vec![name(holder)];
        row.extend(is_of_all.then(|| shown(&holder.queue)));
        row.extend([holder.messages.to_string(), output.instant(holder.since)]);
        row
    };
    output.list(if is_of_all { OF_ALL } else { COLUMNS }, found, object, row)
}
