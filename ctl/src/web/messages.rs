//! Lists of messages: those of a state, filtered and by cause; schedules; and those of an id in all queues.

use super::button::{button, button_of_selected, Act, Field, Opt};
use super::html::{address, contains, element, named_link, queue_url, time};
use super::overview::select;
use super::{App, Params, View};
use crate::board::{cause_of, error_of, message::as_text, pages, rule, scan, since, Among, Filter, Status};
use crate::output::cut;
use crate::server::{Failure, Message, QueueInfo};
use crate::text::{counted, messages, parse_span, separated, shown, visible};
use dq_client::{cmd, Error, State};
use maud::{html, Markup};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How many messages are shown at first, how many more on a click, and how many causes and former queues.
const STEP: usize = 50;
const LISTED: usize = 50;
/// How long one request reads, and about how many bytes of payloads.
const READ: Duration = Duration::from_secs(4);
const BYTES: u64 = 8 * 1024 * 1024;
/// The most bytes of a payload that are kept, and that are shown.
const BEGINNING: usize = 240;
/// The fields that a text is looked for in.
const FIELDS: [(&str, &str); 5] =
    [("error", "Error"), ("payload", "Payload"), ("id", "Id"), ("group", "Group"), ("reason", "Reason")];

/// The field that is searched unless another one is chosen: messages have errors once they have died.
fn field_of(tab: &str, params: &Params) -> String {
    match params.text("field") {
        field if !field.is_empty() => field,
        _ if matches!(tab, "dead" | "letters") => "error".to_owned(),
        _ => "payload".to_owned(),
    }
}

/// Which messages of a tab are shown.
struct Chosen {
    /// As the command line takes them.
    conditions: Vec<String>,
    older: String,
    filter: Filter,
    consumer: Option<Vec<u8>>,
    count: usize,
}

impl Chosen {
    fn read(tab: &str, params: &Params) -> Result<Chosen, Failure> {
        let mut conditions = Vec::new();
        let (field, text) = (field_of(tab, params), params.text("text"));
        if !text.is_empty() {
            conditions.push(format!("{field}~{text}"));
        }
        for name in ["cause", "from", "group"] {
            let value = params.bytes(name).map(shown);
            conditions.extend(value.map(|value| format!("{name}={value}")));
        }
        let older = params.text("older");
        let age = if older.is_empty() { None } else { Some(parse_span(&older).map_err(Failure::usage)?) };
        let among = match tab {
            "letters" => Among::Letters,
            state => Among::State(state.parse().map_err(|_| Failure::usage("there is no such state"))?),
        };
        let parsed = conditions.iter().map(|condition| condition.parse()).collect::<Result<_, &str>>();
        let conditions_of = parsed.map_err(Failure::usage)?;
        Ok(Chosen {
            conditions,
            older,
            filter: Filter { among, conditions: conditions_of, older: age, oldest: None },
            consumer: params.bytes("consumer").map(<[u8]>::to_vec),
            count: params.text("count").parse().unwrap_or(STEP),
        })
    }

    fn is_filtered(&self) -> bool {
        !self.conditions.is_empty() || !self.older.is_empty() || self.consumer.is_some()
    }

    /// The options of an act on all messages that are chosen.
    fn options(&self, act: Act, queue: &[u8], tab: &str) -> Vec<Field> {
        let is_letters = tab == "letters";
        let mut options = vec![Opt::Queue.is(shown(queue)), Opt::Where.is(self.conditions.clone())];
        if !self.older.is_empty() {
            options.push(Opt::Older.is(&*self.older));
        }
        if is_letters {
            options.push(Opt::Letters.is(true));
        }
        if act == Act::Purge {
            options.push(Opt::States.is(vec![tab]));
        }
        if matches!(act, Act::Cancel | Act::Bury) && !is_letters {
            options.push(Opt::State.is(tab));
        }
        options
    }
}

/// What was found.
#[derive(Default)]
struct Selection {
    messages: Vec<Message>,
    number: u64,
    /// How many there are of each cause, and from each former queue.
    causes: HashMap<String, u64>,
    origins: HashMap<Vec<u8>, u64>,
    /// Whether the time was not enough to look at all.
    is_partial: bool,
}

