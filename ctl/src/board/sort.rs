//! What a list of queues is sorted by.

use super::row::Row;
use clap::ValueEnum;
use std::cmp::Ordering;

/// A column, under its name in the list, and under that of the page.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    #[value(alias = "name")]
    Queue,
    Ready,
    Delayed,
    Inflight,
    Dead,
    #[value(alias = "oldest-ready")]
    Oldest,
    #[value(name = "in/s", alias = "in")]
    In,
    #[value(name = "out/s", alias = "out")]
    Out,
    Waiting,
    #[default]
    #[value(alias = "trouble")]
    State,
}

/// A row and its name.
pub type Named<'a> = (&'a [u8], &'a Row);

impl Sort {
    /// The largest numbers and the worst states come first.
    pub fn compare(self, (a_name, a): Named, (b_name, b): Named) -> Ordering {
        let by = |number: fn(&Row) -> u64| number(b).cmp(&number(a));
        let by_rate = |rate: fn(&Row) -> Option<f64>| rate(b).unwrap_or(-1.0).total_cmp(&rate(a).unwrap_or(-1.0));
        match self {
            Sort::Queue => a_name.cmp(b_name),
            Sort::Ready => by(|row| row.info.ready),
            Sort::Delayed => by(|row| row.info.delayed),
            Sort::Inflight => by(|row| row.info.inflight),
            Sort::Dead => by(|row| row.info.dead),
            Sort::Oldest => b.oldest().cmp(&a.oldest()),
            Sort::In => by_rate(Row::rate_in),
            Sort::Out => by_rate(Row::rate_out),
            Sort::Waiting => by(|row| row.info.waiting_clients),
            Sort::State => b.trouble.cmp(&a.trouble),
        }
    }

    /// The column of this digit: `1` is the first one, and `0` the tenth.
    pub fn from_digit(digit: char) -> Option<Sort> {
        let number = usize::try_from(digit.to_digit(10)?).ok()?;
        Sort::value_variants().get((number + 9) % 10).copied()
    }

    /// The column after this one, and the first after the last.
    pub fn next(self) -> Sort {
        let all = Sort::value_variants().iter().copied();
        all.clone().chain(all).skip_while(|sort| *sort != self).nth(1).unwrap_or(self)
    }

    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
