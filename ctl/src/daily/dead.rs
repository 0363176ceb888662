//! `dqctl dead`.

use super::look::{first, selected};
use super::NOT_ALL;
use crate::acts::where_the_dead_are;
use crate::board::{message, names, Cause, Causes};
use crate::cli::DeadArgs;
use crate::output::Column::{Id, Number, Text, Word};
use crate::output::{Column, Output};
use crate::server::{info, print_note, reply, Failure, Outcome};
use dq_client::{blocking::Client, State};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;

const BY_CAUSE: &[Column] = &[Number("count"), Word("newest"), Word("oldest"), Id("last-id"), Text("error")];
/// The same of several queues.
const BY_CAUSE_IN_ALL: &[Column] = &[Number("count"), Word("newest"), Word("oldest"), Text("queues"), Text("error")];
/// How many of these are named.
const NAMED: usize = 2;

pub fn dead(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    if args.by_error {
        return by_error(client, args, output);
    }
    // The messages that died last.
    let (filter, most) = (args.filter(), args.most(output));
    let (messages, number) = if filter.has_conditions() {
        selected(client, &args.queue, &filter, most, |_| true)?.unwrap_or_default()
    } else {
        let messages = first(client, &args.queue, State::Dead, most, None)?;
        // A user may be allowed only to read the messages.
        let info = info::read(client, args.queue.as_bytes()).ok().flatten().unwrap_or_default();
        let number = usize::try_from(info.dead).unwrap_or(0);
        (messages, number)
    };
    if messages.is_empty() {
        let of_several = "; --by-error counts those of several queues";
        let more = if args.queue.as_bytes().contains(&b'*') { of_several } else { "" };
        let info = info::read(client, args.queue.as_bytes())?
            .ok_or_else(|| Failure::nothing(reply::no_such_queue(&args.queue) + more))?;
        where_the_dead_are(&args.queue, &info).iter().for_each(print_note);
    }
    message::list(&messages, Some(State::Dead), output)?;
    if number > messages.len() {
        left_out(args, &format!("{} more: -n {number} shows all", number - messages.len()), output)?;
    }
    Ok(Outcome::Done)
}

/// The errors, the most frequent first.
fn by_error(client: &Client, args: &DeadArgs, output: &Output) -> Result<Outcome, Failure> {
    let (typed, filter, mut all, mut denied) = (&args.queue, args.filter(), Causes::default(), None);
    if all.add(client, typed.as_bytes(), &filter)? {
        let causes = all.sorted();
        if causes.is_empty() {
            let info = info::read(client, typed.as_bytes())?;
            info.and_then(|info| where_the_dead_are(typed, &info)).iter().for_each(print_note);
        }
        print_causes(&causes, false, args, output)?;
        return Ok(Outcome::Done);
    }
    let pattern = std::str::from_utf8(typed.as_bytes()).ok().filter(|text| text.contains(['*', '?', '[']));
    let pattern = pattern.ok_or_else(|| Failure::nothing(reply::no_such_queue(typed)))?;
    let (names, missing) = names::find_reachable(client, Some(pattern))?;
    for name in &names {
        match all.add(client, name, &filter) {
            Ok(_) => {}
            Err(failure) if failure.is_denied() => denied = Some(failure.in_context(NOT_ALL)),
            Err(failure) => return Err(failure),
        }
    }
    print_causes(&all.sorted(), true, args, output)?;
    missing.or(denied).map_or(Ok(Outcome::done_if(!names.is_empty())), Err)
}

/// Prints causes, and if they are those of several queues, how many queues have each.
fn print_causes(
    causes: &[(String, Cause)],
    is_of_several: bool,
    args: &DeadArgs,
    output: &Output,
) -> Result<(), Failure> {
    let most = usize::try_from(args.most(output)).unwrap_or(usize::MAX);
    let object = |(text, cause): &(String, Cause)| {
        let numbers = [("count", json!(cause.count)), ("newest", json!(cause.newest)), ("oldest", json!(cause.oldest))];
        let texts = [("last-id", json!(cause.id)), ("cause", json!(text))];
        let queues = is_of_several.then(|| ("queues", json!(cause.queues)));
        numbers.into_iter().chain(texts).chain(queues).collect::<BTreeMap<_, _>>()
    };
    let row = |(text, cause): &(String, Cause)| {
        let place = if is_of_several { in_words(&cause.queues) } else { cause.id.clone() };
        let [newest, oldest] = [cause.newest, cause.oldest].map(|at| output.instant(at));
        vec![cause.count.to_string(), newest, oldest, place, text.clone()]
    };
    let first = causes.get(..most).unwrap_or(causes);
    output.list(if is_of_several { BY_CAUSE_IN_ALL } else { BY_CAUSE }, first, object, row)?;
    if causes.len() > most {
        left_out(args, &format!("{} more errors: -n {} shows all", causes.len() - most, causes.len()), output)?;
    }
    Ok(())
}

/// The queues with the most: `svc:mail 20, svc:sms 3 and 4 more`.
fn in_words(queues: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<_> = queues.iter().collect();
    sorted.sort_by_key(|(_, count)| Reverse(**count));
    let named: Vec<String> = sorted.iter().take(NAMED).map(|(name, count)| format!("{name} {count}")).collect();
    let more = sorted.len().saturating_sub(NAMED);
    named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// Reports how much a list leaves out; in a pipe only if no limit was asked for.
fn left_out(args: &DeadArgs, text: &str, output: &Output) -> Result<(), Failure> {
    if output.is_for_people && !output.json {
        output.line(text)?;
    } else if args.count.is_none() {
        print_note(text);
    }
    Ok(())
}
