//! The conditions of a queue that deserve attention, from `DQ.INFO`: the same in `dqctl ls`, `top` and `web`.
//!
//! A queue can have several conditions at once, such as paused and full.

use super::refusals::Refusals;
use crate::board::dead::is_letter;
use crate::server::{reply, Message, QueueInfo};
use crate::text::{millis, span};
use dq_client::{blocking::Client, cmd, Resend};
use serde_json::{json, Value as Json};
use std::cmp::Reverse;
use std::time::Duration;

/// Ready messages are late if the oldest one has waited for longer. The alert `DqLate` has the same limit.
const LATE: Duration = Duration::from_secs(60);
/// Ready messages without a consumer are reported after this time: consumers that poll are away for moments.
const UNSERVED: Duration = Duration::from_secs(5);
/// After this time, it is severe that nobody takes ready messages, or too few consumers, as in `dqctl doctor`.
const LONG: Duration = Duration::from_secs(15 * 60);
/// A queue has a consumer for this time after a delivery, although nobody waits: consumers can poll without
/// `BLOCK`.
pub const POLLED: Duration = Duration::from_secs(60);
/// A late queue hangs if its consumers have held a message for this time: as long as [`Condition::words`] names
/// it.
pub const HELD: Duration = Duration::from_secs(60);
/// For how long the dead count as growing after one has died.
pub const RECENT: Duration = Duration::from_secs(10 * 60);
/// For how long after the newest death the dead messages are a warning: those of a night are seen in the
/// morning.
const NEW: Duration = Duration::from_secs(24 * 60 * 60);

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

/// Why messages wait, where `DQ.INFO` does not say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untaken {
    /// There is no consumer, or there are too few.
    ByConsumers,
    /// The queue is for dead letters, which need no consumer: nothing was ever taken from it, and its first message
    /// died in another queue.
    Letters,
    /// The server refuses pops.
    Refused,
}

impl Untaken {
    pub fn decide(is_refused: bool, has_letters: bool) -> Untaken {
        match (is_refused, has_letters) {
            (true, _) => Untaken::Refused,
            (false, true) => Untaken::Letters,
            (false, false) => Untaken::ByConsumers,
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
    /// New messages are refused because somebody closed the queue. This explains waiting messages better than the
    /// conditions below.
    Closed,
    /// The server refuses pops, so nothing is delivered, whatever consumers do.
    Refused,
    /// Messages are ready, no client waits for one, none is in flight, and no delivery was seen.
    Unserved,
    /// Messages are delivered, but late.
    Late,
    /// Their groups hold all ready messages back: they are paused, at their rate or at their limit.
    GroupsHeld,
    /// Consumers hold as many messages as `MAXINFLIGHT` lets them, so the others wait.
    Occupied,
    /// The rate limit holds deliveries back.
    Limited,
    /// Messages are dead, and none has died in the last minutes.
    Dead,
    /// The ready messages died in other queues and were moved here, and none was ever taken.
    Letters,
}

/// The facts from which the conditions of a queue follow.
struct Signs<'a> {
    info: &'a QueueInfo,
    /// For how long the oldest ready message has been due.
    waited: Duration,
    is_full: bool,
    is_limited: bool,
    cause: Untaken,
}

impl Signs<'_> {
    fn read(info: &QueueInfo, cause: Untaken) -> Signs<'_> {
        let limit = info.settings.max_len.unwrap_or(0);
        Signs {
            info,
            waited: info.oldest_ready.unwrap_or_default(),
            is_full: limit > 0 && info.ready + info.delayed + info.inflight >= limit,
            is_limited: info.next_delivery.is_some(),
            cause,
        }
    }

    /// Whether a consumer was seen, or something else explains that there is none.
    fn is_served(&self) -> bool {
        let info = self.info;
        let is_alone = info.waiting_clients == 0 && info.inflight == 0 && info.ready > info.blocked;
        let was_polled = info.last_delivery.is_some_and(|ago| ago < POLLED);
        !is_alone || was_polled || info.paused || self.is_limited || info.is_forwarded()
    }

    fn is_unserved(&self) -> bool {
        !self.is_served() && self.waited >= UNSERVED
    }

    /// Whether messages wait for long although there are consumers, and nothing explains that.
    fn is_late(&self) -> bool {
        self.waited >= LATE && self.is_served() && !self.is_explained()
    }

    fn is_occupied(&self) -> bool {
        let most = self.info.settings.max_inflight.unwrap_or(0);
        most > 0 && self.info.inflight >= most && self.info.ready > 0
    }

    /// Whether no message ends: consumers hold them for long, while others wait for long.
    fn is_stuck(&self) -> bool {
        self.info.oldest_inflight.unwrap_or_default() >= LONG && self.waited >= LONG
    }

    /// Whether groups hold back all ready messages. In a group that holds nothing back, all messages but the first one
    /// are blocked as well.
    fn are_groups_held(&self) -> bool {
        self.info.blocked > 0 && self.info.blocked >= self.info.ready
    }

    /// Whether something that is a condition of its own explains why messages wait.
    fn is_explained(&self) -> bool {
        let is_stuck_at_target = self.info.is_forwarded() && self.info.is_failing();
        self.info.paused || self.is_limited || self.are_groups_held() || self.is_occupied() || is_stuck_at_target
    }

    /// Whether one of the dead messages died within this time, or any message if the dead are moved away.
    fn has_death_within(&self, time: Duration) -> bool {
        let newest = if self.info.moves_dead() { self.info.last_death } else { self.info.newest_dead };
        newest.is_some_and(|ago| ago < time)
    }

    fn are_dying(&self) -> bool {
        self.has_death_within(RECENT) && (self.info.dead > 0 || self.info.moves_dead())
    }

    /// The condition of messages that wait although nothing in the queue holds them back, if there are any.
    fn wait(&self) -> Option<Condition> {
        match self.cause {
            Untaken::Refused => (self.is_unserved() || self.is_late()).then_some(Condition::Refused),
            Untaken::ByConsumers | Untaken::Letters if self.is_late() => Some(Condition::Late),
            Untaken::ByConsumers => self.is_unserved().then_some(Condition::Unserved),
            Untaken::Letters => self.is_unserved().then_some(Condition::Letters),
        }
    }

    /// The level of messages that wait although nothing in the queue holds them back.
    fn level_of_wait(&self) -> Level {
        match self.cause {
            Untaken::Letters if self.is_unserved() => Level::Note,
            Untaken::ByConsumers | Untaken::Letters | Untaken::Refused if self.waited >= LONG => Level::Bad,
            Untaken::ByConsumers | Untaken::Letters | Untaken::Refused => Level::Warning,
        }
    }

    /// The level of a limit that holds messages back.
    fn level_of_limit(&self) -> Level {
        if self.waited >= LATE {
            Level::Warning
        } else {
            Level::Note
        }
    }
}

