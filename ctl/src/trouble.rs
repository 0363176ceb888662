//! The order of queues by trouble: the same in `dqctl ls`, `doctor`, `top` and `web`.

use crate::condition::{Condition, Level};
use crate::reply::Fields;

/// How soon somebody should look at a queue: the greatest comes first. Queues of the same trouble are in order of name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Trouble {
    pub kind: Kind,
    /// How many messages are concerned: those that wait, and the dead ones if they are the trouble.
    messages: i64,
}

/// From the least to the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Kind {
    /// As it should be, or as the settings intend it.
    #[default]
    Nothing,
    /// Messages wait.
    Stuck,
    /// Messages are refused or die. The server does not count what a closed queue refuses, so each closed one is of this kind.
    Loses,
}

impl Trouble {
    /// The trouble of a queue with these conditions.
    pub fn of(info: &Fields, conditions: &[(Condition, Level)]) -> Trouble {
        let kind = conditions.iter().map(|(condition, level)| Kind::of(*condition, *level)).max().unwrap_or_default();
        let is_of_dead =
            |(condition, _): &(Condition, Level)| matches!(condition, Condition::Failing | Condition::Dying);
        let number = |name: &str| info.int(name).unwrap_or(0);
        let dead = if conditions.iter().any(is_of_dead) { number("dead") } else { 0 };
        let messages = if kind == Kind::Nothing { 0 } else { number("ready") + dead };
        Trouble { kind, messages }
    }
}

impl Kind {
    fn of(condition: Condition, level: Level) -> Kind {
        match condition {
            _ if level == Level::Note => Kind::Nothing,
            Condition::Failing | Condition::Full | Condition::Dying | Condition::Closed => Kind::Loses,
            Condition::Unserved | Condition::Late | Condition::Paused | Condition::Held | Condition::Limited => {
                Kind::Stuck
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Trouble;
    use crate::condition::{Condition, Dead};
    use crate::reply::Fields;
    use dq_client::Value;

    fn trouble(dead: Dead, numbers: &[(&str, i64)]) -> Trouble {
        let info = Fields(numbers.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect());
        Trouble::of(&info, &Condition::of(&info, dead))
    }

    #[test]
    fn what_loses_messages_comes_before_what_is_stuck_then_more_before_fewer() {
        let stay = |numbers| trouble(Dead::Stay, numbers);
        let from_the_worst = [
            trouble(Dead::Grow, &[("dead", 321)]),
            stay(&[("maxlen", 200), ("ready", 200), ("waiting-clients", 1)]),
            stay(&[("forward-failing-since", 1), ("ready", 6)]),
            stay(&[("closed", 1)]),
            stay(&[("paused", 1), ("ready", 9_000)]),
            // The level is worse, but fewer messages wait.
            stay(&[("ready", 2), ("oldest-ready", 20 * 60_000)]),
            stay(&[("paused", 1)]),
            stay(&[("dead", 50), ("ready", 99), ("waiting-clients", 1)]),
        ];
        for pair in from_the_worst.windows(2) {
            assert!(pair[0] > pair[1], "{pair:?}");
        }
        // A limit that works as it was set is no trouble, however much it holds back.
        assert_eq!(stay(&[("ready", 5), ("next-delivery", 9)]), Trouble::default());
    }
}
