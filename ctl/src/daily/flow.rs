//! `dqctl pause` and `resume`: what a queue delivers, what it accepts, or what it delivers of one group.

use super::several::each;
use super::{queue, queues};
use crate::advice::{for_queue, tell};
use crate::cli::{FlowArg, PauseArgs, ResumeArgs};
use crate::failure::{Failure, Outcome};
use crate::groups::{self, Group, Why};
use crate::name::QueueName;
use crate::output::text::visible;
use crate::output::Output;
use crate::reply::Fields;
use crate::time::millis;
use dq_client::{cmd, Client, Resend};
use serde_json::{json, Value as Json};
use std::ops::ControlFlow;

/// The most groups that are read to find one.
const MOST_READ: usize = 20_000;

/// What is suspended: the word for it, and the field of `DQ.INFO`.
type Part = (&'static str, &'static str);
const PAUSED: Part = ("paused", "paused");
const CLOSED: Part = ("closed", "closed");

fn parts(flow: FlowArg) -> &'static [Part] {
    match flow {
        FlowArg::Out => &[PAUSED],
        FlowArg::In => &[CLOSED],
        FlowArg::All => &[PAUSED, CLOSED],
    }
}

/// What `--json` prints: whether each part is suspended now.
fn object(queue: &QueueName, parts: &[Part], is_set: u8) -> Json {
    let fields = parts.iter().map(|part| (part.1.to_owned(), Json::from(is_set)));
    Json::Object([("queue".to_owned(), json!(queue))].into_iter().chain(fields).collect())
}

/// The fields of the queue. `None` if the user may only change it.
fn look(client: &Client, name: &QueueName) -> Option<Fields> {
    queues::read(client, name.as_bytes()).ok().flatten()
}

fn is_set(info: &Fields, (_, field): Part) -> bool {
    info.int(field) == Some(1)
}

/// The end of a suspension, if it has one.
fn end(info: &Fields, (_, field): Part) -> Option<i64> {
    info.int(&format!("{field}-until"))
}

pub fn pause(client: &Client, args: &PauseArgs, output: &Output) -> Result<Outcome, Failure> {
    each(client, &args.queue, ("Pause", &args.confirm), output, |name, output| pause_one(client, name, args, output))
}

pub fn resume(client: &Client, args: &ResumeArgs, output: &Output) -> Result<Outcome, Failure> {
    each(client, &args.queue, ("Resume", &args.confirm), output, |name, output| resume_one(client, name, args, output))
}

fn pause_one(client: &Client, name: &QueueName, args: &PauseArgs, output: &Output) -> Result<Outcome, Failure> {
    if let Some(group) = &args.group {
        return pause_group(client, name, args, group, output);
    }
    let parts = parts(args.flow);
    let before = look(client, name);
    queue(client, name).pause_flow(args.flow.into(), args.time)?;
    let after = look(client, name);
    let mut said = Vec::new();
    for part in parts {
        let was = before.as_ref().filter(|info| is_set(info, *part)).map(|info| end(info, *part));
        let now = after.as_ref().and_then(|info| end(info, *part));
        said.push(paused(part.0, was, now, args, output));
    }
    output.result(&said.join(", "), object(name, parts, 1))?;
    Ok(Outcome::Done)
}

/// What a pause has done. A pause that lasts longer stays. `before` and `after` are the ends that it has, if any.
fn paused(word: &str, before: Option<Option<i64>>, after: Option<i64>, args: &PauseArgs, output: &Output) -> String {
    match after {
        _ if before == Some(after) => match after {
            Some(until) => format!("was {word} already, until {}", output.moment(until)),
            None => format!("was {word} already, until it is resumed"),
        },
        Some(until) if args.time.is_some() => format!("{word} until {}", output.moment(until)),
        Some(_) | None => word.to_owned(),
    }
}

fn pause_group(
    client: &Client,
    name: &QueueName,
    args: &PauseArgs,
    group: &str,
    output: &Output,
) -> Result<Outcome, Failure> {
    let before = find(client, name, group);
    let mut command = cmd("DQ.PAUSE");
    command.arg(name.as_bytes()).arg("GROUP").arg(group);
    if let Some(time) = args.time {
        command.arg("FOR").arg(millis(time));
    }
    client.call(&command, Resend::Harmless)?;
    let was = match &before {
        Looked::Found(found) if found.is_paused() => Some(found.paused_until),
        Looked::Found(_) | Looked::Missing | Looked::Unknown => None,
    };
    let (after, is_empty) = match find(client, name, group) {
        Looked::Found(found) => (found.paused_until, found.waiting + found.occupied == 0),
        Looked::Missing | Looked::Unknown => (None, false),
    };
    if is_empty {
        say!("dqctl: no message of the group {group} waits in the queue {name} now");
    }
    let text = paused("paused", was, after, args, output);
    output.result(&text, json!({ "queue": name, "group": group, "paused": 1 }))?;
    Ok(Outcome::Done)
}

fn resume_one(client: &Client, name: &QueueName, args: &ResumeArgs, output: &Output) -> Result<Outcome, Failure> {
    if let Some(group) = &args.group {
        return resume_group(client, name, group, output);
    }
    let parts = parts(args.flow);
    let before = look(client, name);
    queue(client, name).resume_flow(args.flow.into())?;
    let was = before.as_ref().is_none_or(|info| parts.iter().any(|part| is_set(info, *part)));
    if let (false, true, Some(info)) = (was, parts.contains(&PAUSED), &before) {
        paused_groups(client, name, info);
    }
    let words: Vec<&str> = parts.iter().map(|part| part.0).collect();
    let text = if was { "resumed".to_owned() } else { format!("was not {}", words.join(" or ")) };
    output.result(&text, object(name, parts, 0))?;
    Ok(Outcome::Done)
}

/// Says which groups are paused, if these hold messages back.
fn paused_groups(client: &Client, name: &QueueName, info: &Fields) {
    let mut held = groups::held(client, name.as_bytes(), info).unwrap_or_default();
    held.retain(|held| matches!(held.why, Why::Paused(_)));
    for sentence in groups::sentences(&held) {
        tell(visible(&for_queue(&sentence, &name.to_string())));
    }
}

fn resume_group(client: &Client, name: &QueueName, group: &str, output: &Output) -> Result<Outcome, Failure> {
    let before = find(client, name, group);
    client.call(cmd("DQ.RESUME").arg(name.as_bytes()).arg("GROUP").arg(group), Resend::Harmless)?;
    let text = match before {
        Looked::Missing => {
            tell(format!(
                "the queue {name} has no group {group}: none of this name is paused or has messages; \
                 dqctl groups lists them"
            ));
            return Ok(Outcome::Nothing);
        }
        Looked::Found(found) if !found.is_paused() => "was not paused",
        Looked::Found(_) | Looked::Unknown => "resumed",
    };
    output.result(text, json!({ "queue": name, "group": group, "paused": 0 }))?;
    Ok(Outcome::Done)
}

enum Looked {
    Found(Group),
    Missing,
    /// There are too many groups, or the user may not read them.
    Unknown,
}

/// Looks for a group, among as many as can be read in a moment.
fn find(client: &Client, name: &QueueName, group: &str) -> Looked {
    let (mut found, mut read) = (None, 0);
    let looked = groups::each(client, name.as_bytes(), |one| {
        read += 1;
        if one.name == group {
            found = Some(one);
        }
        let is_over = found.is_some() || read >= MOST_READ;
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    match found {
        Some(found) => Looked::Found(found),
        None if looked.is_ok() && read < MOST_READ => Looked::Missing,
        None => Looked::Unknown,
    }
}
