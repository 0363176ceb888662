//! `purge`: removes the messages that are in some states.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::board::{each_page, is_older, older_than, scan, Among, Filter};
use crate::cli::{ManyArgs, PurgeArgs};
use crate::server::{Failure, Message, QueueInfo};
use crate::text::{messages, millis, now_ms, visible, QueueName};
use dq_client::{blocking::Client, Cmd, State};

/// The states that are purged, each once, although somebody may have named it twice.
fn states(args: &PurgeArgs) -> impl Iterator<Item = State> + '_ {
    State::ALL.into_iter().filter(|one| args.all || args.states.contains(one))
}

impl Change for PurgeArgs {
    fn words(&self) -> Words {
        Words { verb: "Purge", done: "purged" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::States(states(self).collect())
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        command("DQ.PURGE", queue)
            .args(states(self).map(State::as_str))
            .count(part)
            .option("GROUP", self.group.as_ref())
            .number("OLDER", self.older.map(millis))
            .flag("RECURRING", self.recurring)
            .build()
    }

    fn many(&self) -> Option<&ManyArgs> {
        Some(&self.many)
    }

    fn limit(&self) -> Option<u32> {
        self.count
    }

    fn count_states(&self, client: &Client, queue: &[u8], info: &QueueInfo, states: &[State]) -> Result<u64, Failure> {
        if self.group.is_some() || self.older.is_some() {
            return count_by_reading(self, client, queue, states);
        }
        let all = info.count_all(states);
        let kept = if self.recurring { 0 } else { count_recurring(client, queue, info, states)? };
        Ok(all.saturating_sub(kept))
    }

    fn why_none(&self, client: &Client, queue: &[u8], info: &QueueInfo, states: &[State]) -> Option<String> {
        let recurring = if self.recurring { 0 } else { count_recurring(client, queue, info, states).unwrap_or(0) };
        let left = messages(recurring);
        (recurring > 0).then(|| format!("left alone, because they recur: {left}; --recurring removes them too"))
    }

    fn states_in_words(&self, states: &[State]) -> (String, String) {
        let words: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
        let group = self.group.as_ref().map(|group| format!(" in the group {}", visible(group)));
        let any = self.all.then(|| " in any state".to_owned());
        let conditions = [any, group, self.older.map(older_than)].into_iter().flatten().collect();
        (if self.all { String::new() } else { words.join(" and ") }, conditions)
    }

    fn consequence(&self, _: Option<u64>, copy: &str) -> String {
        format!(" for good{copy}")
    }
}

/// How many messages of these states recur.
fn count_recurring(client: &Client, queue: &[u8], info: &QueueInfo, states: &[State]) -> Result<u64, Failure> {
    let mut recurring = 0;
    if info.schedules > 0 {
        let is_in = |message: &&Message| states.iter().any(|state| message.state() == Some(*state));
        scan::each_page(client, queue, info, &["RECURRING"], |page| {
            recurring += page.iter().filter(is_in).count() as u64;
        })?;
    }
    Ok(recurring)
}

/// How many messages of a group or of an age would be removed. The counts of the queue do not have this number.
fn count_by_reading(args: &PurgeArgs, client: &Client, queue: &[u8], states: &[State]) -> Result<u64, Failure> {
    let mut number = 0;
    let is_selected = |message: &&Message| {
        args.group.as_ref().is_none_or(|group| message.group() == group.as_bytes())
            && args.older.is_none_or(|age| is_older(message, age, now_ms()))
            && (args.recurring || !message.recurs())
    };
    for state in states {
        let all = Filter { among: Among::State(*state), ..Filter::default() };
        each_page(client, queue, &all, |page| number += page.iter().filter(is_selected).count() as u64)?;
    }
    Ok(number)
}
