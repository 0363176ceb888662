//! `dqctl dead`.

use super::causes::Causes;
use super::{cause_of, causes, error_of, pages, Among, Cause, Filter};
use crate::advice::{quoted, reaching, tell};
use crate::board::condition::moves_dead;
use crate::cli::DeadArgs;
use crate::daily::several::{named, Named};
use crate::daily::{no_such_queue, queues, where_the_dead_are, NOT_ALL};
use crate::failure::{Failure, Outcome};
use crate::name::{shown, QueueName};
use crate::output::Column::{Id, Name, Number, Text, Word};
use crate::output::{Column, Output, Table};
use crate::progress::Progress;
use crate::reply::{self, Fields};
use dq_client::{cmd, Client, Resend};
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
    let Some(Named { names, missing }) = named(client, &args.queue)? else {
        let Some(causes) = causes_in(client, args, &args.queue)? else {
            no_such_queue(&args.queue);
            return Ok(Outcome::Nothing);
        };
        if let (true, Some(info)) = (causes.is_empty(), queues::read(client, args.queue.as_bytes())?) {
            where_the_dead_are(&args.queue, &info);
            tell_of_letters(client, args);
        }
        print_causes(&causes, None, args, output)?;
        return Ok(Outcome::Done);
    };
    let (mut all, mut denied, mut moving) = (Causes::default(), None, 0_u64);
    for name in &names {
        let info = if args.letters { None } else { queues::read(client, name.as_bytes()).ok().flatten() };
        moving += u64::from(info.is_some_and(|info| moves_dead(&info) && info.int("died").unwrap_or(0) > 0));
        match causes_in(client, args, name) {
            Ok(causes) => causes.into_iter().flatten().for_each(|cause| all.add(name, cause)),
            Err(failure) if failure.is_denied() => denied = Some(failure.of(NOT_ALL)),
            Err(failure) => return Err(failure),
        }
    }
    let (causes, places) = all.sorted();
    print_causes(&causes, Some(&places), args, output)?;
    if moving > 0 {
        let queues = if moving == 1 { "1 queue moves".to_owned() } else { format!("{moving} queues move") };
        say!(
            "dqctl: {queues} dead messages away (--deadforward); those that are in another queue are counted there with \
             --letters"
        );
    }
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
        match named(client, &args.queue)? {
            None => no_such_queue(&args.queue),
            Some(several) if several.names.is_empty() => {}
            Some(_) => say!("dqctl: the dead messages of several queues are counted with --by-error"),
        }
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
        output.line(&reaching(text))?;
    } else if args.count.is_none() {
        tell(text);
    }
    Ok(())
}

/// Says on standard error how the dead messages of other queues are seen and redriven, if the first messages of this one are
/// such.
pub fn where_letters_are(client: &Client, queue: &QueueName) {
    let (filter, mut found) = (Filter { among: Among::Letters, ..Filter::default() }, false);
    let looked = pages(client, queue.as_bytes(), &filter, |page| {
        found = !page.is_empty();
        Ok(ControlFlow::Break(()))
    });
    // A user may be allowed only to read dead messages.
    if let (Ok(true), true) = (looked, found) {
        let name = quoted(&queue.to_string());
        tell(format!(
            "{queue} has messages that died in other queues: dqctl dead {name} --letters lists them, and \
             dqctl redrive {name} --letters sends them back"
        ));
    }
}

/// Unless they are listed.
fn tell_of_letters(client: &Client, args: &DeadArgs) {
    if !args.letters {
        where_letters_are(client, &args.queue);
    }
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
        if messages.is_empty() {
            let info = queues::read(client, args.queue.as_bytes())?;
            if let Some(info) = &info {
                where_the_dead_are(&args.queue, info);
                tell_of_letters(client, args);
            }
            return Ok(info.map(|_| (messages, 0)));
        }
        // A user may be allowed only to read the messages.
        let info = queues::read(client, args.queue.as_bytes()).ok().flatten();
        let dead = info.and_then(|info| usize::try_from(info.int("dead")?).ok());
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
