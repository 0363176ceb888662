//! `dqctl dead`.

use super::{cause_of, causes, error_of, pages, Among, Filter};
use crate::cli::DeadArgs;
use crate::daily::{no_such_queue, queues, where_the_dead_are};
use crate::failure::{Failure, Outcome};
use crate::name::shown;
use crate::output::Column::{Id, Name, Number, Text, Word};
use crate::output::{Column, Output, Table};
use crate::progress::Progress;
use crate::reply::{self, Fields};
use dq_client::{cmd, Client, Resend};
use serde_json::json;
use std::cmp::Reverse;
use std::ops::ControlFlow;

const MESSAGES: &[Column] = &[Id("id"), Word("died"), Number("attempt"), Word("reason"), Text("error")];
/// The same of messages that died in other queues.
const LETTERS: &[Column] = &[Id("id"), Word("died"), Number("attempt"), Word("reason"), Text("error"), Name("from")];
const BY_CAUSE: &[Column] = &[Number("count"), Word("newest"), Word("oldest"), Id("last-id"), Text("error")];

pub fn dead(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.by_error {
        by_error(client, args, output)
    } else {
        newest(client, args, output)
    }
}

/// The errors, the most frequent first.
fn by_error(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    let mut progress = Progress::new("read");
    let found = causes(client, args.queue.as_bytes(), &args.filter(), |count| progress.at(count))?;
    drop(progress);
    let Some(causes) = found else {
        no_such_queue(&args.queue);
        return Ok(Outcome::Nothing);
    };
    if let (true, Some(info)) = (causes.is_empty(), queues::read(client, args.queue.as_bytes())?) {
        where_the_dead_are(&args.queue, &info);
        where_letters_are(client, args);
    }
    let mut table = Table::new(BY_CAUSE);
    let most = usize::try_from(args.most(output)).unwrap_or(usize::MAX);
    for cause in causes.iter().take(most) {
        if output.json {
            let object = json!({ "count": cause.count, "newest": cause.newest, "oldest": cause.oldest,
                "last-id": cause.id, "cause": cause.text });
            output.result("", object)?;
        } else {
            let (newest, oldest) = (output.instant(cause.newest), output.instant(cause.oldest));
            table.row(vec![cause.count.to_string(), newest, oldest, cause.id.clone(), cause.text.clone()]);
        }
    }
    if !output.json {
        output.table(&table)?;
    }
    if causes.len() > most {
        left_out(args, &format!("{} more errors: -n {} shows all", causes.len() - most, causes.len()), output)?;
    }
    Ok(Outcome::Done)
}

/// The messages that died last.
fn newest(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    let Some((messages, selected)) = read(client, args, args.most(output))? else {
        no_such_queue(&args.queue);
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
        eprintln!("dqctl: {text}");
    }
    Ok(())
}

/// Says on standard error how the dead messages of other queues are seen, if the first messages of this one are such.
fn where_letters_are(client: &Client, args: &DeadArgs) {
    let (filter, mut found) = (Filter { among: Among::Letters, ..Filter::default() }, false);
    let looked = pages(client, args.queue.as_bytes(), &filter, |page| {
        found = !page.is_empty();
        Ok(ControlFlow::Break(()))
    });
    // A user may be allowed only to read dead messages.
    if let (Ok(true), true, false) = (looked, found, args.letters) {
        eprintln!("dqctl: {} has messages that died in other queues: dqctl dead {0} --letters lists them", args.queue);
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
                where_letters_are(client, args);
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
