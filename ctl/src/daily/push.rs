//! `dqctl push`.

use super::{payload, queue};
use crate::cli::PushArgs;
use crate::failure::{Failure, Outcome};
use crate::name::shown;
use crate::output::Output;
use dq_client::{Client, Pushed};
use serde_json::json;

pub fn push(client: &Client, args: &PushArgs, output: &Output) -> Result<Outcome, Failure> {
    let queue = queue(client, &args.queue);
    let payload = payload(args.payload.as_deref())?;
    let mut push = queue.push(&payload).priority(args.message.priority);
    if let Some(id) = &args.id {
        push = push.id(id);
    }
    if let Some(delay) = args.delay {
        push = push.delay(delay);
    }
    if let Some(at) = args.at {
        push = push.at(at);
    }
    if args.replace {
        push = push.replace();
    }
    if let Some(retries) = args.message.retries {
        push = push.retries(retries);
    }
    if let Some(lease) = args.message.lease {
        push = push.lease(lease);
    }
    if let Some(ttl) = args.message.ttl {
        push = push.ttl(ttl);
    }
    if let Some(group) = &args.message.group {
        push = push.group(group);
    }
    for (name, value) in &args.message.headers {
        push = push.header(name, value);
    }
    if let Some(time) = args.retain {
        push = push.retain(time);
    }
    if let Some(wait) = args.max_wait {
        push = push.replace_within(wait);
    }
    if args.later {
        push = push.replace_later();
    }
    if let Some(batch) = &args.batch {
        push = push.batch(batch);
    }
    match push.send()? {
        Pushed::New(id) => {
            let text = shown(id.as_ref());
            output.result(&text, json!({ "id": args.id.as_ref().map_or(json!(text), |id| json!(id)) }))?;
            Ok(Outcome::Done)
        }
        Pushed::Duplicate => {
            let id = args.id.as_ref().map(ToString::to_string).unwrap_or_default();
            say!("dqctl: a duplicate: the queue {} has accepted {id} already; --replace takes its place", args.queue);
            Ok(Outcome::Nothing)
        }
    }
}