impl Condition {
    /// All of them, in the order in which those of the same level are listed: causes before what follows from them.
    pub const ALL: [Condition; 13] = [
        Condition::Failing,
        Condition::Paused,
        Condition::Full,
        Condition::Dying,
        Condition::Closed,
        Condition::Refused,
        Condition::Unserved,
        Condition::Letters,
        Condition::Late,
        Condition::GroupsHeld,
        Condition::Occupied,
        Condition::Limited,
        Condition::Dead,
    ];

    /// The conditions of a queue; none if nothing is unusual.
    pub fn find_all(info: &QueueInfo, cause: Untaken) -> Vec<(Condition, Level)> {
        let signs = Signs::read(info, cause);
        let present = Condition::ALL.into_iter().filter_map(|one| Some((one, one.level(&signs)?)));
        let mut found: Vec<_> = present.collect();
        found.sort_by_key(|(_, level)| Reverse(*level));
        found
    }

    /// How much it matters; `None` if the queue does not have it.
    fn level(self, signs: &Signs) -> Option<Level> {
        let info = signs.info;
        match self {
            Condition::Failing => info.is_failing().then_some(Level::Bad),
            // It fills up because it is paused.
            Condition::Paused => info.paused.then_some(if signs.is_full { Level::Bad } else { Level::Warning }),
            Condition::Full => signs.is_full.then_some(Level::Bad),
            Condition::Dying => signs.are_dying().then_some(Level::Warning),
            Condition::Closed => info.closed.then_some(Level::Warning),
            Condition::Refused | Condition::Unserved | Condition::Letters | Condition::Late => {
                (signs.wait() == Some(self)).then_some(signs.level_of_wait())
            }
            Condition::GroupsHeld => (signs.are_groups_held() && !info.paused).then_some(signs.level_of_limit()),
            Condition::Occupied if info.paused || signs.is_limited || !signs.is_occupied() => None,
            // A limit explains why messages wait, but not why none of them ends.
            Condition::Occupied => Some(if signs.is_stuck() { Level::Bad } else { signs.level_of_limit() }),
            Condition::Limited => (signs.is_limited && !info.paused).then_some(signs.level_of_limit()),
            Condition::Dead if info.dead == 0 || signs.has_death_within(RECENT) || info.moves_dead() => None,
            Condition::Dead => Some(if signs.has_death_within(NEW) { Level::Warning } else { Level::Note }),
        }
    }

