//! `dqctl schedule` without an id.

use crate::board::{message, rule, scan};
use crate::output::Column::{Name, Number, Text, Word};
use crate::output::{Column, Output};
use crate::server::{info, Failure, Message, Outcome};
use crate::text::{now_ms, shown, QueueName};
use dq_client::{blocking::Client, State};

const COLUMNS: &[Column] = &[Name("id"), Text("rule"), Word("due"), Number("runs"), Number("failed"), Text("payload")];

/// Lists the recurring messages of a queue.
pub fn list(client: &Client, name: &QueueName, output: &Output) -> Result<Outcome, Failure> {
    let (mut messages, info) = (Vec::new(), info::existing(client, name)?);
    scan::each_page(client, name.as_bytes(), &info, &["RECURRING"], |page| messages.extend(page))?;
    // What is late comes first.
    messages.sort_by_key(|message| message.due());
    output.list(COLUMNS, &messages, |message| message.json(), |message| row(message, output))?;
    Ok(Outcome::Done)
}

fn row(message: &Message, output: &Output) -> Vec<String> {
    let due = match message.due() {
        Some(due) if output.is_for_people && due < now_ms() && message.state() == Some(State::Ready) => {
            format!("late: {}", output.instant(due))
        }
        due => output.instant(due),
    };
    let [runs, failed, payload] = ["runs", "failed-runs", "payload"].map(|name| message::field(message, name, output));
    vec![shown(message.id()), rule(message), due, runs, failed, payload]
}
