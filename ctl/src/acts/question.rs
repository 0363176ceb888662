//! The question that is asked before anything is changed.

use super::change::{Change, Scope};
use super::plan::{is_pattern, Plan};
use crate::board::Among;
use crate::cli::Act;
use crate::server::quoted;
use crate::text::{messages, separated, visible, QueueName};
use dq_client::State;

/// How many queues or ids a question names.
const NAMED: usize = 3;

impl Act {
    pub fn verb(&self) -> &'static str {
        self.change().words().verb
    }

    /// The past participle of the verb, which is also a field of the answer.
    pub fn done(&self) -> &'static str {
        self.change().words().done
    }

    /// The question, with the number of messages that would be changed.
    pub fn question(&self, plan: &Plan) -> String {
        let change = self.change();
        let queues: Vec<&QueueName> = plan.queues.iter().map(|(name, _)| name).collect();
        let copy = advice_to_copy(&change.scope(), &queues, plan.is_of_several);
        let place = place(self.queue(), &queues, plan.is_of_several);
        let consequence = change.consequence(plan.number, &copy);
        format!("{} {}{consequence}?", self.verb(), selection(change, plan.number, &place))
    }
}

/// Describes what is changed: `5 dead messages of the queue q with error~timeout`.
fn selection(change: &dyn Change, number: Option<u64>, place: &str) -> String {
    let of_messages = |kind: &str, condition: &str| {
        let number = number.map_or_else(|| "all messages".to_owned(), messages);
        let kind = if kind.is_empty() { " ".to_owned() } else { format!(" {kind} ") };
        format!("{} of {place}{condition}", number.replacen(' ', &kind, 1))
    };
    match change.scope() {
        Scope::Queue(_) => change.object(place),
        Scope::Ids([id]) => format!("the message {id} of {place}"),
        Scope::Ids(ids) => format!("{} ({}) of {place}", messages(ids.len() as u64), listed(ids)),
        Scope::States(states) => {
            let (kind, condition) = change.states_in_words(&states);
            of_messages(&kind, &condition)
        }
        Scope::Selected(filter) => of_messages(&filter.among.to_string(), &filter.to_string()),
        Scope::Consumer(name) => of_messages("", &format!(" from the consumer {}", visible(name))),
        Scope::Batch(name) => of_messages("", &format!(" in the batch {}", visible(name))),
    }
}

/// Advice how to keep a copy of dead messages, whose errors are lost by the change; empty for other messages.
fn advice_to_copy(scope: &Scope, queues: &[&QueueName], is_of_several: bool) -> String {
    let are_dead = match scope {
        Scope::States(states) => states == &[State::Dead],
        Scope::Selected(filter) => filter.among == Among::default(),
        Scope::Queue(_) | Scope::Ids(_) | Scope::Consumer(_) | Scope::Batch(_) => false,
    };
    if !are_dead {
        return String::new();
    }
    let queue = match queues {
        [queue] if !is_of_several => quoted(&queue.to_string()),
        _ => "QUEUE".to_owned(),
    };
    format!(" (dqctl dump {queue} --state dead > dead.jsonl keeps them)")
}

/// The queues in words. `typed` is the name or the pattern that was given.
fn place(typed: &QueueName, queues: &[&QueueName], is_of_several: bool) -> String {
    match queues {
        [queue] if !is_of_several => format!("the queue {queue}"),
        queues if is_pattern(typed) => {
            let matching = if queues.len() == 1 { "queue that matches" } else { "queues that match" };
            format!("{} {matching} {typed} ({})", separated(queues.len()), listed(queues))
        }
        queues => format!("{} queues ({})", separated(queues.len()), listed(queues)),
    }
}

/// For a question: `svc:a, svc:b, svc:c and 9 more`.
fn listed(names: &[impl ToString]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {} more", separated(more)) } else { String::new() };
    names.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ") + &more
}
