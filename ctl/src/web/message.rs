//! One message with all its fields.

use super::html::{act, address, of_queue, pairs};
use super::messages::when;
use super::{App, Params, View};
use crate::board::{error_of, is_letter, recurs, told};
use crate::http::Response;
use crate::output::payload as shown_lines;
use crate::server::{reply, Failure, Fields};
use crate::text::shown;
use dq_client::Value;
use maud::{html, Markup};
use serde_json::{json, Value as Json};

/// A larger payload is not edited in a browser, in bytes.
const EDITED: usize = 256 * 1024;
/// How wide a dump of bytes may be.
const WIDTH: usize = 4_000;

pub fn message(app: &App, params: &Params) -> Result<View, Failure> {
    let (queue, id) = (params.needed("queue")?, params.needed("id")?);
    let found = reply::message(&app.client, queue, id)?;
    let body = html! {
        nav.crumbs { a href="#/" { "Queues" } " / " a href=(of_queue(queue)) { (shown(queue)) } }
        div.head { h1 { (shown(id)) } @if let Some(message) = found.as_ref().filter(|_| app.allow_writes) { (acts(queue, id, message)) } }
        @match &found {
            Some(message) => (fields(queue, id, message)),
            None => p.empty { "The queue has no message of this id now: it was completed or removed, or never pushed, or it died and was moved to another queue." },
        }
    };
    Ok(View { title: shown(id), body })
}

fn fields(queue: &[u8], id: &[u8], message: &Fields) -> Markup {
    let mut all = told(message);
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
                    button type="button" data-save=(address("payload", &[("queue", queue), ("id", id), ("field", name.as_bytes())])) { "Download" }
                    pre { (shown_lines(bytes, WIDTH).join("\n")) }
                }
            }
        }
        (pairs(&all))
        @for (field, tab) in [("group", message.text("state")), ("consumer", "inflight".to_owned())] {
            @if !message.bytes(field).is_empty() {
                p { a href=(address("queue", &[("queue", queue), ("tab", tab.as_bytes()), (field, message.bytes(field))])) { "Messages of the " (field) " " (shown(message.bytes(field))) } }
            }
        }
    }
}

fn acts(queue: &[u8], id: &[u8], message: &Fields) -> Markup {
    let (queue, name) = (shown(queue), shown(id));
    let of_ids = |what: &str| json!({ "act": what, "queue": queue, "ids": [name] });
    let state = message.text("state");
    let waits = state == "ready" || state == "delayed";
    let none = json!({});
    let payload = std::str::from_utf8(message.bytes("payload")).ok().filter(|payload| payload.len() <= EDITED);
    let removal = match state.as_str() {
        "dead" => "Delete",
        "done" => "Forget",
        _ if recurs(message) => "End the schedule",
        _ => "Cancel",
    };
    html! {
        div.buttons {
            @if state == "dead" { (act("Redrive", &of_ids("redrive"), &json!({ "in": "" }))) }
            @if is_letter(message) && waits { (act("Send back", &json!({ "act": "redrive", "queue": queue, "ids": [name], "letters": true }), &json!({ "in": "" }))) }
            @if state == "delayed" { (act("Run now", &of_ids("promote"), &none)) }
            @if waits { (act("Reschedule", &json!({ "act": "reschedule", "queue": queue, "id": name }), &json!({ "in": "", "at": "", "priority": "" }))) }
            @if state == "inflight" {
                // The receipt names the delivery that was looked at: a later one is left alone.
                (act("Give back", &json!({ "act": "nack", "queue": queue, "ids": [shown(message.bytes("receipt"))] }), &json!({ "in": "", "error": "" })))
            }
            @if let Some(payload) = payload.filter(|_| !recurs(message)) {
                (act("Edit and push again", &json!({ "act": "push", "queue": queue }), &again(id, message, payload)))
            }
            @if waits || state == "inflight" { (act("Bury", &of_ids("bury"), &json!({ "error": "" }))) }
            (act(removal, &of_ids("cancel"), &none))
        }
    }
}

/// What a copy of a message begins with. One that is dead is replaced by its copy, under its id.
fn again(id: &[u8], message: &Fields, payload: &str) -> Json {
    let mut edit =
        json!({ "payload": payload, "in": "", "priority": message.text("priority"), "group": message.text("group") });
    if let (Some(edit), true) = (edit.as_object_mut(), message.text("state") == "dead") {
        edit.insert("id".to_owned(), json!(shown(id)));
        edit.insert("replace".to_owned(), json!(true));
    }
    if let (Some(edit), Some(Value::Map(headers))) = (edit.as_object_mut(), message.get("headers")) {
        let pair = |(name, value): &(Value, Value)| Some(format!("{}={}", reply::text(name)?, reply::text(value)?));
        edit.insert("header".to_owned(), json!(headers.iter().filter_map(pair).collect::<Vec<_>>()));
    }
    edit
}

/// The whole payload or result of a message, as it is.
pub fn payload(app: &App, params: &Params) -> Result<Response, Failure> {
    let message = reply::message(&app.client, params.needed("queue")?, params.needed("id")?)?;
    let message = message.ok_or_else(|| Failure::nothing("the queue has no message of this id"))?;
    let name = if params.text("field") == "result" { "result" } else { "payload" };
    let bytes = message.bytes(name).to_vec();
    Ok(Response::new(200, "application/octet-stream", bytes).with("Content-Disposition", "attachment"))
}
