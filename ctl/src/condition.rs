//! What is unusual about a queue, from the fields of `DQ.INFO`: the same in `dqctl ls`, `top` and `web`.
//!
//! A queue can have several conditions at once, such as paused and full.

mod looks;

pub use looks::{begins_with_letter, Looks, Recent};

use crate::reply::Fields;
use crate::time::span;
use serde_json::{json, Value as Json};
use std::cmp::Reverse;

/// Ready messages of which the oldest waits for longer are late, in ms. The alert `DqLate` has the same limit.
const LATE: i64 = 60_000;
/// Ready messages without a consumer are reported after this time, in ms: consumers that poll are away for moments.
const UNSERVED: i64 = 5_000;
/// After this time, in ms, it is severe that nobody takes ready messages, or too few consumers, as in `dqctl doctor`.
const LONG: i64 = 15 * 60_000;
/// A late queue hangs if its consumers have held a message for this time, in ms: as long as [`Condition::words`] names it.
pub const HELD: i64 = 60_000;
/// For how long the dead count as growing after one has died, in ms.
pub const RECENT: i64 = 10 * 60_000;
/// For how long after the newest death the dead messages are a warning, in ms: those of a night are seen in the morning.
const NEW: i64 = 24 * 60 * 60_000;

/// How much a condition matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// As the settings intend it.
    Note,
    Warning,
    Bad,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Bad => "bad",
        }
    }
}

/// Of the same level, the most important one comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Condition {
    /// Messages cannot be forwarded.
    Failing,
    /// Pushes are refused.
    Full,
    /// More messages have died in the last minutes, and are dead still or were moved to another queue.
    Dying,
    Paused,
    /// New messages are refused, as somebody asked. That says more about what waits than what follows.
    Closed,
    /// Messages are ready, no client waits for one, none is in flight, and no delivery was seen.
    Unserved,
    /// Messages are delivered, but late.
    Late,
    /// Their groups hold all ready messages back: they are paused, at their rate or at their limit.
    Held,
    /// Consumers hold as many messages as `MAXINFLIGHT` lets them, so the others wait.
    Occupied,
    /// The rate limit holds deliveries back.
    Limited,
    /// Messages are dead, and none has died in the last minutes.
    Dead,
    /// The messages that are ready died in other queues and were moved here, where nobody has ever taken one.
    Letters,
}

/// Whether `DEADFORWARD` moves the dead messages of a queue away. If that fails, they stay.
pub fn moves_dead(info: &Fields) -> bool {
    !matches!(info.text("deadforward").as_str(), "" | "NONE") && info.int("deadforward-failing-since").is_none()
}

impl Condition {
    /// The conditions of a queue; none if nothing is unusual.
    pub fn of(info: &Fields, recent: Recent) -> Vec<(Condition, Level)> {
        let number = |name: &str| info.int(name).unwrap_or(0);
        let is_paused = number("paused") == 1;
        let is_limited = info.int("next-delivery").is_some() || recent.limited;
        let is_forwarded = !matches!(info.text("forward").as_str(), "" | "NONE");
        let is_failing = ["forward-failing-since", "deadforward-failing-since"].iter().any(|at| info.int(at).is_some());
        let limit = number("maxlen");
        let waited = info.int("oldest-ready").unwrap_or(0);
        let is_alone = number("waiting-clients") == 0 && number("inflight") == 0 && number("ready") > number("blocked");
        let most = number("maxinflight");
        let is_occupied = most > 0 && number("inflight") >= most && number("ready") > 0;
        let is_served = !is_alone || recent.delivers || is_paused || is_limited || is_forwarded;
        // Of a group that holds nothing back, those that wait for their turn are blocked as well, but not the first one.
        let is_held = number("blocked") > 0 && number("blocked") >= number("ready");
        let is_explained = is_paused || is_limited || is_held || is_occupied || is_forwarded && is_failing;
        let dies = recent.has_death(RECENT);
        let dead = if recent.has_death(NEW) { Level::Warning } else { Level::Note };
        let held = if waited >= LATE { Level::Warning } else { Level::Note };
        // A limit explains why messages wait, but not why none of them ends.
        let hangs = number("oldest-inflight") >= LONG && waited >= LONG;
        let occupied = if hangs { Level::Bad } else { held };
        let waits = if waited >= LONG { Level::Bad } else { Level::Warning };
        let all = [
            (Condition::Failing, Level::Bad, is_failing),
            (
                Condition::Full,
                Level::Bad,
                limit > 0 && number("ready") + number("delayed") + number("inflight") >= limit,
            ),
            (Condition::Dying, Level::Warning, dies && (number("dead") > 0 || moves_dead(info))),
            (Condition::Paused, Level::Warning, is_paused),
            (Condition::Closed, Level::Warning, number("closed") == 1),
            (Condition::Unserved, waits, !is_served && waited >= UNSERVED && !recent.letters),
            (Condition::Late, waits, waited >= LATE && is_served && !is_explained),
            (Condition::Held, held, is_held && !is_paused),
            (Condition::Occupied, occupied, is_occupied && !is_paused && !is_limited),
            (Condition::Limited, held, is_limited && !is_paused),
            (Condition::Dead, dead, number("dead") > 0 && !dies && !moves_dead(info)),
            (Condition::Letters, Level::Note, !is_served && waited >= UNSERVED && recent.letters),
        ];
        let is_so = all.into_iter().filter(|(.., is_so)| *is_so);
        let mut found: Vec<_> = is_so.map(|(condition, level, _)| (condition, level)).collect();
        found.sort_by_key(|(_, level)| Reverse(*level));
        found
    }

