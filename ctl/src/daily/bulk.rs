//! A change of all messages of a queue that something selects, or of those of all queues that a pattern names.
//!
//! They are counted, a person is asked, and then no more are changed than were counted.

use super::confirm::{agrees, is_asked, Question};
use super::no_such_queue;
use super::several::{matching, named, of_one, Named};
use crate::cli::ConfirmArgs;
use crate::failure::{Failure, Outcome};
use crate::name::QueueName;
use crate::output::{separated, Output};
use crate::progress::Progress;
use dq_client::Client;
use serde_json::json;

/// A number of messages of a queue; `None` if it does not exist.
pub type Counted = Result<Option<u64>, Failure>;

/// Is told how many messages have been seen or changed so far.
pub type Tell<'a> = &'a mut dyn FnMut(u64);

/// What is done to the messages, and how they are counted.
pub struct Bulk<'a> {
    /// Asked for when the messages have been counted.
    pub question: &'a dyn Fn() -> Question<'a>,
    /// As in the answer: `redriven`.
    pub done: &'static str,
    /// Whether they are only counted.
    pub is_dry: bool,
    pub confirm: &'a ConfirmArgs,
    pub count: &'a dyn Fn(&QueueName, Tell) -> Counted,
    /// Changes at most so many. Returns how many it has changed.
    pub change: &'a dyn Fn(&QueueName, u64, Tell) -> Counted,
    /// Says on standard error why a queue has none.
    pub why_none: &'a dyn Fn(&QueueName) -> Result<(), Failure>,
}

impl Bulk<'_> {
    /// Counts the messages, or asks and changes them.
    pub fn run(&self, client: &Client, typed: &QueueName, output: &Output) -> Result<Outcome, Failure> {
        match named(client, typed)? {
            None => self.of_queue(typed, output),
            Some(named) => self.of_queues(typed, named, output),
        }
    }

    fn of_queue(&self, queue: &QueueName, output: &Output) -> Result<Outcome, Failure> {
        let counted = || self.counted(queue);
        let number = if self.is_dry {
            counted()?
        } else {
            let Some(most) = agrees(self.confirm, self.question, queue, counted)? else {
                return Ok(Outcome::Nothing);
            };
            self.changed(queue, most)?
        };
        let Some(number) = number else {
            no_such_queue(queue);
            return Ok(Outcome::Nothing);
        };
        self.print(number, output)?;
        if number == 0 {
            (self.why_none)(queue)?;
        }
        Ok(Outcome::found(number > 0))
    }

    /// Changes one queue after another. What one of them refuses is reported, and the others are changed nevertheless.
    fn of_queues(&self, typed: &QueueName, named: Named, output: &Output) -> Result<Outcome, Failure> {
        let Named { names, missing } = named;
        let (mut meant, mut total, mut is_complete) = (Vec::new(), Some(0), !names.is_empty());
        let is_counted = self.is_dry || is_asked(self.confirm);
        for name in names {
            let counted = if is_counted { self.counted(&name) } else { Ok(Some(u64::MAX)) };
            match counted {
                // A user may be allowed the change alone.
                Err(failure) if failure.is_denied() && !self.is_dry => {
                    total = None;
                    meant.push((name, u64::MAX));
                }
                counted => match of_one(&name, counted)? {
                    Some(None | Some(0)) => {}
                    Some(Some(number)) => {
                        total = total.map(|total: u64| total.saturating_add(number));
                        meant.push((name, number));
                    }
                    None => is_complete = false,
                },
            }
        }
        if !self.is_dry && !meant.is_empty() {
            let names: Vec<&QueueName> = meant.iter().map(|(name, _)| name).collect();
            if !(self.question)().agrees_to_all(self.confirm, &matching(typed, &names), total)? {
                return Ok(Outcome::Nothing);
            }
        }
        let (mut queues, mut all) = (0, 0);
        for (name, number) in &meant {
            let number = if self.is_dry { Ok(Some(*number)) } else { self.changed(name, *number) };
            let Some(number) = of_one(name, number)? else {
                is_complete = false;
                continue;
            };
            if let Some(number @ 1..) = number {
                self.print(number, &output.about(name))?;
                queues += 1;
                all += number;
            }
        }
        match queues {
            0 if is_complete => say!("dqctl: no queue that matches {typed} has such a message"),
            0 | 1 => {}
            _ if output.json => {}
            _ => output.remark(&format!("{} {} in {queues} queues", separated(&all.to_string()), self.verb()))?,
        }
        missing.map_or(Ok(Outcome::found(is_complete && queues > 0)), Err)
    }

    fn verb(&self) -> &'static str {
        if self.is_dry {
            "selected"
        } else {
            self.done
        }
    }

    fn print(&self, number: u64, output: &Output) -> Result<(), Failure> {
        let verb = self.verb();
        output.counted(number, verb, json!({ verb: number }))
    }

    fn counted(&self, queue: &QueueName) -> Counted {
        let mut progress = Progress::new("selected");
        (self.count)(queue, &mut |number| progress.at(number))
    }

    fn changed(&self, queue: &QueueName, most: u64) -> Counted {
        let (mut progress, mut before) = (Progress::new(self.done), 0);
        let changed = (self.change)(queue, most, &mut |number| {
            before = number;
            progress.at(number);
        });
        changed.map_err(|failure| failure.after_change(before, self.done))
    }
}