    /// The same for any queue. The server and the first message are read if they decide it.
    pub fn read(client: &Client, queue: &[u8], info: &QueueInfo) -> Vec<(Condition, Level)> {
        let is_refused = waits_for_pops(info) && Refusals::default().concern(client, queue);
        let has_letters = !is_refused && may_be_letters(info) && begins_with_letter(client, queue);
        Condition::find_all(info, Untaken::decide(is_refused, has_letters))
    }

    /// The names of conditions and of their levels, in their order: `[["full", "bad"], ["paused", "warning"]]`.
    pub fn json(conditions: &[(Condition, Level)]) -> Json {
        conditions.iter().map(|(condition, level)| json!([condition.as_str(), level.as_str()])).collect()
    }

    /// All of them with what explains them, the most important first; `open` if nothing is unusual.
    pub fn sentence(conditions: &[(Condition, Level)], info: &QueueInfo) -> String {
        let words: Vec<String> = conditions.iter().map(|(condition, _)| condition.words(info)).collect();
        if words.is_empty() {
            "open".to_owned()
        } else {
            words.join(", ")
        }
    }

    /// Its name, in the terminal and on the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Condition::Failing => "forwarding fails",
            Condition::Full => "full",
            Condition::Dying => "messages die",
            Condition::Paused => "paused",
            Condition::Closed => "closed",
            Condition::Refused => "writes refused",
            Condition::Unserved => "no consumer",
            Condition::Late => "late",
            Condition::GroupsHeld => "groups held",
            Condition::Occupied => "at its limit in flight",
            Condition::Limited => "at its rate limit",
            Condition::Dead => "dead",
            Condition::Letters => "dead letters",
        }
    }

    /// The same with what explains it. If a queue is late while consumers hold messages for long, that is the likely
    /// cause.
    pub fn words(self, info: &QueueInfo) -> String {
        let length = |time: Option<Duration>| time.map(|time| span(millis(time)));
        match self {
            Condition::Unserved => {
                format!("no consumer (ready for {})", length(info.oldest_ready).unwrap_or_default())
            }
            Condition::Late | Condition::Occupied if info.oldest_inflight.is_some_and(|held| held >= LATE) => {
                let length = length(info.oldest_inflight).unwrap_or_default();
                format!("{} ({} in flight, the oldest for {length})", self.as_str(), info.inflight)
            }
            Condition::Dead => {
                let newest = length(info.newest_dead).map_or_else(String::new, |ago| format!(", the newest {ago} ago"));
                format!("{} dead{newest}", info.dead)
            }
            Condition::Failing | Condition::Full | Condition::Dying | Condition::Paused | Condition::Closed => {
                self.as_str().to_owned()
            }
            Condition::Refused | Condition::Late | Condition::Letters => self.as_str().to_owned(),
            Condition::GroupsHeld | Condition::Occupied | Condition::Limited => self.as_str().to_owned(),
        }
    }
}

/// Whether nothing was ever taken from a queue in which messages wait without a consumer.
pub fn may_be_letters(info: &QueueInfo) -> bool {
    info.totals.delivered == 0 && Signs::read(info, Untaken::ByConsumers).is_unserved()
}

/// Whether messages wait that consumers could take, as far as `DQ.INFO` says.
pub fn waits_for_pops(info: &QueueInfo) -> bool {
    Signs::read(info, Untaken::ByConsumers).wait().is_some()
}

/// Whether the first message that waits in a queue died in another one. False if the user may not read it.
pub fn begins_with_letter(client: &Client, queue: &[u8]) -> bool {
    let first = |state: &str| {
        let reply = client.call(cmd("DQ.PEEK").arg(queue).arg(state).arg("COUNT").arg(1), Resend::Harmless).ok()?;
        Message::read(reply::list(reply).ok()?.into_iter().next()?).ok()?
    };
    ["ready", "delayed"].into_iter().find_map(first).is_some_and(|one| is_letter(&one))
}

#[cfg(test)]
mod tests {
    use super::{waits_for_pops, Condition, Level, Untaken, NEW, POLLED, RECENT};
    use crate::server::QueueInfo;
    use crate::text::millis;
    use dq_client::Value;

    fn info(numbers: &[(&str, i64)]) -> QueueInfo {
        QueueInfo::with_numbers(numbers)
    }

    fn ms(time: std::time::Duration) -> i64 {
        i64::try_from(millis(time)).unwrap()
    }

    fn conditions(numbers: &[(&str, i64)]) -> Vec<(Condition, Level)> {
        Condition::find_all(&info(numbers), Untaken::ByConsumers)
    }

