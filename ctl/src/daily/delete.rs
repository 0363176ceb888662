//! `dqctl delete`.

use super::confirm::agrees_to;
use super::many::{count_recurring, known};
use super::{no_such_queue, queues};
use crate::cli::DeleteArgs;
use crate::failure::{Failure, Outcome};
use crate::name::QueueName;
use crate::output::{separated, Output};
use crate::reply::{int, Fields};
use crate::wording::messages;
use dq_client::{cmd, Client, Resend, State};
use serde_json::{json, Value as Json};

/// Deletes the key if it is a queue: in one step, so that no other key of this name is lost.
const DELETE: &str = "if redis.call('DQ.INFO', KEYS[1]) then return redis.call('UNLINK', KEYS[1]) end return 0";
const RIGHTS: &str = "to delete a queue, a user needs +eval +dq.info +unlink";

pub fn delete(client: &Client, args: &DeleteArgs, output: &Output) -> Result<Outcome, Failure> {
    let name = &args.queue;
    let Some(info) = queues::read(client, name.as_bytes())? else {
        no_such_queue(name);
        return Ok(Outcome::Nothing);
    };
    if args.dry_run {
        let counts = State::ALL.map(|state| (state.as_str().to_owned(), json!(info.int(state.as_str()))));
        let object = [("queue".to_owned(), json!(name))].into_iter().chain(counts).collect();
        output.result(&held(client, name, &info)?, Json::Object(object))?;
        return Ok(Outcome::Done);
    }
    let held = held(client, name, &info)?;
    if !agrees_to(&args.confirm, || format!("Delete the queue {name} for good, with its settings and {held}? [y/N] "))?
    {
        return Ok(Outcome::Nothing);
    }
    if !delete_queue(client, name.as_bytes())? {
        no_such_queue(name);
        return Ok(Outcome::Nothing);
    }
    output.result("deleted", json!({ "queue": name, "deleted": true }))?;
    Ok(Outcome::Done)
}

/// Deletes a queue for good. Returns whether it existed.
pub fn delete_queue(client: &Client, name: &[u8]) -> Result<bool, Failure> {
    let script = cmd("EVAL").arg(DELETE).arg(1).arg(name).clone();
    let reply = client.call(&script, Resend::Never).map_err(|error| Failure::of_script(error, RIGHTS))?;
    Ok(int(&reply) == Some(1))
}

/// What is in the queue: `41 messages (1 ready, 40 dead; 2 recurring)`.
fn held(client: &Client, name: &QueueName, info: &Fields) -> Result<String, Failure> {
    let count = |state: State| info.int(state.as_str()).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    let total: u64 = State::ALL.into_iter().map(count).sum();
    if total == 0 {
        return Ok("no message".to_owned());
    }
    let states = State::ALL.into_iter().filter(|state| count(*state) > 0);
    let states: Vec<String> =
        states.map(|state| format!("{} {}", separated(&count(state).to_string()), state.as_str())).collect();
    // A user may be allowed to delete it, and not to read its messages.
    let recurring = match known(count_recurring(client, name, info, &State::ALL))? {
        0 => String::new(),
        recurring => format!("; {recurring} recurring"),
    };
    Ok(format!("{} ({}{recurring})", messages(total), states.join(", ")))
}
