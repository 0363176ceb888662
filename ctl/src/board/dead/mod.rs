//! Dead messages in large numbers: by cause, and selected by conditions.
//!
//! `cause` turns the text of an error into what many of them have in common. `filter` selects messages, and `causes`
//! counts them by cause. `letters` are those that were moved here from other queues, and `target` is where they are
//! moved. `newest` finds the cause of recent deaths. All read the queue page by page, so that other clients of
//! the server do not wait.

mod cause;
mod causes;
mod filter;
mod letters;
mod newest;
mod target;

pub use cause::{cause_of, error_of};
pub use causes::{Cause, Causes};
pub use filter::{is_older, older_than, since, Among, Condition, Filter};
pub use letters::{as_it_died, is_letter};
pub use newest::frequent_cause;
pub use target::{target, target_in_words, target_queue};

use crate::board::scan;
use crate::server::{info, Failure, Message};
use crate::text::now_ms;
use dq_client::blocking::Client;
use std::ops::ControlFlow;

/// Calls `visit` with the selected messages of each page. Returns whether the queue exists.
pub fn each_page(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    mut visit: impl FnMut(Vec<Message>),
) -> Result<bool, Failure> {
    pages(client, queue, filter, |page| {
        visit(page);
        Ok(ControlFlow::Continue(()))
    })
}

/// The same until `visit` breaks or fails.
pub fn pages(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    mut visit: impl FnMut(Vec<Message>) -> Result<ControlFlow<()>, Failure>,
) -> Result<bool, Failure> {
    let Some(info) = info::read(client, queue)? else { return Ok(false) };
    let options = match filter.among {
        Among::State(state) => vec!["STATE", state.as_str()],
        Among::Letters => Vec::new(),
    };
    scan::pages(client, queue, &info, &options, |page| {
        let now = now_ms();
        visit(page.into_iter().filter_map(|message| filter.meets(message, now)).collect())
    })?;
    Ok(true)
}
