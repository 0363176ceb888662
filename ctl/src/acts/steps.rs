//! Carries an act out on one queue. The server answers nobody else while it executes a command, so many messages are
//! changed in steps.

use super::change::{Change, Part, Scope};
use super::count::limit;
use super::letters::{refusal, Staying};
use super::report::Report;
use super::site::{Answer, Site};
use super::why::{self, why_not};
use crate::board::{batches, pages, since, Filter};
use crate::cli::Act;
use crate::output::Progress;
use crate::server::{get_all, reply, reply::text, reply::unexpected, Failure, Message, Outcome};
use crate::text::{now_ms, MessageId, QueueName};
use dq_client::{blocking::Client, Cmd, Error, State, Value};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// How many messages one command changes of those in a state, and of those that were read.
const STEP: u64 = 10_000;
const READ: usize = 1_000;
/// How many are read again before they are changed.
const AGAIN: usize = 50;

/// An act on one queue, and how many messages it has changed.
struct Steps<'a> {
    change: &'a dyn Change,
    site: Site<'a>,
    progress: &'a Progress,
    staying: Staying,
    total: u64,
}

impl Act {
    /// Changes at most `most` messages of a queue.
    pub fn run(&self, client: &Client, queue: &QueueName, most: u64, progress: &Progress) -> Result<Report, Failure> {
        let (change, site) = (self.change(), Site { client, queue });
        let mut steps = Steps { change, site, progress, staying: Staying::default(), total: 0 };
        let report = steps.run(most).map_err(|failure| failure.after_change(steps.total, self.done()))?;
        let Some(mut report) = report else { return Ok(Report::default().note(reply::no_such_queue(queue))) };
        report.notes.extend(steps.staying.notes());
        if report.number == Some(0) && report.outcome == Outcome::Nothing {
            return Ok(why::nothing(change, &steps.site, report));
        }
        Ok(report)
    }
}

