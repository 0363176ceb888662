//! What the list of queues is sorted by.

use crate::row::Row;
use std::cmp::Ordering;

/// A column to sort by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// The worst first.
    Trouble,
    Name,
    Ready,
    Delayed,
    Inflight,
    Dead,
    Oldest,
    Pushed,
    Completed,
}

impl Sort {
    /// In the order of the columns.
    const ALL: [Sort; 9] = [
        Sort::Name,
        Sort::Ready,
        Sort::Delayed,
        Sort::Inflight,
        Sort::Dead,
        Sort::Oldest,
        Sort::Pushed,
        Sort::Completed,
        Sort::Trouble,
    ];

    /// The one of this digit: `1` is the first column.
    pub fn of(digit: char) -> Option<Sort> {
        let number = usize::try_from(digit.to_digit(10)?).ok()?;
        Sort::ALL.get(number.checked_sub(1)?).copied()
    }

    pub fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Sort::ALL.get(at + 1).copied().unwrap_or(Sort::Name)
    }

    /// What the queues are sorted by.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Name => "QUEUE",
            Sort::Ready => "READY",
            Sort::Delayed => "DELAY",
            Sort::Inflight => "FLIGHT",
            Sort::Dead => "DEAD",
            Sort::Oldest => "OLDEST",
            Sort::Pushed => "IN/s",
            Sort::Completed => "OUT/s",
            Sort::Trouble => "STATE",
        }
    }

    /// The largest numbers come first.
    pub fn compare(self, a: &Row, b: &Row) -> Ordering {
        let by = |name: &str| b.number(name).cmp(&a.number(name));
        let float = |a: Option<f64>, b: Option<f64>| b.unwrap_or(-1.0).total_cmp(&a.unwrap_or(-1.0));
        match self {
            Sort::Name => Ordering::Equal,
            Sort::Ready => by("ready"),
            Sort::Delayed => by("delayed"),
            Sort::Inflight => by("inflight"),
            Sort::Dead => by("dead"),
            Sort::Oldest => b.oldest().cmp(&a.oldest()),
            Sort::Pushed => float(a.pushed, b.pushed),
            Sort::Completed => float(a.completed, b.completed),
            Sort::Trouble => b.trouble.cmp(&a.trouble),
        }
    }
}
