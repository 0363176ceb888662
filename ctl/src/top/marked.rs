//! The changes of all queues that are marked, each of which is one question.

use super::action::{many, promote, redrive};
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

    pub fn question(self, queues: &Marked) -> String {
        let messages = many(queues.iter().map(|(_, count)| count).sum(), self.state().unwrap_or_default());
        let queues = many_queues(queues.len());
        match self {
            Change::Pause => format!("Pause {queues}? They deliver nothing until they are resumed."),
            Change::Resume => format!("Resume {queues}? They deliver and accept messages again."),
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

    /// Changes each queue, and calls `changed` with its name. Failures and reports say how far it came.
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
            changed(name);
            progress(format!("{} of {} queues {} …", grouped(done + 1), grouped(all), self.past()));
        }
        let messages = self.state().map(|_| format!("{} of ", many(total, "")));
        Ok(format!("{} {}{}", self.past(), messages.unwrap_or_default(), many_queues(all)))
    }

    /// How many messages were changed.
    fn of_one(self, client: &Client, name: &[u8], limit: u64, progress: impl Fn(String)) -> Result<u64, Failure> {
        let queue: Queue<Raw> = client.queue(name);
        match self {
            Change::Pause => queue.pause(None).map(|_| ())?,
            Change::Resume => queue.resume().map(|_| ())?,
            Change::Close => queue.pause_flow(Flow::In, None).map(|_| ())?,
            Change::Open => queue.resume_flow(Flow::In).map(|_| ())?,
            Change::Redrive => return redrive(&queue, limit, progress),
            Change::Promote => return promote(client, name, limit, progress),
        }
        Ok(0)
    }
}

fn many_queues(count: usize) -> String {
    format!("{} marked queue{}", grouped(count), if count == 1 { "" } else { "s" })
}