/// The messages of a state, or letters.
pub fn list(app: &App, queue: &[u8], info: &QueueInfo, tab: &str, params: &Params) -> Result<Markup, Failure> {
    let chosen = Chosen::read(tab, params)?;
    let has_causes = matches!(tab, "dead" | "letters");
    let found = match has_causes || chosen.is_filtered() {
        true => selected(app, queue, &chosen)?,
        // The first of the state in the order of the server.
        false => Selection {
            messages: scan::first(&app.client, queue, tab, info, (chosen.count as u64, BYTES))?,
            number: info.fields.number(tab),
            ..Selection::default()
        },
    };
    Ok(html! {
        form.filters id="filters" data-view="queue" {
            label { "In " (select("field", &field_of(tab, params), FIELDS.to_vec())) }
            label { "Text" input type="search" name="text" value=(params.text("text")) placeholder="Contains"; }
            label {
                "For at least"
                input type="search" name="older" value=(params.text("older")) placeholder="30m, 2h, 7d";
            }
        }
        @for (name, words) in [("group", "group"), ("consumer", "consumer")] {
            @if let Some(value) = params.bytes(name) {
                p {
                    "Only messages of the " (words) " " (shown(value)) ". "
                    a href=(address("queue", &params.with(&[(name, b"")]))) { "All" }
                }
            }
        }
        @if has_causes { (causes(&found, params)) }
        @if app.allow_writes { (bulk(queue, tab, &chosen, &found)) }
        p.dim role="status" {
            (messages(found.number)) @if found.is_partial { " at least: not all were read in time" }
        }
        ol.messages id="messages" { @for message in &found.messages { (item(queue, message, tab, app.allow_writes)) } }
        @if found.messages.is_empty() {
            p.empty { "No message is here" @if chosen.is_filtered() { " that these conditions select" } "." }
        }
        @if found.number > found.messages.len() as u64 && chosen.count < 10 * STEP {
            @let count = (chosen.count + STEP).to_string();
            a.more href=(address("queue", &params.with(&[("count", count.as_bytes())]))) { "Show more" }
        }
    })
}

