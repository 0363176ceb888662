//! The rule of a recurring message: the instants at which it becomes due.
//!
//! A rule is evaluated by a master only, when a schedule is declared and when a run ends. What it says travels as an
//! absolute time, so replicas, the replay of an AOF and the view never evaluate a rule. The evaluation is pure: it
//! reads no clock, no file and no environment.

use super::cron::{Cron, CRON_MAX};
use super::memory::given;
use super::time::{DurationMs, UnixMs};

/// The number of steps for which the evaluation of a cron expression counts. It takes 20 to 40 µs to parse an
/// expression and to find its next time, as long as a few dozen other steps of the timer. An expression that never
/// fires, which only a forged payload can hold, takes a few milliseconds.
const STEPS_OF_A_CRON: usize = 64;

/// When a recurring message becomes due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// At each multiple of `every` since the Unix epoch, plus `offset`.
    Every {
        /// The time from one run to the next; at least 1 ms.
        every: DurationMs,
        /// The distance of each run from a multiple of `every`; less than `every`.
        offset: DurationMs,
    },
    /// At the times of a cron expression in a time zone.
    Cron {
        /// The expression, as the client wrote it.
        expression: Box<str>,
        /// The name of the time zone.
        zone: Box<str>,
    },
}

impl Default for Rule {
    /// A rule that never fires.
    fn default() -> Self {
        Rule::Every { every: DurationMs::ZERO, offset: DurationMs::ZERO }
    }
}

impl Rule {
    /// The first instant of the rule that is later than `now`; `None` if there is none that a queue can represent.
    pub fn next_after(&self, now: UnixMs) -> Option<UnixMs> {
        match self {
            Rule::Every { every, offset } => next_multiple(every.as_ms(), offset.as_ms(), now.as_ms()),
            Rule::Cron { expression, zone } => Cron::parse(expression.as_bytes()).ok()?.in_zone(zone)?.next_after(now),
        }
    }

    /// How many steps of work it takes to evaluate the rule once, in addition to those of the end of a run.
    pub(super) fn steps(&self) -> usize {
        match self {
            Rule::Every { .. } => 0,
            Rule::Cron { .. } => STEPS_OF_A_CRON,
        }
    }

    /// Whether a client could have declared this rule.
    pub(super) fn is_valid(&self) -> bool {
        match self {
            Rule::Every { every, offset } => offset < every,
            // Whether it can be evaluated is not checked: another version may know more zones.
            Rule::Cron { expression, zone } => expression.len() <= CRON_MAX && zone.len() <= CRON_MAX,
        }
    }

    /// The number of bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Rule::Every { .. } => 0,
            Rule::Cron { expression, zone } => given(expression.len()) + given(zone.len()),
        }
    }
}

/// The first `offset + n * every` that is greater than `now`.
fn next_multiple(every: u64, offset: u64, now: u64) -> Option<UnixMs> {
    let Some(behind) = now.checked_sub(offset) else { return UnixMs::checked(offset) };
    let runs = behind.checked_div(every)?.checked_add(1)?;
    UnixMs::checked(runs.checked_mul(every)?.checked_add(offset)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_anchored_at_the_epoch_plus_its_offset() {
        let next = |every, offset, now| {
            let rule = Rule::Every { every: DurationMs::new(every), offset: DurationMs::new(offset) };
            rule.next_after(UnixMs::new(now)).map(UnixMs::as_ms)
        };
        assert_eq!(next(60_000, 0, 1_760_000_012_345), Some(1_760_000_040_000));
        assert_eq!(next(60_000, 5_000, 1_760_000_012_345), Some(1_760_000_045_000));
        assert_eq!(next(60_000, 0, 120_000), Some(180_000), "strictly later");
        assert_eq!(next(60_000, 5_000, 4_999), Some(5_000));
        assert_eq!(next(1, 0, 7), Some(8));
        let end = UnixMs::MAX.as_ms();
        assert_eq!((next(1, 0, end - 1), next(1, 0, end)), (Some(end), None));
    }
}
