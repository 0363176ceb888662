//! `dqctl consumers`.

use super::{exists, NOT_ALL};
use crate::board::clients;
use crate::board::names;
use crate::cli::ConsumersArgs;
use crate::output::Column::{Name, Number, Word};
use crate::output::{Column, Output, Table};
use crate::server::failure::{Failure, Outcome};
use crate::server::reply;
use crate::text::name::{put, shown};
use dq_client::{Client, Consumer, Error, Raw};
use serde_json::Map;
use std::time::UNIX_EPOCH;

const COLUMNS: &[Column] = &[Name("consumer"), Number("inflight"), Word("oldest-delivery")];
/// The same for all queues.
const OF_ALL: &[Column] = &[Name("consumer"), Name("queue"), Number("inflight"), Word("oldest-delivery")];

/// Clients that take messages.
const CLIENTS: &[Column] =
    &[Name("client"), Name("host"), Name("library"), Number("connections"), Number("waiting"), Word("last-active")];

pub fn consumers(client: &Client, args: &ConsumersArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.clients {
        return print_clients(client, args, output);
    }
    let (queues, missing) = match &args.queue {
        Some(queue) => (vec![queue.as_bytes().to_vec()], None),
        None => names::find_reachable(client, args.pattern.as_deref())?,
    };
    let mut held = Held::default();
    let mut denied = None;
    for name in &queues {
        match held.read(client, name, output) {
            Err(error @ Error::NoPermission(_)) if args.queue.is_none() => {
                denied = Some(Failure::from(error).of(NOT_ALL));
            }
            read => read?,
        }
    }
    if let (true, Some(queue)) = (held.found.is_empty(), &args.queue) {
        if !exists(client, queue)? {
            return Ok(Outcome::Nothing);
        }
    }
    // The one that has held a message for longest is most likely gone.
    held.found.sort_by_key(|(_, consumer)| consumer.oldest_delivery);
    held.found.truncate(limit(args));
    print(&held.found, args, output)?;
    held.remark(args, output)?;
    missing.or(denied).map_or(Ok(Outcome::Done), Err)
}

/// The most rows.
fn limit(args: &ConsumersArgs) -> usize {
    args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// Who holds messages.
#[derive(Default)]
struct Held<'a> {
    found: Vec<(&'a Vec<u8>, Consumer)>,
    /// How many messages consumers without a name hold, and where most of them are.
    unnamed: u64,
    most: (u64, Option<&'a Vec<u8>>),
    /// How many clients are blocked.
    waiting: u64,
}

impl<'a> Held<'a> {
    fn read(&mut self, client: &Client, name: &'a Vec<u8>, output: &Output) -> Result<(), Error> {
        let of_queue = client.queue::<Raw>(name).consumers().collect::<Result<Vec<_>, _>>()?;
        if output.is_for_people() {
            let info = reply::info(client, name).ok().flatten();
            let number = |field| info.as_ref().map_or(0, |info| info.number(field));
            let named = of_queue.iter().map(|consumer| consumer.inflight).sum();
            let others = number("inflight").saturating_sub(named);
            self.unnamed += others;
            self.waiting += number("waiting-clients");
            self.most = self.most.max((others, Some(name)));
        }
        self.found.extend(of_queue.into_iter().map(|consumer| (name, consumer)));
        Ok(())
    }

    /// What the list does not tell, for people.
    fn remark(&self, args: &ConsumersArgs, output: &Output) -> Result<(), Failure> {
        let Held { unnamed, waiting, .. } = self;
        let is_of_all = args.queue.is_none();
        if !is_of_all && self.found.is_empty() && *unnamed == 0 {
            output.remark(&format!("nobody holds a message of it; clients that wait: {waiting}"))?;
        }
        if *unnamed > 0 {
            let place = match self.most {
                (_, Some(queue)) if is_of_all => format!(", most of them in {}", shown(queue)),
                _ => String::new(),
            };
            output.remark(&format!(
                "{unnamed} more in flight with consumers that have no name{place}: they popped without AS"
            ))?;
        }
        if is_of_all {
            output.remark(&format!("clients that wait: {waiting}; dqctl consumers --clients lists who pops"))?;
        }
        Ok(())
    }
}

fn print(found: &[(&Vec<u8>, Consumer)], args: &ConsumersArgs, output: &Output) -> Result<(), Failure> {
    let is_of_all = args.queue.is_none();
    let mut table = Table::new(if is_of_all { OF_ALL } else { COLUMNS });
    for (queue, consumer) in found {
        let name = String::from_utf8_lossy(&consumer.name).into_owned();
        let since = consumer.oldest_delivery.duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        if output.json {
            let mut object = Map::new();
            if is_of_all {
                put(&mut object, "queue", queue);
            }
            object.insert("consumer".to_owned(), name.into());
            object.insert("inflight".to_owned(), consumer.inflight.into());
            object.insert("oldest-delivery".to_owned(), oldest.into());
            output.object(&object)?;
            continue;
        }
        let mut row = vec![name];
        row.extend(is_of_all.then(|| shown(queue)));
        row.extend([consumer.inflight.to_string(), output.instant(oldest)]);
        table.row(row);
    }
    if !output.json {
        output.table(&table)?;
    }
    Ok(())
}

/// Those that have not asked for messages for longest come first: a handler of theirs may hang.
fn print_clients(client: &Client, args: &ConsumersArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut found: Vec<_> = clients::find(client)?.into_iter().collect();
    found.sort_by_key(|(_, connections)| connections.last_active);
    found.truncate(limit(args));
    let mut table = Table::new(CLIENTS);
    for (popper, connections) in found {
        if output.json {
            output.object(&popper.json(connections))?;
            continue;
        }
        // The server refuses names with spaces and control characters.
        let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        let mut row = [popper.name, popper.host, popper.library].map(or_none).to_vec();
        row.extend([connections.count, connections.waiting].map(|number| number.to_string()));
        row.push(output.instant(connections.last_active));
        table.row(row);
    }
    if !output.json {
        output.table(&table)?;
    }
    Ok(Outcome::Done)
}
