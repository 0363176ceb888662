//! Dead messages in large numbers: by cause, and selected by conditions.
//!
//! `cause` turns the text of an error into what many of them have in common. `filter` selects messages. `causes` counts them
//! by cause, and `change` redrives or cancels those that were selected. All read the queue page by page, so that other
//! clients of the server do not wait.

mod cause;
mod causes;
mod change;
mod command;
mod filter;

pub use cause::{cause_of, error_of, header};
pub use causes::causes;
pub use change::{cancel, count, redrive};
pub use command::dead;
pub use filter::{Condition, Filter};

use crate::failure::Failure;
use crate::reply::Fields;
use crate::scan;
use crate::time::now_ms;
use dq_client::{cmd, Client, Resend, Value};
use std::ops::ControlFlow;

/// Whether `DEADFORWARD QUEUE` has moved a message from another queue, and it has not died in this one as well.
pub fn is_letter(message: &Fields) -> bool {
    reason(message).is_some()
}

fn reason(message: &Fields) -> Option<String> {
    header(message, "dq-reason").filter(|_| message.text("state") != "dead")
}

/// The same message with the fields that it had in its former queue; `None` if it is no letter.
pub fn as_it_died(mut message: Fields) -> Option<Fields> {
    let reason = reason(&message)?;
    let [error, died, attempts] = ["dq-error", "dq-died", "dq-attempts"].map(|name| header(&message, name));
    let text = |text: Option<String>| text.map(|text| Value::BulkString(text.into_bytes()));
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).map(Value::Int);
    for (name, value) in [
        ("reason", text(Some(reason))),
        ("error", text(error.filter(|error| !error.is_empty()))),
        ("died", number(died)),
        ("attempt", number(attempts)),
    ] {
        message.0.retain(|(field, _)| field != name);
        message.0.extend(value.map(|value| (name.to_owned(), value)));
    }
    Some(message)
}

/// Calls `visit` with the selected dead messages of each page, until it breaks. Returns whether the queue exists.
pub fn pages(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    mut visit: impl FnMut(Vec<Fields>) -> Result<ControlFlow<()>, Failure>,
) -> Result<bool, Failure> {
    let info = Fields::read(client.call(cmd("DQ.INFO").arg(queue), Resend::Harmless)?)?;
    let Some(info) = info else { return Ok(false) };
    let options: &[&str] = if filter.letters { &[] } else { &["STATE", "dead"] };
    scan::pages(client, queue, &info, options, |mut page| {
        let now = now_ms();
        if filter.letters {
            page = page.into_iter().filter_map(as_it_died).collect();
        }
        page.retain(|message| filter.selects(message, now));
        visit(page)
    })?;
    Ok(true)
}
