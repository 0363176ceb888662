//! Changes of queues and messages, for the commands and for the page.
//!
//! An [`Act`] is a command as the command line defines it. Its [`Plan`] says which queues and how many messages it would
//! change, `question` says that in words, and `run` changes one queue, never more messages of it than the plan counted.

mod command;
mod count;
mod letters;
mod question;
mod steps;
mod why;

pub use why::{no_such_id, where_the_dead_are};

use crate::board::{names, Among, Filter};
use crate::cli::{among, Act, BuryArgs, CancelArgs, ManyArgs, RedriveArgs};
use crate::server::{reply, Failure, Outcome};
use crate::text::{MessageId, QueueName};
use dq_client::{blocking::Client, Raw, State};
use serde_json::Value as Json;
use std::io::{self, IsTerminal, Read};
use std::slice;

/// Which messages of a queue an act is about.
pub enum Meant<'a> {
    /// None of those that it holds, but the queue itself or a new message.
    Queue,
    Ids(&'a [MessageId]),
    /// Those in these states, of which one command of the server changes many.
    States(Vec<State>),
    /// Those that have to be read to see whether they are meant.
    Selected(Filter),
    /// Those that a consumer holds, or that belong to a batch.
    Consumer(&'a str),
    Batch(&'a str),
}

/// What an act would change.
#[derive(Default)]
pub struct Plan {
    /// The queues, and the most messages that may be changed in each.
    pub queues: Vec<(QueueName, u64)>,
    /// Whether a pattern or a list named them.
    pub is_of_several: bool,
    /// How many messages that is; `None` if they were not counted.
    pub number: Option<u64>,
    /// Why some queues are not among them, and why those of some servers of a cluster are missing.
    pub refused: Vec<Failure>,
    pub missing: Option<Failure>,
}

/// What an act has done in one queue.
#[derive(Default)]
pub struct Report {
    /// Whether it did all that was asked, or nothing was to be changed.
    pub outcome: Outcome,
    /// How many messages it has changed, if that is all there is to say.
    pub number: Option<u64>,
    /// Else a line for each thing that was done, as text and as JSON.
    pub lines: Vec<(String, Json)>,
    /// What else there is to know, such as why a message was left alone.
    pub notes: Vec<String>,
}

impl Act {
    /// Reads a payload from standard input, if it is to come from there.
    pub fn read_input(&mut self) -> Result<(), Failure> {
        match self {
            Act::Push(args) => read_payload(&mut args.payload),
            Act::Schedule(args) => read_payload(&mut args.payload),
            Act::Complete(args) if args.result.is_some() => read_payload(&mut args.result),
            Act::Batch(args) if args.then.is_some() => read_payload(&mut args.then),
            _ => Ok(()),
        }
    }

    /// Refuses what the definitions of the options cannot refuse.
    pub fn check(&self) -> Result<(), Failure> {
        match self {
            Act::Bury(BuryArgs { state: State::Dead | State::Done, .. }) => {
                Err(Failure::usage("only ready, delayed and inflight messages are buried"))
            }
            Act::Alter(args) if args.settings.0.is_empty() && !args.create => {
                Err(Failure::usage("nothing to change: give a setting, such as --lease 1m; see dqctl alter --help"))
            }
            Act::Push(args) if args.payload.is_none() => Err(Failure::usage("the payload is missing")),
            Act::Schedule(args) if args.payload.is_none() => Err(Failure::usage("the payload is missing")),
            _ => Ok(()),
        }
    }

    pub fn queue(&self) -> &QueueName {
        match self {
            Act::Cancel(CancelArgs { target, .. })
            | Act::Redrive(RedriveArgs { target, .. })
            | Act::Bury(BuryArgs { target, .. }) => &target.queue,
            Act::Push(args) => &args.queue,
            Act::Schedule(args) => &args.queue,
            Act::Release(args) => &args.queue,
            Act::Complete(args) => &args.queue,
            Act::Reschedule(args) => &args.queue,
            Act::Nack(args) => &args.queue,
            Act::Promote(args) => &args.queue,
            Act::Batch(args) => &args.queue,
            Act::Create(args) => &args.queue,
            Act::Alter(args) => &args.queue,
            Act::Purge(args) => &args.queue,
            Act::Delete(args) => &args.queue,
            Act::Pause(args) => &args.queue,
            Act::Resume(args) => &args.queue,
        }
    }

    fn many(&self) -> Option<&ManyArgs> {
        match self {
            Act::Cancel(args) => Some(&args.target.many),
            Act::Redrive(args) => Some(&args.target.many),
            Act::Bury(args) => Some(&args.target.many),
            Act::Release(args) => Some(&args.many),
            Act::Promote(args) => Some(&args.many),
            Act::Purge(args) => Some(&args.many),
            Act::Delete(args) => Some(&args.many),
            _ => None,
        }
    }

    /// Whether the messages are only counted.
    pub fn is_dry(&self) -> bool {
        self.many().is_some_and(|many| many.dry_run)
    }

    /// Whether nobody is asked.
    pub fn is_agreed(&self) -> bool {
        let confirm = match self {
            Act::Batch(args) => Some(&args.confirm),
            Act::Alter(args) => Some(&args.confirm),
            Act::Pause(args) => Some(&args.confirm),
            Act::Resume(args) => Some(&args.confirm),
            _ => self.many().map(|many| &many.confirm),
        };
        confirm.is_some_and(|confirm| confirm.yes)
    }

    pub fn meant(&self) -> Meant<'_> {
        match self {
            Act::Cancel(CancelArgs { target, .. })
            | Act::Redrive(RedriveArgs { target, .. })
            | Act::Bury(BuryArgs { target, .. })
                if !target.ids.is_empty() =>
            {
                Meant::Ids(&target.ids)
            }
            Act::Promote(args) if !args.ids.is_empty() => Meant::Ids(&args.ids),
            Act::Nack(args) => Meant::Ids(&args.ids),
            Act::Complete(args) => Meant::Ids(slice::from_ref(&args.id)),
            Act::Reschedule(args) => Meant::Ids(slice::from_ref(&args.id)),
            Act::Cancel(args) => Meant::Selected(args.target.filter(among(args.letters, args.state))),
            Act::Bury(args) => Meant::Selected(args.target.filter(Among::State(args.state))),
            Act::Redrive(args) => match args.target.filter(among(args.letters, None)) {
                filter if filter.has_conditions() => Meant::Selected(filter),
                _ => Meant::States(vec![State::Dead]),
            },
            Act::Promote(_) => Meant::States(vec![State::Delayed]),
            // Each once, although somebody may have named it twice.
            Act::Purge(args) => {
                Meant::States(State::ALL.into_iter().filter(|one| args.all || args.states.contains(one)).collect())
            }
            Act::Release(args) => Meant::Consumer(&args.consumer),
            Act::Batch(args) if args.cancel => Meant::Batch(args.name.as_deref().unwrap_or_default()),
            _ => Meant::Queue,
        }
    }

    /// Whether it is about as many messages as there are, so that a person wants to know the number first.
    pub fn is_of_many(&self) -> bool {
        matches!(self, Act::Delete(_)) || !matches!(self.meant(), Meant::Queue | Meant::Ids(_))
    }

    /// That its pattern names no queue that could be changed.
    pub fn none(&self) -> String {
        format!("no queue matches {}, or none has such a message; dqctl ls lists the queues", self.queue())
    }

    /// Whether its queue may be a pattern.
    fn takes_pattern(&self) -> bool {
        match self {
            Act::Batch(_) | Act::Delete(_) => false,
            Act::Alter(args) => !args.create,
            Act::Pause(_) | Act::Resume(_) => true,
            _ => self.is_of_many(),
        }
    }

    /// What it would change: in the queue that it names, or in all that match it.
    /// Messages are counted only if somebody is to know their number.
    pub fn plan(&self, client: &Client, counts: bool) -> Result<Plan, Failure> {
        let mut plan = Plan { number: Some(0), ..Plan::default() };
        let mut names = vec![self.queue().clone()];
        if let Some(pattern) = self.pattern(client)? {
            let (found, missing) = names::find_reachable(client, Some(pattern))?;
            names = found.iter().map(|name| QueueName::of(name)).collect();
            (plan.is_of_several, plan.missing) = (true, missing);
        }
        let counts = counts && (self.is_of_many() || self.is_dry());
        for name in names {
            let counted = if counts { self.count(client, &name) } else { Ok(Some(u64::MAX)) };
            let number = match counted {
                // A user may be allowed the change alone.
                Err(failure) if failure.is_denied() && !self.is_dry() => None,
                Err(failure) if failure.is_of_any_queue() || !plan.is_of_several => return Err(failure),
                Err(failure) => {
                    plan.refused.push(failure.about(Some(&name.to_string())).of(&name));
                    continue;
                }
                Ok(None | Some(0)) if plan.is_of_several => continue,
                Ok(None) => return Err(Failure::nothing(reply::no_such_queue(&name))),
                Ok(number) => number,
            };
            plan.number = plan.number.zip(number).map(|(sum, number)| sum.saturating_add(number));
            plan.queues.push((name, number.unwrap_or(u64::MAX)));
        }
        if !counts {
            plan.number = None;
        }
        Ok(plan)
    }

    /// The pattern that somebody typed; `None` if it is the name of one queue. A queue whose name looks like a pattern comes first.
    fn pattern(&self, client: &Client) -> Result<Option<&str>, Failure> {
        let typed = self.queue();
        if !self.takes_pattern() || !typed.as_bytes().iter().any(|byte| b"*?[".contains(byte)) {
            return Ok(None);
        }
        match reply::info(client, typed.as_bytes()) {
            Ok(Some(_)) => return Ok(None),
            Err(failure) if !failure.is_denied() => return Err(failure),
            // A user may be allowed the change alone.
            Ok(None) | Err(_) => {}
        }
        let text = std::str::from_utf8(typed.as_bytes());
        text.map(Some).map_err(|_| Failure::usage(format!("{typed} is no pattern, because it is not UTF-8")))
    }
}

impl Report {
    /// A number of messages; none is nothing.
    fn of(number: u64) -> Report {
        Report { number: Some(number), ..Report::default() }.ended(number > 0)
    }

    fn line(text: impl Into<String>, object: Json) -> Report {
        Report { lines: vec![(text.into(), object)], ..Report::default() }.ended(true)
    }

    fn note(mut self, text: impl Into<String>) -> Report {
        self.notes.push(text.into());
        self
    }

    fn ended(self, is_done: bool) -> Report {
        Report { outcome: Outcome::found(is_done), ..self }
    }
}

/// The payload that was given, or standard input.
fn read_payload(payload: &mut Option<Raw>) -> Result<(), Failure> {
    let mut input = io::stdin();
    match payload {
        Some(given) if given.0 != b"-" => return Ok(()),
        None if input.is_terminal() => return Err(Failure::usage("no payload: name it, or pipe it into dqctl")),
        Some(_) | None => {}
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    *payload = Some(Raw(bytes));
    Ok(())
}
