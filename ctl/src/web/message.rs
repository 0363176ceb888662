//! One message with all its fields.

use super::button::{button, Act, Field, Opt};
use super::html::{address, pairs, queue_url};
use super::messages::when;
use super::{App, Params, View};
use crate::board::{error_of, is_letter, shown_fields};
use crate::http::Response;
use crate::output::payload as shown_lines;
use crate::server::{Failure, Message};
use crate::text::shown;
use dq_client::{State, Value};
use maud::{html, Markup};

/// A larger payload is not edited in a browser, in bytes.
const EDITED: usize = 256 * 1024;
/// How wide a dump of bytes may be.
const WIDTH: usize = 4_000;

pub fn message(app: &App, params: &Params) -> Result<View, Failure> {
    let (queue, id) = (params.needed("queue")?, params.needed("id")?);
    let found = Message::get(&app.client, queue, id)?;
    let body = html! {
        nav.crumbs { a href="#/" { "Queues" } " / " a href=(queue_url(queue)) { (shown(queue)) } }
        div.head {
            h1 { (shown(id)) }
            @if let Some(message) = found.as_ref().filter(|_| app.allow_writes) { (acts(queue, id, message)) }
        }
        @match &found {
            Some(message) => (fields(queue, id, message)),
            None => p.empty {
                "The queue has no message of this id now: it was completed or removed, or never pushed, or it died and "
                "was moved to another queue."
            },
        }
    };
    Ok(View { title: shown(id), body })
}

fn fields(queue: &[u8], id: &[u8], message: &Message) -> Markup {
    let mut all = shown_fields(message);
    all.retain(|(name, _)| !matches!(name.as_str(), "payload" | "result" | "id"));
    let error = error_of(message);
    html! {
        p.condition { (message.text("state")) " · " (when(message)) }
        @if !error.is_empty() { section.trouble { h2 { "Error" } pre { (error) } } }
        @for (name, title) in [("result", "Result"), ("payload", "Payload")] {
            @if let Some(Value::BulkString(bytes)) = message.get(name) {
                section.payload {
                    h2 { (title) }
                    // What the browser saves is asked for with the token.
                    @let of_field = [("queue", queue), ("id", id), ("field", name.as_bytes())];
                    button type="button" data-save=(address("payload", &of_field)) { "Download" }
                    pre { (shown_lines(bytes, WIDTH).join("\n")) }
                }
            }
        }
        (pairs(&all))
        @for (field, tab) in [("group", message.text("state")), ("consumer", "inflight".to_owned())] {
            @if !message.bytes(field).is_empty() {
                @let others = [("queue", queue), ("tab", tab.as_bytes()), (field, message.bytes(field))];
                p {
                    a href=(address("queue", &others)) { "Messages of the " (field) " " (shown(message.bytes(field))) }
                }
            }
        }
    }
}

fn acts(queue: &[u8], id: &[u8], message: &Message) -> Markup {
    let (queue, name) = (Opt::Queue.is(shown(queue)), shown(id));
    let state = message.state();
    let waits = matches!(state, Some(State::Ready | State::Delayed));
    let payload = std::str::from_utf8(message.payload()).ok().filter(|payload| payload.len() <= EDITED);
    let removal = match state {
        Some(State::Dead) => "Delete",
        Some(State::Done) => "Forget",
        Some(_) | None if message.recurs() => "End the schedule",
        Some(_) | None => "Cancel",
    };
    let this = [queue.clone(), Opt::Ids.is(vec![name.clone()])];
    html! {
        div.buttons {
            @if state == Some(State::Dead) { (button("Redrive", Act::Redrive, &this, &[Opt::In.empty()])) }
            @if is_letter(message) && waits {
                @let [queue, ids] = this.clone();
                (button("Send back", Act::Redrive, &[queue, ids, Opt::Letters.is(true)], &[Opt::In.empty()]))
            }
            @if state == Some(State::Delayed) { (button("Run now", Act::Promote, &this, &[])) }
            @if waits {
                @let fields = [Opt::In, Opt::At, Opt::Priority].map(Opt::empty);
                (button("Reschedule", Act::Reschedule, &[queue.clone(), Opt::Id.is(name)], &fields))
            }
            @if state == Some(State::Inflight) {
                // The receipt names the delivery that was looked at: a later one is left alone.
                @let receipt = Opt::Ids.is(vec![shown(message.receipt())]);
                (button("Give back", Act::Nack, &[queue.clone(), receipt], &[Opt::In, Opt::Error].map(Opt::empty)))
            }
            @if let Some(payload) = payload.filter(|_| !message.recurs()) {
                (button("Edit and push again", Act::Push, &[queue], &again(id, message, payload)))
            }
            @if waits || state == Some(State::Inflight) { (button("Bury", Act::Bury, &this, &[Opt::Error.empty()])) }
            (button(removal, Act::Cancel, &this, &[]))
        }
    }
}

/// What a copy of a message begins with. One that is dead is replaced by its copy, under its id.
fn again(id: &[u8], message: &Message, payload: &str) -> Vec<Field> {
    let mut fields = vec![
        Opt::Payload.is(payload),
        Opt::In.empty(),
        Opt::Priority.is(message.text("priority")),
        Opt::Group.is(message.text("group")),
    ];
    if message.state() == Some(State::Dead) {
        fields.extend([Opt::Id.is(shown(id)), Opt::Replace.is(true)]);
    }
    if message.get("headers").is_some() {
        let pair = |(name, value)| format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        fields.push(Opt::Header.is(message.headers().map(pair).collect::<Vec<_>>()));
    }
    fields
}

/// The whole payload or result of a message, as it is.
pub fn payload(app: &App, params: &Params) -> Result<Response, Failure> {
    let message = Message::get(&app.client, params.needed("queue")?, params.needed("id")?)?;
    let message = message.ok_or_else(|| Failure::nothing("the queue has no message of this id"))?;
    let name = if params.text("field") == "result" { "result" } else { "payload" };
    let bytes = message.bytes(name).to_vec();
    Ok(Response::new(200, "application/octet-stream", bytes).with("Content-Disposition", "attachment"))
}