impl Steps<'_> {
    fn add(&mut self, number: u64) {
        self.total += number;
        self.progress.done(number);
    }

    /// Returns `None` if there is no such queue.
    fn run(&mut self, most: u64) -> Result<Option<Report>, Failure> {
        match self.change.scope() {
            Scope::Queue(change) => change.change_queue(&self.site),
            Scope::Ids(ids) => self.change_ids(ids).map(Some),
            Scope::States(states) => self.change_states(&states, most),
            Scope::Selected(filter) => {
                let exists = self.change_selected(&filter, most)?;
                Ok(exists.then(|| Report::number(self.total)))
            }
            Scope::Consumer(_) => self.change_of_consumer(most),
            Scope::Batch(batch) => self.cancel_batch(batch, most),
        }
    }

    /// Changes the messages that a consumer holds, by one command.
    fn change_of_consumer(&mut self, most: u64) -> Result<Option<Report>, Failure> {
        if most > 0 {
            self.change_by_one_command(most)?;
        }
        let exists = most == 0 || self.total > 0 || self.site.info()?.is_some();
        Ok(exists.then(|| Report::number(self.total)))
    }

    /// Cancels a batch, by one command. A batch without messages is cancelled as well.
    fn cancel_batch(&mut self, batch: &str, most: u64) -> Result<Option<Report>, Failure> {
        let has_batch = batches::info(self.site.client, self.site.name(), batch.as_bytes())?.is_some();
        self.change_by_one_command(most)?;
        let exists = self.total > 0 || self.site.info()?.is_some();
        Ok(exists.then(|| Report::number(self.total).ended(self.total > 0 || has_batch)))
    }

    fn change_by_one_command(&mut self, most: u64) -> Result<(), Failure> {
        let most = most.min(limit(self.change));
        let part = if most == u64::MAX { Part::Whole } else { Part::Count(most) };
        self.total = changed(&self.change.send(&self.site, part)?)?;
        Ok(())
    }

    /// How many messages were changed, given the answer to a command on one.
    fn count(&mut self, id: &[u8], answer: Result<Value, Error>) -> Result<u64, Failure> {
        if !self.change.sends_letters() {
            return changed(&answer?);
        }
        let answer = answer.map_err(|error| refusal(&self.site, id, error))?;
        Ok(u64::from(self.staying.count(&answer)?))
    }

    /// Changes messages one by one, so that those that were left alone can be reported.
    fn change_ids(&mut self, ids: &[MessageId]) -> Result<Report, Failure> {
        let mut report = Report::default();
        for id in ids {
            let Answer { result, is_repeated } = self.change_id(id)?;
            let answer = result.as_ref().ok().and_then(text);
            let is_changed = self.count(id.as_bytes(), result)? > 0 || is_repeated && self.is_done_to(id)?;
            if !is_changed {
                report.notes.extend(why_not(self.change, &self.site, id));
                continue;
            }
            self.add(1);
            report.lines.push(self.change.line(id, answer));
        }
        if self.change.reports_number() {
            (report.number, report.lines) = (Some(self.total), Vec::new());
        }
        Ok(report.ended(self.total == ids.len() as u64))
    }

    fn change_id(&self, id: &MessageId) -> Result<Answer, Failure> {
        if self.change.must_look_first() {
            let message = self.site.message(id.as_bytes())?;
            if !message.is_some_and(|message| self.change.fits(&message)) {
                return Ok(Answer { result: Ok(Value::Nil), is_repeated: false });
            }
        }
        Ok(self.change.call(&self.site, Part::Ids(&[id.as_bytes()])))
    }

    fn is_done_to(&self, id: &MessageId) -> Result<bool, Failure> {
        let message = self.site.message(id.as_bytes())?;
        Ok(message.is_some_and(|message| self.change.is_done_to(&message)))
    }

    /// Sends commands until as many messages as are in these states now were changed. Later ones are left alone.
    fn change_states(&mut self, states: &[State], most: u64) -> Result<Option<Report>, Failure> {
        let Some(info) = self.site.info()? else { return Ok(None) };
        let limit = info.count_all(states).min(most).min(limit(self.change));
        self.progress.expect(limit);
        while self.total < limit {
            let wanted = STEP.min(limit - self.total);
            let step = changed(&self.change.send(&self.site, Part::Count(wanted))?)?;
            self.add(step);
            if step < wanted {
                break;
            }
        }
        let mut report = Report::number(self.total);
        if self.total == 0 {
            report.notes.extend(self.change.why_none(self.site.client, self.site.name(), &info, states));
        }
        Ok(Some(report))
    }

    /// Reads the messages, and changes the selected ones page by page. If only `most` are to be changed, these are the
    /// ones that have been in their state for longest, which are known only when all have been read. Returns whether
    /// the queue exists.
    fn change_selected(&mut self, filter: &Filter, most: u64) -> Result<bool, Failure> {
        if most < u64::MAX {
            self.progress.expect(most);
        }
        let most = usize::try_from(most.min(filter.oldest.map_or(u64::MAX, u64::from))).unwrap_or(usize::MAX);
        // By the instant, and among those of one instant in the order of the queue.
        let (mut oldest, mut number) = (BTreeSet::<(i64, u64, Vec<u8>)>::new(), 0);
        let (client, queue) = (self.site.client, self.site.queue);
        let exists = pages(client, queue.as_bytes(), filter, |page| {
            if most == usize::MAX {
                self.change_these(&page.iter().map(|message| message.id()).collect::<Vec<_>>(), filter)?;
                return Ok(ControlFlow::Continue(()));
            }
            for message in page {
                number += 1;
                oldest.insert((since(&message).unwrap_or(0), number, message.id().to_vec()));
                if oldest.len() > most {
                    oldest.pop_last();
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let ids: Vec<&[u8]> = oldest.iter().map(|(_, _, id)| id.as_slice()).collect();
        ids.chunks(READ).try_for_each(|ids| self.change_these(ids, filter))?;
        Ok(exists)
    }

    /// Changes those of some messages that are still selected.
    fn change_these(&mut self, ids: &[&[u8]], filter: &Filter) -> Result<(), Failure> {
        let is_checked = self.change.checks_selection_again();
        let ids = if is_checked { self.still_selected(ids, filter)? } else { ids.to_vec() };
        if !self.change.is_one_by_one() {
            if !ids.is_empty() {
                self.add(changed(&self.change.send(&self.site, Part::Ids(&ids))?)?);
            }
            return Ok(());
        }
        let command = |id| self.change.command(self.site.name(), Part::Ids(std::slice::from_ref(id)));
        let commands: Vec<Cmd> = ids.iter().map(command).collect();
        let mut failed = Ok(());
        for (id, answer) in ids.iter().zip(self.site.client.batch(&commands)) {
            // Those after one that has failed were executed as well.
            if failed.is_ok() || answer.is_ok() {
                match self.count(id, answer) {
                    Ok(number) => self.add(number),
                    Err(failure) => failed = failed.and(Err(failure)),
                }
            }
        }
        failed
    }

    /// Those of some messages that the filter still selects.
    fn still_selected<'b>(&self, ids: &[&'b [u8]], filter: &Filter) -> Result<Vec<&'b [u8]>, Failure> {
        let mut selected = Vec::new();
        for step in ids.chunks(AGAIN) {
            let messages = get_all(self.site.client, self.site.name(), step)?;
            let is_selected =
                |message: Option<Message>| message.is_some_and(|one| filter.meets(one, now_ms()).is_some());
            selected.extend(step.iter().zip(messages).filter_map(|(id, message)| is_selected(message).then_some(*id)));
        }
        Ok(selected)
    }
}

/// How many messages a command has changed: a number, a list with null for each that it left alone, or what became of
/// one.
fn changed(reply: &Value) -> Result<u64, Failure> {
    match reply {
        Value::Nil => Ok(0),
        Value::Int(number) => u64::try_from(*number).map_err(|_| unexpected(reply)),
        Value::Array(states) => Ok(states.iter().filter(|state| **state != Value::Nil).count() as u64),
        _ => Ok(1),
    }
}