/// The first of the messages that are chosen, for which all have to be read. Causes are counted whichever is chosen,
/// and former queues likewise, so that another one can be.
fn selected(app: &App, queue: &[u8], chosen: &Chosen) -> Result<Selection, Failure> {
    let (mut found, began) = (Selection::default(), Instant::now());
    // All conditions, but for those that begin so.
    let meets = |message: &Message, but: Option<&str>| {
        let mut conditions = chosen.conditions.iter().zip(&chosen.filter.conditions);
        conditions.all(|(text, one)| but.is_some_and(|but| text.starts_with(but)) || one.holds(message))
    };
    let all = Filter { conditions: Vec::new(), ..chosen.filter.clone() };
    let exists = pages(&app.client, queue, &all, |page| {
        for mut message in page {
            if message.died().is_some() || message.origin().is_some() {
                if meets(&message, Some("cause=")) {
                    *found.causes.entry(cause_of(&message)).or_default() += 1;
                }
                if let Some(origin) = message.origin().filter(|_| meets(&message, Some("from="))) {
                    *found.origins.entry(origin.to_vec()).or_default() += 1;
                }
            }
            let is_held = chosen.consumer.as_ref().is_none_or(|name| message.consumer() == name.as_slice());
            if is_held && meets(&message, None) {
                found.number += 1;
                message.shorten_payload(BEGINNING);
                found.messages.push(message);
            }
        }
        found.messages.sort_by_key(|message| place(chosen.filter.among, message));
        found.messages.truncate(chosen.count);
        found.is_partial = began.elapsed() >= READ;
        Ok(if found.is_partial { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if exists {
        Ok(found)
    } else {
        Err(Error::NoQueue(String::new()).into())
    }
}

/// Dead and done messages come newest first, others in the order in which they leave their state.
fn place(among: Among, message: &Message) -> [i64; 3] {
    let [due, deadline, created] = [message.due(), message.deadline(), message.created()].map(|at| at.unwrap_or(0));
    match among {
        Among::State(State::Ready) => [-message.priority(), due, created],
        Among::State(State::Delayed) => [due, -message.priority(), created],
        Among::State(State::Inflight) => [deadline, created, 0],
        Among::State(_) | Among::Letters => [-since(message).unwrap_or(0), -created, 0],
    }
}

/// The causes and former queues of dead messages, each a button that sets or clears a filter.
fn causes(found: &Selection, params: &Params) -> Markup {
    let mut causes: Vec<(&[u8], u64)> = found.causes.iter().map(|(cause, count)| (cause.as_bytes(), *count)).collect();
    causes.sort_by_key(|(cause, count)| (Reverse(*count), *cause));
    let mut origins: Vec<(&[u8], u64)> = found.origins.iter().map(|(from, count)| (from.as_slice(), *count)).collect();
    origins.sort_by_key(|(from, count)| (Reverse(*count), *from));
    html! {
        @for (name, counted) in [("cause", causes), ("from", origins)] {
            ul.causes aria-label=(name) {
                @for (value, count) in counted.iter().take(LISTED) {
                    @let is_chosen = params.bytes(name) == Some(value);
                    @let next: &[u8] = if is_chosen { b"" } else { value };
                    @let href = address("queue", &params.with(&[(name, next)]));
                    li { a href=(href) aria-current=[is_chosen.then_some("true")] {
                        b { (separated(count)) } " " span { (visible(&String::from_utf8_lossy(value))) }
                    } }
                }
            }
        }
    }
}

/// The buttons for the selected messages, or for all that the filter chooses.
fn bulk(queue: &[u8], tab: &str, chosen: &Chosen, found: &Selection) -> Markup {
    let acts: &[(Act, &str)] = match tab {
        "dead" => &[(Act::Redrive, "Redrive"), (Act::Cancel, "Delete")],
        "letters" => &[(Act::Redrive, "Send back"), (Act::Cancel, "Delete")],
        "delayed" => &[(Act::Promote, "Run now"), (Act::Bury, "Bury"), (Act::Cancel, "Cancel")],
        "inflight" => &[(Act::Nack, "Give back")],
        "done" => &[(Act::Cancel, "Forget")],
        _ => &[(Act::Bury, "Bury"), (Act::Cancel, "Cancel")],
    };
    let field = |act: Act| match act {
        Act::Redrive => Some(Opt::In.empty()),
        Act::Bury | Act::Nack => Some(Opt::Error.empty()),
        Act::Alter | Act::Cancel | Act::Delete | Act::Pause | Act::Promote | Act::Purge | Act::Push => None,
        Act::Release | Act::Reschedule | Act::Resume | Act::Schedule => None,
    };
    // A filter by consumer is none of the command line.
    let has_all = found.number > 0 && chosen.consumer.is_none();
    html! {
        div.bulk {
            label { input type="checkbox" data-all="ids"; " All shown" }
            @for (act, words) in acts {
                @let is_letter = (tab == "letters" && *act == Act::Redrive).then_some(true);
                @let given = [Opt::Queue.is(shown(queue)), Opt::Letters.is(is_letter)];
                (button_of_selected(words, *act, &given, field(*act).as_slice()))
            }
            @for (act, words) in acts {
                @if let Some(of_all) = act_on_all(*act, chosen.is_filtered() || tab == "letters").filter(|_| has_all) {
                    @let given = chosen.options(of_all, queue, tab);
                    // The button has the verb of the question.
                    @let words = if of_all == Act::Purge { "Purge" } else { words };
                    (button(&format!("{words} all"), of_all, &given, field(of_all).as_slice()))
                }
            }
        }
    }
}

/// The act that does the same with all messages of a state, or with those that are chosen.
fn act_on_all(act: Act, is_chosen: bool) -> Option<Act> {
    match act {
        Act::Redrive => Some(act),
        Act::Cancel => Some(if is_chosen { act } else { Act::Purge }),
        Act::Bury => Some(act).filter(|_| is_chosen),
        Act::Promote => Some(act).filter(|_| !is_chosen),
        Act::Alter | Act::Delete | Act::Nack | Act::Pause | Act::Purge | Act::Push => None,
        Act::Release | Act::Reschedule | Act::Resume | Act::Schedule => None,
    }
}

/// A message in a list.
fn item(queue: &[u8], message: &Message, tab: &str, is_selected: bool) -> Markup {
    let id = shown(message.id());
    // The receipt names the delivery that was looked at: a later one is left alone.
    let selected = if tab == "inflight" { shown(message.receipt()) } else { id.clone() };
    let payload = message.get(if tab == "done" { "result" } else { "payload" }).and_then(as_text).unwrap_or_default();
    let error = error_of(message);
    html! {
        li id=(element("message", &[message.id(), message.receipt()])) {
            @if is_selected { input type="checkbox" name="ids" value=(selected) aria-label={ "Select " (id) }; }
            div {
                p.line-one {
                    (named_link(&address("message", &[("queue", queue), ("id", message.id())]), &id))
                    span.dim { (when(message)) }
                }
                @if !error.is_empty() { p.error { (cut(&visible(&error), BEGINNING)) } }
                p.snippet { (cut(&visible(&payload), BEGINNING)) }
                p.dim.facts { (facts(message)) }
            }
        }
    }
}

/// The time that matters for a message in its state.
pub fn when(message: &Message) -> Markup {
    let (words, at) = match message.state() {
        _ if message.died().is_some() => ("died ", message.died()),
        Some(State::Inflight) => ("lease expires ", message.deadline()),
        Some(State::Done) => ("done ", message.done()),
        Some(_) | None => ("due ", message.due()),
    };
    html! { (words) (time(at)) }
}

fn facts(message: &Message) -> String {
    let attempts = message.number("attempt");
    let named = |name: &str| {
        Some(message.bytes(name)).filter(|value| !value.is_empty()).map(|value| format!("{name} {}", shown(value)))
    };
    let all = [
        message.recurs().then(|| rule(message)),
        (attempts > 0).then(|| counted(attempts, "attempt", "attempts")),
        named("reason"),
        named("from"),
        Some(message.priority()).filter(|priority| *priority != 0).map(|priority| format!("priority {priority}")),
        named("group"),
        named("consumer"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The recurring messages of a queue, the most overdue first.
pub fn schedules(app: &App, queue: &[u8], info: &QueueInfo) -> Result<Markup, Failure> {
    let (mut all, began, mut is_partial) = (Vec::new(), Instant::now(), false);
    if info.schedules > 0 {
        scan::pages(&app.client, queue, info, &["RECURRING"], |page| {
            all.extend(page);
            is_partial = began.elapsed() >= READ;
            Ok(if is_partial { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
    }
    all.sort_by_key(|message| message.due());
    let name = shown(queue);
    Ok(html! {
        @if app.allow_writes {
            @let fields = [Opt::Id, Opt::Payload, Opt::Every, Opt::Cron, Opt::Tz].map(Opt::empty);
            (button("Declare a schedule", Act::Schedule, &[Opt::Queue.is(&*name)], &fields))
        }
        ol.messages id="messages" {
            @for message in all.iter().take(10 * STEP) {
                @let this = [Opt::Queue.is(&*name), Opt::Ids.is(vec![shown(message.id())])];
                (item(queue, message, "delayed", false))
                @if app.allow_writes {
                    li.buttons id=(element("acts", &[message.id()])) {
                        @if message.state() == Some(State::Delayed) { (button("Run now", Act::Promote, &this, &[])) }
                        (button("End", Act::Cancel, &this, &[]))
                    }
                }
            }
        }
        @if all.is_empty() { p.empty { "No message of this queue recurs." } }
        @if is_partial { p.dim { "There may be more: not all messages were read in time." } }
    })
}

/// The messages with this id in all queues, and the queues whose names contain it.
pub fn find(app: &App, params: &Params) -> Result<View, Failure> {
    // Of a receipt, the id. An id has no #.
    let wanted = params.needed("id")?;
    let id = wanted.split(|byte| *byte == b'#').next().unwrap_or_default();
    app.board.wait()?;
    let (mut found, mut looked, began) = (Vec::new(), 0, Instant::now());
    let names: Vec<Vec<u8>> = app
        .board
        .rows(|rows| rows.iter().filter(|(_, row)| row.status != Status::Lost).map(|(name, _)| name.clone()).collect());
    for name in &names {
        if began.elapsed() >= READ {
            break;
        }
        looked += 1;
        match app.client.call(cmd("DQ.GET").arg(name).arg(id), dq_client::Resend::Harmless) {
            Ok(reply) => found.extend(Message::read(reply)?.map(|message| (name, message))),
            Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let queues = names.iter().filter(|name| contains(name, wanted)).take(LISTED);
    let body = html! {
        nav.crumbs { a href="#/" { "Queues" } }
        h1 { "Search: " (shown(wanted)) }
        p.dim role="status" { "Looked for this id in " (looked) " of " (names.len()) " queues." }
        ol.messages id="messages" {
            @for (queue, message) in &found {
                @let href = address("message", &[("queue", queue), ("id", id)]);
                li { div { p.line-one {
                    (named_link(&href, &format!("{} / {}", shown(queue), shown(id))))
                    span.dim { (message.text("state")) }
                } } }
            }
            @for queue in queues {
                li { div { p.line-one { (named_link(&queue_url(queue), &shown(queue))) span.dim { "queue" } } } }
            }
        }
        @if found.is_empty() {
            p.empty { "No message has this id; dqctl find --prefix looks for the beginnings of ids." }
        }
    };
    Ok(View { title: "Search".to_owned(), body })
}
