//! The changes of all queues that are marked, each of which is one question. A pause and a close change only the queues that are
//! not so already, and leave the marks on these, so that the same key is the way back.

use super::action::{many, promote, redrive, Action, Kind};
use super::app::App;
use super::question::lost_unless;
use super::queues::Queues;
use crate::advice::dump_of_dead;
use crate::failure::Failure;
use crate::output::text::{grouped, named};
use dq_client::{Client, Flow, Queue, Raw};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Pause,
    Resume,
    Close,
    Open,
    Redrive,
    Promote,
}

/// Queues, and how many of the messages of each are changed at most.
pub type Marked = Vec<(Vec<u8>, u64)>;

impl Change {
    /// What a key does to the queues that are marked, if it is for several.
    pub fn of(letter: char, queues: &Queues) -> Option<Change> {
        Some(match letter {
            'p' if queues.are_marked("paused") => Change::Resume,
            'p' => Change::Pause,
            'C' if queues.are_marked("closed") => Change::Open,
            'C' => Change::Close,
            'R' => Change::Redrive,
            'N' => Change::Promote,
            _ => return None,
        })
    }

    /// The state of the messages that it changes, if it changes messages.
    pub fn state(self) -> Option<&'static str> {
        match self {
            Change::Pause | Change::Resume | Change::Close | Change::Open => None,
            Change::Redrive => Some("dead"),
            Change::Promote => Some("delayed"),
        }
    }

    /// What says whether a queue is so already, and the number that it must have for the change.
    fn needs(self) -> Option<(&'static str, i64)> {
        match self {
            Change::Pause => Some(("paused", 0)),
            Change::Resume => Some(("paused", 1)),
            Change::Close => Some(("closed", 0)),
            Change::Open => Some(("closed", 1)),
            Change::Redrive | Change::Promote => None,
        }
    }

    /// The queues among the marked ones that it changes.
    pub fn of_marked(self, queues: &Queues) -> Marked {
        let mut marked = queues.marked_with(self.state());
        if let Some((field, number)) = self.needs() {
            marked.retain(|(name, _)| queues.row(name).map_or(0, |row| row.number(field)) == number);
        }
        marked
    }

    /// What is offered as well if some of the marked queues are so already: its key and its verb.
    fn opposite(self) -> Option<(char, &'static str, Change)> {
        match self {
            Change::Pause => Some(('r', "resume", Change::Resume)),
            Change::Close => Some(('o', "open", Change::Open)),
            Change::Resume | Change::Open | Change::Redrive | Change::Promote => None,
        }
    }

    pub fn question(self, queues: &Marked) -> String {
        let messages = many(queues.iter().map(|(_, count)| count).sum(), self.state().unwrap_or_default());
        let queues = many_queues(queues.len());
        match self {
            Change::Pause => format!("Pause {queues}? They deliver nothing until they are resumed."),
            Change::Resume => format!("Resume {queues}? They deliver messages again."),
            Change::Close => format!("Close {queues}? Pushes are refused until they are opened."),
            Change::Open => format!("Open {queues}? They accept messages again."),
            Change::Redrive => {
                format!("Redrive {messages} of {queues}? They are due now. {}", lost_unless(&dump_of_dead("QUEUE")))
            }
            Change::Promote => {
                let what = "They are due at once. Schedules among them make their next run now.";
                format!("Run {messages} of {queues} now? {what}")
            }
        }
    }

    fn past(self) -> &'static str {
        match self {
            Change::Pause => "paused",
            Change::Resume => "resumed",
            Change::Close => "closed",
            Change::Open => "opened",
            Change::Redrive => "redriven",
            Change::Promote => "run",
        }
    }

    /// Changes each queue, and calls `changed` with the name of each that needs no mark any more. Failures and reports say how far
    /// it came.
    pub fn execute(
        self,
        client: &Client,
        queues: &Marked,
        progress: impl Fn(String),
        changed: impl Fn(&[u8]),
    ) -> Result<String, Failure> {
        let mut total = 0;
        let all = queues.len();
        for (done, (name, limit)) in queues.iter().enumerate() {
            let so_far = format!("{} of {} queues {}", grouped(done), grouped(all), self.past());
            let said = |text| progress(format!("{so_far}; {}: {text}", named(name)));
            let messages = self.of_one(client, name, *limit, said).map_err(|failure| {
                let messages = if total > 0 { format!(" with {}", many(total, "")) } else { String::new() };
                failure.about(Some(&named(name))).of(format!("{so_far}{messages}; {}", named(name)))
            })?;
            total += messages;
            if self.needs().is_none() {
                changed(name);
            }
            progress(format!("{} of {} queues {} …", grouped(done + 1), grouped(all), self.past()));
        }
        let messages = self.state().map(|_| format!("{} of ", many(total, "")));
        let back = match self {
            Change::Pause | Change::Resume => "; p takes it back, and Esc forgets the marks",
            Change::Close | Change::Open => "; C takes it back, and Esc forgets the marks",
            Change::Redrive | Change::Promote => "",
        };
        Ok(format!("{} {}{}{back}", self.past(), messages.unwrap_or_default(), many_queues(all)))
    }

    /// How many messages were changed.
    fn of_one(self, client: &Client, name: &[u8], limit: u64, progress: impl Fn(String)) -> Result<u64, Failure> {
        let queue: Queue<Raw> = client.queue(name);
        match self {
            Change::Pause => queue.pause(None).map(|_| ())?,
            Change::Resume => queue.resume_flow(Flow::Out).map(|_| ())?,
            Change::Close => queue.pause_flow(Flow::In, None).map(|_| ())?,
            Change::Open => queue.resume_flow(Flow::In).map(|_| ())?,
            Change::Redrive => return redrive(&queue, limit, progress),
            Change::Promote => return promote(client, name, limit, progress),
        }
        Ok(0)
    }
}

/// What can be chosen at a question besides yes and no.
pub struct Instead {
    pub key: char,
    pub words: String,
    pub action: Action,
}

impl App {
    /// The opposite of a change of marked queues, for those that are so already.
    pub fn instead(&self, action: &Action) -> Option<Instead> {
        let Kind::Marked(change, _) = &action.kind else { return None };
        let (key, verb, opposite) = change.opposite()?;
        let queues = Some(opposite.of_marked(&self.queues)).filter(|queues| !queues.is_empty())?;
        let are = if queues.len() == 1 { "is" } else { "are" };
        let words = format!("{verb} the {} that {are} {}", grouped(queues.len()), change.past());
        Some(Instead {
            key,
            words,
            action: Action { queue: action.queue.clone(), kind: Kind::Marked(opposite, queues) },
        })
    }

    /// Leaves the marks only on the queues of a change that can be taken back, so that its key is the way back for exactly these.
    pub fn mark_only_changed(&mut self, action: &Action) {
        match &action.kind {
            Kind::Marked(change, queues) if change.needs().is_some() => {
                self.queues.marked = queues.iter().map(|(name, _)| name.clone()).collect();
            }
            _ => {}
        }
    }
}

fn many_queues(count: usize) -> String {
    format!("{} marked queue{}", grouped(count), if count == 1 { "" } else { "s" })
}
