//! What an act asks before it changes anything, in words.

use super::{Meant, Plan};
use crate::board::older_than;
use crate::cli::{Act, FlowArg};
use crate::server::quoted;
use crate::text::{messages, separated, visible, QueueName};

/// How many queues or ids a question names.
const NAMED: usize = 3;
/// What may follow from a message that is taken from its consumer.
const TWICE: &str = "; a consumer that still works on it does the work twice";

impl Act {
    /// The verb of the question, and its past participle, which is also a field of the answer.
    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Act::Push(_) => ("Push", "pushed"),
            Act::Schedule(_) => ("Declare", "declared"),
            Act::Release(_) => ("Release", "released"),
            Act::Complete(_) => ("Complete", "completed"),
            Act::Cancel(_) => ("Cancel", "cancelled"),
            Act::Reschedule(_) => ("Reschedule", "rescheduled"),
            Act::Redrive(_) => ("Redrive", "redriven"),
            Act::Bury(_) => ("Bury", "buried"),
            Act::Nack(_) => ("Give back", "given back"),
            Act::Promote(_) => ("Promote", "promoted"),
            Act::Batch(args) if args.cancel => ("Cancel", "cancelled"),
            Act::Batch(_) => ("Close", "closed"),
            Act::Create(_) => ("Create", "created"),
            Act::Alter(_) => ("Alter", "altered"),
            Act::Purge(_) => ("Purge", "purged"),
            Act::Delete(_) => ("Delete", "deleted"),
            Act::Pause(args) if args.flow == FlowArg::In => ("Close", "closed"),
            Act::Pause(_) => ("Pause", "paused"),
            Act::Resume(args) if args.flow == FlowArg::In => ("Open", "opened"),
            Act::Resume(_) => ("Resume", "resumed"),
        }
    }

    pub fn verb(&self) -> &'static str {
        self.words().0
    }

    pub fn done(&self) -> &'static str {
        self.words().1
    }

    /// The question, with the number of messages that are meant.
    pub fn question(&self, plan: &Plan) -> String {
        let queues: Vec<&QueueName> = plan.queues.iter().map(|(name, _)| name).collect();
        let place = self.place(&queues, plan.is_of_several);
        let of_states = |states: &str, which: &str| {
            let number = plan.number.map_or_else(|| "all messages".to_owned(), messages);
            let states = if states.is_empty() { " ".to_owned() } else { format!(" {states} ") };
            format!("{} of {place}{which}", number.replacen(' ', &states, 1))
        };
        let what = match self.meant() {
            Meant::Queue => self.whole(&place),
            Meant::Ids([id]) => format!("the message {id} of {place}"),
            Meant::Ids(ids) => format!("{} ({}) of {place}", messages(ids.len() as u64), listed(ids)),
            Meant::States(states) => {
                let words = states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(" and ");
                match self {
                    Act::Purge(args) => {
                        let group = args.group.as_ref().map(|group| format!(" in the group {}", visible(group)));
                        let older = args.older.map(older_than);
                        let words = if args.all { "" } else { &words };
                        let any = args.all.then(|| " in any state".to_owned());
                        of_states(words, &[any, group, older].into_iter().flatten().collect::<String>())
                    }
                    _ => of_states(&words, ""),
                }
            }
            Meant::Selected(filter) => of_states(&filter.among.to_string(), &filter.to_string()),
            Meant::Consumer(name) => of_states("", &format!(" from the consumer {}", visible(name))),
            Meant::Batch(name) => of_states("", &format!(" in the batch {}", visible(name))),
        };
        let queue = match queues.as_slice() {
            [queue] if !plan.is_of_several => queue.to_string(),
            _ => "QUEUE".to_owned(),
        };
        format!("{} {what}{}?", self.verb(), self.consequence(plan, &queue))
    }

    /// What is about no message that the queue holds.
    fn whole(&self, place: &str) -> String {
        match self {
            Act::Push(_) => format!("a message to {place}"),
            Act::Schedule(args) => {
                format!("the schedule {} in {place}", args.id.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            Act::Batch(args) => format!("the batch {} of {place}", visible(args.name.as_deref().unwrap_or_default())),
            Act::Alter(_) => format!("settings of {place}"),
            Act::Pause(args) => of_group(args.group.as_deref(), place),
            Act::Resume(args) => of_group(args.group.as_deref(), place),
            _ => place.to_owned(),
        }
    }

    fn consequence(&self, plan: &Plan, queue: &str) -> String {
        // Who looks for the cause later needs what is lost.
        let is_dead = match self.meant() {
            Meant::States(states) => states == [dq_client::State::Dead],
            Meant::Selected(filter) => filter.among == crate::board::dead::Among::default(),
            _ => false,
        };
        let dump = format!(" (dqctl dump {} --state dead > dead.jsonl keeps them)", quoted(queue));
        let kept = if is_dead { dump } else { String::new() };
        match self {
            Act::Purge(_) | Act::Cancel(_) => format!(" for good{kept}"),
            Act::Batch(args) if args.cancel => " for good".to_owned(),
            Act::Redrive(args) if !args.letters => format!(", which clears their errors and attempts{kept}"),
            Act::Redrive(_) => ", which sends them back to the queues in which they died".to_owned(),
            Act::Release(_) | Act::Nack(_) => TWICE.to_owned(),
            Act::Delete(_) => {
                let held = plan.number.map_or_else(|| "all its messages".to_owned(), messages);
                format!(" for good, with its settings, its schedules and {held}")
            }
            Act::Pause(args) if args.flow != FlowArg::In => ", which delivers nothing until it is resumed".to_owned(),
            _ => String::new(),
        }
    }

    fn place(&self, queues: &[&QueueName], is_of_several: bool) -> String {
        match queues {
            [queue] if !is_of_several => format!("the queue {queue}"),
            queues if self.queue().as_bytes().iter().any(|byte| b"*?[".contains(byte)) => {
                let match_it = if queues.len() == 1 { "queue that matches" } else { "queues that match" };
                let number = separated(queues.len());
                format!("{number} {match_it} {} ({})", self.queue(), listed(queues))
            }
            queues => format!("{} queues ({})", separated(queues.len()), listed(queues)),
        }
    }
}

fn of_group(group: Option<&str>, place: &str) -> String {
    group.map_or_else(|| place.to_owned(), |group| format!("the group {} of {place}", visible(group)))
}

/// For a question: `svc:a, svc:b, svc:c and 9 more`.
fn listed(names: &[impl ToString]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {} more", separated(more)) } else { String::new() };
    names.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ") + &more
}
