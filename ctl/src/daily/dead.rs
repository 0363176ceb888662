//! `dqctl dead`.

use super::NOT_ALL;
use crate::acts::{no_such_queue, where_the_dead_are};
use crate::board::dead::{cause_of, causes, error_of, pages, Cause, Causes};
use crate::board::names;
use crate::cli::DeadArgs;
use crate::output::progress::Progress;
use crate::output::Column::{Id, Name, Number, Text, Word};
use crate::output::{Column, Output, Table};
use crate::server::advice::tell;
use crate::server::failure::{Failure, Outcome};
use crate::server::reply::{self, Fields};
use crate::text::name::{shown, QueueName};
use dq_client::blocking::Client;
use dq_client::{cmd, Resend};
use serde_json::{json, Value as Json};
use std::cmp::Reverse;
use std::ops::ControlFlow;

const MESSAGES: &[Column] = &[Id("id"), Word("died"), Number("attempt"), Word("reason"), Text("error")];
/// The same of messages that died in other queues.
const LETTERS: &[Column] = &[Id("id"), Word("died"), Number("attempt"), Word("reason"), Text("error"), Name("from")];
const BY_CAUSE: &[Column] = &[Number("count"), Word("newest"), Word("oldest"), Id("last-id"), Text("error")];
/// The same of several queues.
const BY_CAUSE_IN_ALL: &[Column] = &[Number("count"), Word("newest"), Word("oldest"), Text("queues"), Text("error")];
/// How many of these are named.
const NAMED: usize = 2;

pub fn dead(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.by_error {
        return by_error(client, args, output);
    }
    newest(client, args, output)
}

/// The errors, the most frequent first.
fn by_error(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    let typed = &args.queue;
    if let Some(causes) = causes_in(client, args, typed)? {
        if causes.is_empty() {
            say_where(client, args)?;
        }
        print_causes(&causes, None, args, output)?;
        return Ok(Outcome::Done);
    }
    let pattern = std::str::from_utf8(typed.as_bytes()).ok().filter(|text| text.contains(['*', '?', '[']));
    let Some(pattern) = pattern else {
        tell(no_such_queue(typed));
        return Ok(Outcome::Nothing);
    };
    let (names, missing) = names::find_reachable(client, Some(pattern))?;
    let names: Vec<QueueName> = names.iter().map(|name| QueueName::of(name)).collect();
    let (mut all, mut denied) = (Causes::default(), None);
    for name in &names {
        match causes_in(client, args, name) {
            Ok(causes) => causes.into_iter().flatten().for_each(|cause| all.add(name, cause)),
            Err(failure) if failure.is_denied() => denied = Some(failure.of(NOT_ALL)),
            Err(failure) => return Err(failure),
        }
    }
    let (causes, places) = all.sorted();
    print_causes(&causes, Some(&places), args, output)?;
    missing.or(denied).map_or(Ok(Outcome::found(!names.is_empty())), Err)
}

fn causes_in(client: &Client, args: &DeadArgs, queue: &QueueName) -> Result<Option<Vec<Cause>>, Failure> {
    let mut progress = Progress::new("read");
    causes(client, queue.as_bytes(), &args.filter(), |count| progress.at(count))
}

/// Prints causes, and if they are those of several queues, how many queues have each.
fn print_causes(
    causes: &[Cause],
    places: Option<&[Vec<(String, u64)>]>,
    args: &DeadArgs,
    output: &Output,
) -> Result<(), Failure> {
    let mut table = Table::new(if places.is_some() { BY_CAUSE_IN_ALL } else { BY_CAUSE });
    let most = usize::try_from(args.most(output)).unwrap_or(usize::MAX);
    for (place, cause) in causes.iter().enumerate().take(most) {
        let places = places.and_then(|places| places.get(place));
        if output.json {
            let mut object = json!({ "count": cause.count, "newest": cause.newest, "oldest": cause.oldest,
                "last-id": cause.id, "cause": cause.text });
            if let (Some(places), Json::Object(object)) = (places, &mut object) {
                let counts = places.iter().map(|(name, count)| (name.clone(), (*count).into())).collect();
                object.insert("queues".to_owned(), Json::Object(counts));
            }
            output.result("", object)?;
            continue;
        }
        let mut row = vec![cause.count.to_string(), output.instant(cause.newest), output.instant(cause.oldest)];
        row.push(places.map_or_else(|| cause.id.clone(), |places| in_words(places)));
        row.push(cause.text.clone());
        table.row(row);
    }
    if !output.json {
        output.table(&table)?;
    }
    if causes.len() > most {
        left_out(args, &format!("{} more errors: -n {} shows all", causes.len() - most, causes.len()), output)?;
    }
    Ok(())
}