    #[test]
    fn a_queue_has_several_conditions_at_once() {
        let found = conditions(&[("paused", 1), ("maxlen", 3), ("ready", 2), ("delayed", 1), ("oldest-ready", 99_000)]);
        assert_eq!(found, [(Condition::Paused, Level::Bad), (Condition::Full, Level::Bad)], "the pause is the cause");
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
            (("blocked", 2), vec![(Condition::GroupsHeld, Level::Warning)]),
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
    fn what_cannot_be_forwarded_is_not_late_as_well() {
        let fields = [("ready", Value::Int(2)), ("oldest-ready", Value::Int(70_000))].into_iter();
        let failing = [("forward", Value::BulkString(b"STREAM s".to_vec())), ("forward-failing-since", Value::Int(9))];
        let info = QueueInfo::with(fields.chain(failing));
        assert_eq!(Condition::find_all(&info, Untaken::ByConsumers), [(Condition::Failing, Level::Bad)]);
    }

    #[test]
    fn a_consumer_that_polls_is_seen_by_its_last_delivery() {
        let at = |waited, ago| conditions(&[("ready", 2), ("oldest-ready", waited), ("last-delivery", ago)]);
        let (unserved, late) = ((Condition::Unserved, Level::Warning), (Condition::Late, Level::Warning));
        assert_eq!(at(9_000, 1_000), []);
        let polled = ms(POLLED);
        assert_eq!(at(70_000, polled - 1), [late]);
        assert_eq!(at(70_000, polled), [unserved]);
    }

    #[test]
    fn nobody_has_to_take_dead_letters() {
        let waits = info(&[("ready", 2), ("oldest-ready", 20 * 60_000), ("closed", 1)]);
        let closed = (Condition::Closed, Level::Warning);
        assert_eq!(Condition::find_all(&waits, Untaken::ByConsumers), [(Condition::Unserved, Level::Bad), closed]);
        assert_eq!(Condition::find_all(&waits, Untaken::Letters), [closed, (Condition::Letters, Level::Note)]);
    }

    #[test]
    fn a_server_that_refuses_pops_is_the_cause_whether_consumers_are_seen() {
        let old = [("ready", 2), ("oldest-ready", 70_000)];
        let refused = vec![(Condition::Refused, Level::Warning)];
        for more in [&[][..], &[("waiting-clients", 1)], &[("inflight", 1)], &[("last-delivery", 1_000)]] {
            let info = info(&[&old[..], more].concat());
            assert!(waits_for_pops(&info), "{more:?}");
            assert_eq!(Condition::find_all(&info, Untaken::Refused), refused, "{more:?}");
        }
        // What explains the wait without the server stays the cause.
        for (more, cause) in [(("paused", 1), Condition::Paused), (("next-delivery", 9), Condition::Limited)] {
            let info = info(&[&old[..], &[more]].concat());
            assert!(!waits_for_pops(&info), "{more:?}");
            assert_eq!(Condition::find_all(&info, Untaken::Refused), [(cause, Level::Warning)], "{more:?}");
        }
    }

    #[test]
    fn a_late_queue_whose_messages_are_held_for_long_says_so() {
        let words = |held| Condition::Late.words(&info(&[("inflight", 25), ("oldest-inflight", held)]));
        assert_eq!(words(480_000), "late (25 in flight, the oldest for 8m)");
        assert_eq!(words(59_999), "late");
    }

    #[test]
    fn messages_die_also_if_the_dead_are_moved_away() {
        let dies = |target: &str| {
            let target = ("deadforward", Value::BulkString(target.into()));
            let numbers = ["dead", "last-death"].map(|name| (name, Value::Int(0)));
            Condition::find_all(&QueueInfo::with(numbers.into_iter().chain([target])), Untaken::ByConsumers)
        };
        assert_eq!((dies("QUEUE q:dead"), dies("NONE")), (vec![(Condition::Dying, Level::Warning)], vec![]));
    }

    #[test]
    fn the_dead_of_last_night_are_a_warning_in_the_morning() {
        for (newest, condition, level, words) in [
            (ms(RECENT) - 1, Condition::Dying, Level::Warning, "messages die"),
            (ms(RECENT), Condition::Dead, Level::Warning, "30 dead, the newest 10m ago"),
            (ms(NEW) - 1, Condition::Dead, Level::Warning, "30 dead, the newest 23h59m ago"),
            (ms(NEW), Condition::Dead, Level::Note, "30 dead, the newest 1d ago"),
        ] {
            // One that died later was redriven.
            let info = info(&[("dead", 30), ("newest-dead", newest), ("last-death", 0)]);
            assert_eq!(Condition::find_all(&info, Untaken::ByConsumers), [(condition, level)], "{newest}");
            assert_eq!(condition.words(&info), words);
        }
    }
}