    /// The names of conditions and of their levels, in their order: `[["full", "bad"], ["paused", "warning"]]`.
    pub fn json(conditions: &[(Condition, Level)]) -> Json {
        conditions.iter().map(|(condition, level)| json!([condition.as_str(), level.as_str()])).collect()
    }

    /// Its name, in the terminal and on the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Condition::Failing => "forwarding fails",
            Condition::Full => "full",
            Condition::Unserved => "no consumer",
            Condition::Dying => "messages die",
            Condition::Late => "late",
            Condition::Paused => "paused",
            Condition::Closed => "closed",
            Condition::Held => "groups held",
            Condition::Occupied => "at its limit in flight",
            Condition::Limited => "at its rate limit",
            Condition::Dead => "dead",
            Condition::Letters => "dead letters",
        }
    }

    /// The same where there is room for few columns.
    pub fn in_short(self) -> &'static str {
        match self {
            Condition::Failing => "fwd fails",
            Condition::Unserved => "no cons.",
            Condition::Dying => "msgs die",
            Condition::Occupied => "at its limit",
            Condition::Limited => "at its rate",
            Condition::Full
            | Condition::Late
            | Condition::Paused
            | Condition::Closed
            | Condition::Held
            | Condition::Dead
            | Condition::Letters => self.as_str(),
        }
    }

    /// The same for a queue that was looked at once. Whether a consumer polls it is not to be seen then. If it is late while
    /// consumers hold messages for long, that is the likely cause.
    pub fn words(self, info: &Fields, recent: Recent) -> String {
        let length = |name: &str| info.int(name).and_then(|ms| u64::try_from(ms).ok()).map(span);
        match self {
            Condition::Unserved => {
                format!("no consumer waits (ready for {})", length("oldest-ready").unwrap_or_default())
            }
            Condition::Late | Condition::Occupied if info.int("oldest-inflight").is_some_and(|held| held >= LATE) => {
                let (held, length) = (info.int("inflight").unwrap_or(0), length("oldest-inflight").unwrap_or_default());
                format!("{} ({held} in flight, the oldest for {length})", self.as_str())
            }
            Condition::Dead => recent.dead(info),
            _ => self.as_str().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::looks::{Peeked, POLLED};
    use super::{Condition, Level, Looks, Recent, NEW, RECENT};
    use crate::reply::Fields;
    use dq_client::Value;

    fn conditions(numbers: &[(&str, i64)]) -> Vec<(Condition, Level)> {
        let fields = numbers.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect();
        Condition::of(&Fields(fields), Recent::default())
    }

    #[test]
    fn a_queue_has_several_conditions_at_once() {
        let found = conditions(&[("paused", 1), ("maxlen", 3), ("ready", 2), ("delayed", 1), ("oldest-ready", 99_000)]);
        assert_eq!(found, [(Condition::Full, Level::Bad), (Condition::Paused, Level::Warning)]);
        let both = [(Condition::Paused, Level::Warning), (Condition::Closed, Level::Warning)];
        assert_eq!(conditions(&[("paused", 1), ("closed", 1)]), both);
        assert_eq!(conditions(&[("ready", 5), ("waiting-clients", 1)]), []);
    }

    #[test]
    fn what_somebody_did_on_purpose_comes_before_what_follows_from_it() {
        let closed = |waited| conditions(&[("closed", 1), ("ready", 1), ("oldest-ready", waited)]);
        let (on_purpose, warning) = ((Condition::Closed, Level::Warning), (Condition::Unserved, Level::Warning));
        assert_eq!(closed(5_000), [on_purpose, warning]);
        // Unless that needs somebody now.
        assert_eq!(closed(15 * 60_000), [(Condition::Unserved, Level::Bad), on_purpose]);
    }

    #[test]
    fn messages_that_nobody_takes_get_worse_with_time() {
        let waited = |ms| conditions(&[("ready", 2), ("oldest-ready", ms)]);
        assert_eq!(waited(4_999), []);
        assert_eq!(waited(5_000), [(Condition::Unserved, Level::Warning)]);
        assert_eq!(waited(15 * 60_000), [(Condition::Unserved, Level::Bad)]);
    }

    #[test]
    fn a_backlog_that_consumers_do_not_work_off_gets_worse_with_time() {
        let waited = |ms| conditions(&[("ready", 2), ("inflight", 1), ("oldest-ready", ms)]);
        assert_eq!(waited(60_000), [(Condition::Late, Level::Warning)]);
        assert_eq!(waited(15 * 60_000), [(Condition::Late, Level::Bad)]);
    }

    #[test]
    fn messages_that_wait_for_a_limit_have_no_missing_consumer() {
        let old = [("ready", 2), ("oldest-ready", 70_000)];
        for (more, expected) in [
            (("inflight", 1), vec![(Condition::Late, Level::Warning)]),
            // All of them wait for their groups.
            (("blocked", 2), vec![(Condition::Held, Level::Warning)]),
            (("next-delivery", 9), vec![(Condition::Limited, Level::Warning)]),
        ] {
            assert_eq!(conditions(&[&old[..], &[more]].concat()), expected, "{more:?}");
        }
        let full = [("maxinflight", 2), ("inflight", 2)];
        let hung = [("oldest-inflight", 15 * 60_000), ("oldest-ready", 15 * 60_000), ("ready", 1)];
        assert_eq!(conditions(&[&full[..], &hung].concat()), [(Condition::Occupied, Level::Bad)]);
        assert_eq!(conditions(&[&old[..], &full].concat()), [(Condition::Occupied, Level::Warning)]);
        assert_eq!(conditions(&[&full[..], &[("ready", 1)]].concat()), [(Condition::Occupied, Level::Note)]);
        assert_eq!(conditions(&[("ready", 1), ("next-delivery", 9)]), [(Condition::Limited, Level::Note)]);
    }

    #[test]
    fn a_rate_limit_explains_what_waits_between_two_deliveries_too() {
        let info = |more: &[(&str, i64)]| {
            let all = [&[("ready", 2), ("oldest-ready", 70_000), ("inflight", 1)][..], more].concat();
            Fields(all.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect())
        };
        let mut looks = Looks::default();
        let mut at = |now, more: &[(&str, i64)]| {
            let recent = looks.note(now, &info(more), Peeked::default());
            Condition::of(&info(more), recent)
        };
        let (limited, late) = ([(Condition::Limited, Level::Warning)], [(Condition::Late, Level::Warning)]);
        assert_eq!(at(1_000, &[("next-delivery", 9)]), limited);
        assert_eq!(at(10_999, &[]), limited);
        assert_eq!(at(11_000, &[]), late);
    }

    #[test]
    fn what_cannot_be_forwarded_is_not_late_as_well() {
        let fields = [("ready", Value::Int(2)), ("oldest-ready", Value::Int(70_000))].into_iter();
        let failing = [("forward", Value::BulkString(b"STREAM s".to_vec())), ("forward-failing-since", Value::Int(9))];
        let info = Fields(fields.chain(failing).map(|(name, value)| (name.to_owned(), value)).collect());
        assert_eq!(Condition::of(&info, Recent::default()), [(Condition::Failing, Level::Bad)]);
    }

    #[test]
    fn the_dead_grow_for_minutes_after_one_has_died() {
        let mut looks = Looks::default();
        let mut dies = |now, died| {
            let info = Fields(vec![("died".to_owned(), Value::Int(died))]);
            looks.note(now, &info, Peeked::default()).has_death(RECENT)
        };
        assert!(!dies(0, 5));
        assert!(dies(10, 6));
        assert!(dies(RECENT, 6));
        assert!(!dies(RECENT + 10, 6));
        // It was created again.
        assert!(!dies(RECENT + 20, 0));
        assert!(dies(RECENT + 30, 1));
    }

    #[test]
    fn a_death_before_the_first_look_counts_for_as_long() {
        let info = Fields(["dead", "died"].map(|name| (name.to_owned(), Value::Int(5))).into());
        for (newest_death, expected) in [(Some(1_000), true), (Some(999), false), (None, false)] {
            let peeked = Peeked { newest_death, letters: None };
            assert_eq!(Looks::default().note(RECENT + 999, &info, peeked).has_death(RECENT), expected);
        }
    }

    #[test]
    fn a_consumer_that_polls_is_seen_by_its_deliveries() {
        let mut looks = Looks::default();
        let mut at = |now, delivered, waited| {
            let numbers = [("ready", 2), ("oldest-ready", waited), ("delivered", delivered)];
            let info = Fields(numbers.map(|(name, number)| (name.to_owned(), Value::Int(number))).into());
            Condition::of(&info, looks.note(now, &info, Peeked::default()))
        };
        let (unserved, late) = ((Condition::Unserved, Level::Warning), (Condition::Late, Level::Warning));
        assert_eq!(at(0, 7, 9_000), [unserved], "the first look shows no delivery");
        assert_eq!(at(1_000, 8, 9_000), []);
        assert_eq!(at(2_000, 8, 70_000), [late]);
        assert_eq!(at(1_000 + POLLED, 8, 70_000), [unserved]);
    }

    #[test]
    fn letters_that_nobody_has_ever_taken_have_no_missing_consumer() {
        let at = |delivered| {
            let numbers = [("ready", 2), ("oldest-ready", 20 * 60_000), ("delivered", delivered)];
            let info = Fields(numbers.map(|(name, number)| (name.to_owned(), Value::Int(number))).into());
            let peeked = Peeked { newest_death: None, letters: Some(true) };
            Condition::of(&info, Looks::default().note(0, &info, peeked))
        };
        assert_eq!(at(0), [(Condition::Letters, Level::Note)]);
        assert_eq!(at(1), [(Condition::Unserved, Level::Bad)]);
    }

    #[test]
    fn one_look_says_no_more_than_it_shows() {
        let info = Fields(vec![("oldest-ready".to_owned(), Value::Int(180_000))]);
        assert_eq!(Condition::Unserved.words(&info, Recent::default()), "no consumer waits (ready for 3m)");
    }

    #[test]
    fn a_late_queue_whose_messages_are_held_for_long_says_so() {
        let words = |held| {
            let numbers = [("inflight", 25), ("oldest-inflight", held)];
            let info = Fields(numbers.map(|(name, number)| (name.to_owned(), Value::Int(number))).into());
            Condition::Late.words(&info, Recent::default())
        };
        assert_eq!(words(480_000), "late (25 in flight, the oldest for 8m)");
        assert_eq!(words(59_999), "late");
    }

    #[test]
    fn messages_die_also_if_the_dead_are_moved_away() {
        let dies = |target: &str| {
            let target = Value::BulkString(target.into());
            let info = Fields(vec![("dead".to_owned(), Value::Int(0)), ("deadforward".to_owned(), target)]);
            Condition::of(&info, Recent { newest_death: Some(0), ..Recent::default() })
        };
        assert_eq!((dies("QUEUE q:dead"), dies("NONE")), (vec![(Condition::Dying, Level::Warning)], vec![]));
    }

    #[test]
    fn the_dead_of_last_night_are_a_warning_in_the_morning() {
        let info = Fields(vec![("dead".to_owned(), Value::Int(30))]);
        for (newest_death, condition, level, words) in [
            (Some(RECENT - 1), Condition::Dying, Level::Warning, "messages die"),
            (Some(RECENT), Condition::Dead, Level::Warning, "30 dead, the newest 10m ago"),
            (Some(NEW - 1), Condition::Dead, Level::Warning, "30 dead, the newest 23h59m ago"),
            (Some(NEW), Condition::Dead, Level::Note, "30 dead, the newest 1d ago"),
            // The user may not look at them.
            (None, Condition::Dead, Level::Note, "30 dead"),
        ] {
            let recent = Recent { newest_death, ..Recent::default() };
            assert_eq!(Condition::of(&info, recent), [(condition, level)], "{newest_death:?}");
            assert_eq!(condition.words(&info, recent), words);
        }
    }

    #[test]
    fn the_newest_death_is_that_of_a_message_that_is_still_dead() {
        let mut looks = Looks::default();
        let mut at = |now, dead, died, newest_death| {
            let info =
                Fields([("dead", dead), ("died", died)].map(|(name, n)| (name.to_owned(), Value::Int(n))).into());
            looks.note(now, &info, Peeked { newest_death, letters: None }).newest_death
        };
        assert_eq!(at(5_000, 1, 1, Some(1_000)), Some(4_000));
        assert_eq!(at(6_000, 2, 2, None), Some(0));
        // The newer one was redriven.
        assert_eq!(at(8_000, 1, 2, Some(1_000)), Some(7_000));
    }
}