/// The queues with the most: `svc:mail 20, svc:sms 3 and 4 more`.
fn in_words(places: &[(String, u64)]) -> String {
    let named: Vec<String> = places.iter().take(NAMED).map(|(name, count)| format!("{name} {count}")).collect();
    let more = places.len().saturating_sub(NAMED);
    named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// The messages that died last.
fn newest(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    let Some((messages, selected)) = read(client, args, args.most(output))? else {
        let of_several =
            if args.queue.as_bytes().contains(&b'*') { "; --by-error counts those of several queues" } else { "" };
        tell(no_such_queue(&args.queue) + of_several);
        return Ok(Outcome::Nothing);
    };
    if output.json {
        messages.iter().try_for_each(|message| {
            let mut object = message.json();
            object.insert("cause".to_owned(), cause_of(message).into());
            output.object(&object)
        })?;
    }
    let mut table = Table::new(if args.letters { LETTERS } else { MESSAGES });
    for message in &messages {
        let died = message.int("died").map_or_else(String::new, |at| output.instant(at));
        let [attempt, reason] = ["attempt", "reason"].map(|name| message.text(name));
        let mut row = vec![shown(message.bytes("id")), died, attempt, reason, error_of(message)];
        row.extend(args.letters.then(|| shown(message.bytes("from"))));
        table.row(row);
    }
    if !output.json {
        output.table(&table)?;
    }
    if selected > messages.len() {
        left_out(args, &format!("{} more: -n {selected} shows all", selected - messages.len()), output)?;
    }
    Ok(Outcome::Done)
}

/// Says what a list leaves out; in a pipe only if nobody asked for so few.
fn left_out(args: &DeadArgs, text: &str, output: &Output) -> Result<(), Failure> {
    if output.is_for_people() && !output.json {
        output.line(text)?;
    } else if args.count.is_none() {
        tell(text);
    }
    Ok(())
}

/// Says on standard error where the dead messages of a queue are that has none.
fn say_where(client: &Client, args: &DeadArgs) -> Result<(), Failure> {
    if let Some(info) = reply::info(client, args.queue.as_bytes())? {
        where_the_dead_are(&args.queue, &info).iter().for_each(tell);
    }
    Ok(())
}

/// The newest messages, and how many there are in all, as far as that is known. `None` if the queue does not exist.
fn read(client: &Client, args: &DeadArgs, most: u32) -> Result<Option<(Vec<Fields>, usize)>, Failure> {
    let filter = args.filter();
    if !filter.has_conditions() {
        let command = cmd("DQ.PEEK").arg(args.queue.as_bytes()).arg("dead").arg("COUNT").arg(most).clone();
        let mut messages = Vec::new();
        for message in reply::list(client.call(&command, Resend::Harmless)?)? {
            messages.extend(Fields::read(message)?);
        }
        let info = reply::info(client, args.queue.as_bytes());
        if messages.is_empty() {
            say_where(client, args)?;
            return Ok(info?.map(|_| (messages, 0)));
        }
        // A user may be allowed only to read the messages.
        let dead = info.ok().flatten().and_then(|info| usize::try_from(info.int("dead")?).ok());
        return Ok(Some((messages, dead.unwrap_or(0))));
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (mut messages, mut selected): (Vec<Fields>, usize) = (Vec::new(), 0);
    let exists = pages(client, args.queue.as_bytes(), &filter, |page| {
        selected += page.len();
        messages.extend(page);
        messages.sort_by_key(|message| Reverse(message.int("died")));
        messages.truncate(most);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(exists.then_some((messages, selected)))
}
