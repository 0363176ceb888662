//! `dqctl get`, `peek` and `find`.

use super::exists;
use crate::acts::no_such_id;
use crate::board::dead::{error_of, pages, Among};
use crate::board::message;
use crate::board::{names, scan};
use crate::cli::{FindArgs, GetArgs, PeekArgs};
use crate::output::progress::Progress;
use crate::output::Column::{Id, Name, Number, Text, Word};
use crate::output::{Column, Output, Table};
use crate::server::advice::tell;
use crate::server::failure::{Failure, Outcome};
use crate::server::reply::{self, Fields};
use crate::text::name::{put, shown, MessageId};
use crate::text::time::now_ms;
use dq_client::blocking::Client;
use dq_client::{cmd, Error, Resend, State};
use std::ops::ControlFlow;

const FOUND: &[Column] = &[
    Name("queue"),
    Id("id"),
    Word("state"),
    Word("due"),
    Word("died"),
    Number("attempt"),
    Text("payload"),
    Text("error"),
];

pub fn get(client: &Client, args: &GetArgs, output: &Output) -> Result<Outcome, Failure> {
    let id = args.id.id();
    let Some(mut message) = reply::message(client, args.queue.as_bytes(), id.as_bytes())? else {
        no_such_id(client, &args.queue, &id).iter().for_each(tell);
        return Ok(Outcome::Nothing);
    };
    if args.no_payload {
        message.0.retain(|(name, _)| name != "payload");
    }
    if args.payload {
        output.raw(message.bytes("payload"))?;
    } else {
        message::details(&message, output)?;
    }
    Ok(Outcome::Done)
}

pub fn peek(client: &Client, args: &PeekArgs, output: &Output) -> Result<Outcome, Failure> {
    let states = match (&args.consumer, args.state) {
        (None, state) => state.map_or_else(|| State::ALL.to_vec(), |state| vec![state]),
        (Some(_), None | Some(State::Inflight)) => vec![State::Inflight],
        (Some(_), Some(_)) => {
            return Err(Failure::usage("a consumer holds only messages in flight: leave the state out"))
        }
    };
    let mut messages = Vec::new();
    for state in &states {
        messages.extend(match args.reads_all() {
            true => selected(client, args, *state)?,
            false => first(client, args, *state)?,
        });
    }
    if messages.is_empty() && !exists(client, &args.queue)? {
        return Ok(Outcome::Nothing);
    }
    if args.no_payload {
        messages.iter_mut().for_each(|message| message.0.retain(|(name, _)| name != "payload"));
    }
    let asked = states.first().copied().filter(|_| states.len() == 1);
    message::list(&messages, asked, output)?;
    Ok(Outcome::Done)
}

/// The first messages of a state, in the order of `DQ.PEEK`.
fn first(client: &Client, args: &PeekArgs, state: State) -> Result<Vec<Fields>, Failure> {
    let mut command = cmd("DQ.PEEK");
    command.arg(args.queue.as_bytes()).arg(state.as_str()).arg("COUNT").arg(args.count);
    if let Some(group) = &args.group {
        command.arg("GROUP").arg(group);
    }
    let messages = reply::list(client.call(&command, Resend::Harmless)?)?;
    messages.into_iter().filter_map(|message| Fields::read(message).transpose()).collect()
}

