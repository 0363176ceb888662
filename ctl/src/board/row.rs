//! What is known of one queue: its numbers, its rates, its conditions and its history.

use super::condition::{Condition, Level, Untaken, HELD};
use super::history::{History, Sample};
use super::trouble::Trouble;
use crate::output::Style;
use crate::server::QueueInfo;
use crate::text::millis;
use dq_client::State;
use std::time::Instant;

/// What the board knows of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Status {
    /// It has not been read yet.
    #[default]
    Unread,
    Known,
    /// The user may not read it.
    Denied,
    /// Its server does not answer. What was known before is out of date.
    Lost,
}

#[derive(Clone, Default)]
pub struct Row {
    pub status: Status,
    pub info: QueueInfo,
    /// The most important one first.
    pub conditions: Vec<(Condition, Level)>,
    pub trouble: Trouble,
    pub history: History,
    /// Whether its first message died in another queue, if that matters and was read.
    pub(super) letters: Option<bool>,
    /// When it was read last, and when somebody looked at it last.
    pub(super) read: Option<Instant>,
    pub(super) looked: Option<Instant>,
}

impl Row {
    /// How long the oldest ready message has been due, in ms.
    pub fn oldest(&self) -> Option<u64> {
        self.info.oldest_ready.map(millis)
    }

    /// Messages pushed per second; `None` until there are two samples.
    pub fn rate_in(&self) -> Option<f64> {
        self.history.rate(|sample| sample.totals[0])
    }

    /// Messages completed per second.
    pub fn rate_out(&self) -> Option<f64> {
        self.history.rate(|sample| sample.totals[2])
    }

    /// The state in which a queue opens: where its trouble is, or the first one that has messages.
    pub fn opens_at(&self) -> State {
        let has_died =
            self.has(Condition::Dying) || self.conditions.first() == Some(&(Condition::Dead, Level::Warning));
        let troubled = [(State::Dead, has_died), (State::Inflight, self.hangs())];
        let troubled = troubled.into_iter().filter(|(_, is_so)| *is_so).map(|(state, _)| state);
        let mut all = troubled.chain([State::Ready, State::Dead, State::Inflight, State::Delayed, State::Done]);
        all.find(|state| self.info.count(*state) > 0).unwrap_or(State::Ready)
    }

    pub fn has(&self, condition: Condition) -> bool {
        self.conditions.iter().any(|(one, _)| *one == condition)
    }

    /// Whether it is late while a consumer has held a message for long.
    pub fn hangs(&self) -> bool {
        self.has(Condition::Late) && self.info.oldest_inflight.is_some_and(|held| held >= HELD)
    }

    /// The level of the most severe condition.
    pub fn level(&self) -> Option<Level> {
        self.conditions.iter().map(|(_, level)| *level).max()
    }

    /// The style in which its state is shown.
    pub fn style(&self) -> Style {
        match self.level() {
            Some(Level::Bad) => Style::Bad,
            Some(Level::Warning) => Style::Warning,
            Some(Level::Note) | None => Style::Plain,
        }
    }

    /// The conditions of the queue in words, the most important first.
    pub fn state(&self) -> String {
        match self.status {
            Status::Unread => "…".to_owned(),
            Status::Denied => "no permission".to_owned(),
            Status::Lost => "no answer".to_owned(),
            Status::Known => Condition::sentence(&self.conditions, &self.info),
        }
    }

    /// Takes over `DQ.INFO`. `letters`: whether the first message died in another queue, if that matters;
    /// `is_refused`: whether messages wait because the server refuses pops; `most` samples are kept. Returns whether
    /// this became a sample of the history.
    pub(super) fn update(&mut self, info: &QueueInfo, letters: Option<bool>, is_refused: bool, most: usize) -> bool {
        self.letters = letters;
        self.conditions = Condition::find_all(info, Untaken::decide(is_refused, letters == Some(true)));
        self.trouble = Trouble::rank(info, &self.conditions);
        (self.status, self.read) = (Status::Known, Some(Instant::now()));
        self.history.add(Sample::read(info), most)
    }
}

#[cfg(test)]
impl Row {
    /// A row that was read with these fields.
    pub fn with_numbers(numbers: &[(&str, i64)]) -> Row {
        let mut row = Row { info: QueueInfo::with_numbers(numbers), ..Row::default() };
        row.update(&row.info.clone(), None, false, super::history::FEW);
        row
    }
}
