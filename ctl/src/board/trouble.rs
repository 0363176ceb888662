//! The order of queues by trouble: the same in `dqctl ls`, `doctor`, `top` and `web`.

use super::condition::{Condition, Level, HELD};
use crate::server::QueueInfo;

/// The urgency of a queue; the most urgent one comes first. Queues of the same urgency are in order of name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Trouble {
    /// The worst level of its conditions; `None` if all is as it should be, or as the settings intend it.
    level: Option<Level>,
    harm: u8,
    /// How many messages are concerned: those that wait, and the dead ones if they are the trouble.
    messages: u64,
}

impl Trouble {
    /// The trouble of a queue with these conditions.
    pub fn rank(info: &QueueInfo, conditions: &[(Condition, Level)]) -> Trouble {
        let troubling = conditions.iter().filter(|(_, level)| *level > Level::Note);
        let hangs = info.oldest_inflight.is_some_and(|held| held >= HELD);
        // Messages are refused; they die, or nobody takes them, or whoever took them hangs; they wait.
        let harm = |(condition, level): &(Condition, Level)| match condition {
            Condition::Failing | Condition::Full => 2,
            Condition::Refused | Condition::Unserved | Condition::Dying => 1,
            Condition::Late | Condition::Occupied if hangs || *level == Level::Bad => 1,
            Condition::Late | Condition::Occupied | Condition::Paused | Condition::Closed | Condition::GroupsHeld => 0,
            Condition::Limited | Condition::Dead | Condition::Letters => 0,
        };
        let is_of_dead = |(condition, _): &(Condition, Level)| {
            matches!(condition, Condition::Failing | Condition::Dying | Condition::Dead)
        };
        let Some(level) = troubling.clone().map(|(_, level)| *level).max() else { return Trouble::default() };
        let dead = if conditions.iter().any(is_of_dead) { info.dead } else { 0 };
        let harm = troubling.map(harm).max().unwrap_or_default();
        Trouble { level: Some(level), harm, messages: info.ready + dead }
    }

    /// Whether nothing is wrong.
    pub fn is_none(self) -> bool {
        self.level.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::Trouble;
    use crate::board::condition::{Condition, Untaken};
    use crate::server::QueueInfo;

    fn trouble(numbers: &[(&str, i64)]) -> Trouble {
        let info = QueueInfo::with_numbers(numbers);
        Trouble::rank(&info, &Condition::find_all(&info, Untaken::ByConsumers))
    }

    #[test]
    fn red_comes_before_amber_then_what_fails_then_more() {
        let from_the_worst = [
            trouble(&[("maxlen", 200), ("ready", 200), ("waiting-clients", 1)]),
            trouble(&[("forward-failing-since", 1), ("ready", 6)]),
            // Consumers do not keep up with so many.
            trouble(&[("ready", 9_000), ("oldest-ready", 20 * 60_000), ("inflight", 1)]),
            // Nobody has taken them for long.
            trouble(&[("ready", 2), ("oldest-ready", 20 * 60_000)]),
            trouble(&[("dead", 321), ("newest-dead", 0)]),
            trouble(&[("ready", 200), ("oldest-ready", 20_000)]),
            trouble(&[("dead", 3), ("newest-dead", 0)]),
            trouble(&[("ready", 2), ("oldest-ready", 70_000), ("inflight", 1), ("oldest-inflight", 70_000)]),
            trouble(&[("paused", 1), ("ready", 9_000)]),
            trouble(&[("closed", 1), ("ready", 5), ("waiting-clients", 1)]),
            trouble(&[("closed", 1)]),
            trouble(&[("dead", 50), ("ready", 99), ("waiting-clients", 1)]),
        ];
        for pair in from_the_worst.windows(2) {
            assert!(pair[0] > pair[1], "{pair:?}");
        }
        // A limit that works as it was set is no trouble, however much it holds back.
        assert_eq!(trouble(&[("ready", 5), ("next-delivery", 9)]), Trouble::default());
    }
}