/// The first messages of a state that conditions select, for which all of that state are read.
fn selected(client: &Client, args: &PeekArgs, state: State) -> Result<Vec<Fields>, Failure> {
    let filter = args.select.filter(Among::State(state), None);
    let is = |message: &Fields, name: &str, wanted: &Option<String>| {
        wanted.as_ref().is_none_or(|wanted| message.text(name) == *wanted)
    };
    // The newest of the dead and done are the first; deliveries of one instant are in their order.
    let place = |message: &Fields| {
        let delivery = message.text("receipt").rsplit_once('#').and_then(|(_, number)| number.parse::<i64>().ok());
        match state {
            State::Inflight => (message.int("deadline"), delivery),
            State::Dead => (message.int("died").map(i64::wrapping_neg), None),
            State::Done => (message.int("done").map(i64::wrapping_neg), None),
            _ => (message.int("due"), None),
        }
    };
    let (mut messages, mut progress) = (Vec::<Fields>::new(), Progress::new("selected"));
    pages(client, args.queue.as_bytes(), &filter, |page| {
        let of_both = |message: &Fields| is(message, "group", &args.group) && is(message, "consumer", &args.consumer);
        messages.extend(page.into_iter().filter(of_both));
        messages.sort_by_key(place);
        messages.truncate(usize::try_from(args.count).unwrap_or(usize::MAX));
        progress.at(messages.len() as u64);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(messages)
}

/// Looks for messages in all queues: for an id, for its beginning, or for what conditions select.
pub fn find(client: &Client, args: &FindArgs, output: &Output) -> Result<Outcome, Failure> {
    let id = args.id.as_ref().map(MessageId::id);
    let filter = args.select.filter(Among::default(), None);
    let (mut table, mut outcome) = (Table::new(FOUND), Outcome::Nothing);
    let (queues, mut unread) = names::find_reachable(client, args.pattern.as_deref())?;
    for queue in queues {
        let found = match &id {
            Some(id) if !args.prefix => of_id(client, &queue, id.as_bytes()),
            Some(id) => all(client, &queue, |message| message.bytes("id").starts_with(id.as_bytes())),
            None => all(client, &queue, |message| filter.selects(message, now_ms())),
        };
        let found = match found {
            Err(failure) if failure.is_denied() => {
                unread = Some(failure);
                continue;
            }
            found => found?,
        };
        for message in found {
            outcome = Outcome::Done;
            if output.json {
                let mut object = message.json();
                put(&mut object, "queue", &queue);
                output.object(&object)?;
                continue;
            }
            let [due, died] =
                ["due", "died"].map(|name| message.int(name).map_or_else(String::new, |at| output.instant(at)));
            let due = if died.is_empty() || !output.is_for_people() { due } else { String::new() };
            let [id, state, attempt, payload] =
                ["id", "state", "attempt", "payload"].map(|name| message::field(&message, name, output));
            table.row(vec![shown(&queue), id, state, due, died, attempt, payload, error_of(&message)]);
        }
    }
    match (outcome, unread) {
        // It may be where nobody could look.
        (Outcome::Nothing, Some(failure)) => return Err(failure),
        (Outcome::Done, Some(failure)) => say!("dqctl: not all queues could be read: {failure}"),
        (Outcome::Nothing | Outcome::Done, None) => {}
    }
    match (outcome, id) {
        (Outcome::Nothing, Some(id)) => say!("dqctl: no queue has a message {id}"),
        (Outcome::Nothing, None) => say!("dqctl: no queue has a message{filter}"),
        (Outcome::Done, _) if !output.json => output.table(&table)?,
        (Outcome::Done, _) => {}
    }
    Ok(outcome)
}

fn of_id(client: &Client, queue: &[u8], id: &[u8]) -> Result<Vec<Fields>, Failure> {
    match client.call(cmd("DQ.GET").arg(queue).arg(id), Resend::Harmless) {
        // It was replaced since it was found.
        Err(Error::WrongType(_)) => Ok(Vec::new()),
        reply => Ok(Fields::read(reply?)?.into_iter().collect()),
    }
}

/// The messages that are meant, in the order of their ids.
fn all(client: &Client, queue: &[u8], is_meant: impl Fn(&Fields) -> bool) -> Result<Vec<Fields>, Failure> {
    let mut found = Vec::new();
    let Some(info) = reply::info(client, queue)? else { return Ok(found) };
    scan::pages(client, queue, &info, &[], |page| {
        found.extend(page.into_iter().filter(|message| is_meant(message)));
        Ok(ControlFlow::Continue(()))
    })?;
    found.sort_by(|a, b| a.bytes("id").cmp(b.bytes("id")));
    Ok(found)
}
