//! The settings of a queue: `settings!` declares each with its type, default, range and the words of clients.

use super::backoff::{Backoff, Percent};
use super::errors::ERRORS_MAX;
use super::rate::{Rate, RATE_MAX, RATE_PERIOD_MAX};
use super::time::DurationMs;
use std::ffi::CStr;
use std::ops::RangeInclusive;

/// The largest number of messages that a setting can hold: a double, and so any client, represents it exactly.
pub const MAX_LENGTH: u64 = (1 << 53) - 1;

/// The largest payload size that a setting can hold, in bytes: the server's own default limit for a string.
pub const MAX_PAYLOAD: u64 = 512 * 1024 * 1024;

/// The longest deduplication window, in milliseconds: a week.
pub const MAX_DEDUPE: u64 = 7 * 24 * 60 * 60 * 1000;

/// How many times a message may be redelivered after its first delivery; -1 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries(i32);

impl Retries {
    /// No limit.
    pub const UNLIMITED: Retries = Retries(-1);

    /// At most `count` redeliveries, where -1 means no limit. Returns `None` if `count` is less than -1.
    pub const fn new(count: i32) -> Option<Retries> {
        if count < -1 {
            None
        } else {
            Some(Retries(count))
        }
    }

    /// The number of redeliveries; -1 if there is no limit.
    pub const fn count(self) -> i32 {
        self.0
    }

    /// Whether a message that was delivered `attempts` times may not be delivered again.
    pub const fn spent(self, attempts: u32) -> bool {
        self.0 >= 0 && attempts > self.0 as u32
    }
}

/// Declares [`Settings`], its default values, and [`FIELDS`]: one row for each number in it.
///
/// An entry reads `field: Type = default, [rows]`, and a row reads `path code "name", given, unit, range`.
macro_rules! settings {
    ($($(#[$doc:meta])* $setting:ident: $type:ty = $default:expr, [
        $($(#[$known:meta])?
            $head:ident $(. $tail:ident)* $code:literal $name:literal, $given:expr, $unit:expr, $range:expr;)+
    ])+) => {
        /// The settings of one queue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Settings { $($(#[$doc])* pub $setting: $type,)+ }

        impl Settings {
            /// The settings of a queue for which nothing is configured.
            #[allow(unused_doc_comments)]
            pub const DEFAULT: Settings = Settings { $($(#[$doc])* $setting: $default,)+ };
        }

        /// Every number of the settings, in the order in which `DQ.INFO` shows them. The numbers of one option follow
        /// each other.
        pub const FIELDS: &[Field] = &[$($(
            $(#[$known])?
            Field {
                name: $name,
                code: $code,
                given: $given,
                unit: $unit,
                range: $range,
                get: |settings| settings.$head$(.$tail)*.to_number(),
                set: |settings, number| settings.$head$(.$tail)* = Number::from_number(number),
            },
        )+)+];
    };
}

// Each setting has one entry here, and a code that no other has. The options of `DQ.CREATE` and `DQ.ALTER`, the
// parameter `dq.default-<name>`, the field of `DQ.INFO` and the check of what comes from a file are all made from these
// rows.
settings! {
    /// The duration of a lease, at least 1 ms.
    lease: DurationMs = DurationMs::new(30_000), [
        lease 1 "lease", Given::Option(c"LEASE", c"lease-ms"), Unit::Ms, 1..=DURATION;
    ]
    /// The number of redeliveries before a message becomes dead.
    retries: Retries = Retries(16), [
        retries 2 "retries", Given::Option(c"RETRIES", c"retries"), Unit::Plain, -1..=i32::MAX as i64;
    ]
    /// The delay after a nack that sets none.
    backoff: Backoff = Backoff {
        base: DurationMs::new(1_000), max: DurationMs::new(3_600_000), jitter: Percent::ZERO
    }, [
        backoff.base 3 "backoff-base", Given::First(c"BACKOFF", c"backoff", c"base-ms"), Unit::Ms, 0..=DURATION;
        backoff.max 4 "backoff-max", Given::Next(c"max-ms"), Unit::Ms, 0..=DURATION;
        backoff.jitter 5 "backoff-jitter", Given::Optional(c"JITTER", c"percent"), Unit::Plain, 0..=Percent::MAX as i64;
    ]
    /// If a message is not completed within this time after it was due, it becomes dead. Zero means no limit.
    ttl: DurationMs = DurationMs::ZERO, [
        ttl 6 "ttl", Given::Option(c"TTL", c"ttl-ms"), Unit::Ms, 0..=DURATION;
    ]
    /// The largest number of messages, not counting dead and done ones. Zero means no limit.
    maxlen: u64 = 0, [
        maxlen 7 "maxlen", Given::Option(c"MAXLEN", c"messages"), Unit::Plain, 0..=LENGTH;
    ]
    /// The largest number of running leases. Zero means no limit.
    maxinflight: u64 = 0, [
        maxinflight 8 "maxinflight", Given::Option(c"MAXINFLIGHT", c"leases"), Unit::Plain, 0..=LENGTH;
    ]
    /// The largest number of deliveries that begin in any span of the period; [`Rate::OFF`] means no limit.
    rate: Rate = Rate::OFF, [
        rate.most 12 "rate", Given::First(c"RATE", c"rate", c"deliveries"), Unit::Plain, 0..=RATE_MAX as i64;
        rate.period 13 "rate-period", Given::Next(c"period-ms"), Unit::Ms, 0..=RATE_PERIOD_MAX.as_ms() as i64;
    ]
    /// The largest number of dead messages; `None`, which clients write as -1, means no limit.
    deadlen: Option<u64> = None, [
        deadlen 9 "deadlen", Given::Option(c"DEADLEN", c"dead-messages"), Unit::Plain, -1..=LENGTH;
    ]
    /// How long a dead message is kept. Zero keeps it forever.
    deadttl: DurationMs = DurationMs::ZERO, [
        deadttl 10 "deadttl", Given::Option(c"DEADTTL", c"dead-ttl-ms"), Unit::Ms, 0..=DURATION;
    ]
    /// How long a message is retained after its completion. Zero means not at all.
    retain: DurationMs = DurationMs::ZERO, [
        retain 15 "retain", Given::Option(c"RETAIN", c"retain-ms"), Unit::Ms, 0..=DURATION;
    ]
    /// The largest number of done messages; `None`, which clients write as -1, means no limit.
    donelen: Option<u64> = None, [
        donelen 16 "donelen", Given::Option(c"DONELEN", c"done-messages"), Unit::Plain, -1..=LENGTH;
    ]
    /// The largest payload that is accepted, in bytes, at most [`MAX_PAYLOAD`]. Zero means no limit.
    maxpayload: u64 = 0, [
        maxpayload 11 "maxpayload", Given::Option(c"MAXPAYLOAD", c"bytes"), Unit::Plain, 0..=MAX_PAYLOAD as i64;
    ]
    /// How many messages of a group may be in flight or wait for a retry. Zero means no limit.
    groupinflight: u64 = 1, [
        groupinflight 17 "groupinflight", Given::Option(c"GROUPINFLIGHT", c"messages"), Unit::Plain, 0..=LENGTH;
    ]
    /// The largest number of messages of a group whose delivery begins in any span of the period; [`Rate::OFF`] means
    /// no limit.
    grouprate: Rate = Rate::OFF, [
        grouprate.most 22 "grouprate", Given::First(c"GROUPRATE", c"grouprate", c"group-deliveries"), Unit::Plain,
            0..=RATE_MAX as i64;
        grouprate.period 23 "grouprate-period", Given::Next(c"group-period-ms"), Unit::Ms,
            0..=RATE_PERIOD_MAX.as_ms() as i64;
    ]
    /// How many errors of past attempts are kept of a message, at most [`ERRORS_MAX`]. With zero only the last text is
    /// kept.
    errors: u64 = 1, [
        errors 20 "errors", Given::Option(c"ERRORS", c"errors"), Unit::Plain, 0..=ERRORS_MAX as i64;
    ]
    /// In which order groups are served.
    grouporder: GroupOrder = GroupOrder::Due, [
        grouporder 18 "grouporder", Given::Word(c"GROUPORDER", c"order", GroupOrder::WORDS), Unit::Plain, 0..=1;
    ]
    /// How long an accepted id stays known, even if its message is gone, at most [`MAX_DEDUPE`]. Zero means only as
    /// long as its message is held.
    dedupe: DurationMs = DurationMs::ZERO, [
        dedupe 14 "dedupe", Given::Option(c"DEDUPE", c"window-ms"), Unit::Ms, 0..=MAX_DEDUPE as i64;
    ]
    /// The longest time from the beginning of a delivery to the end of its lease. Zero is no limit.
    maxlease: DurationMs = DurationMs::ZERO, [
        maxlease 19 "maxlease", Given::Option(c"MAXLEASE", c"max-lease-ms"), Unit::Ms, 0..=DURATION;
    ]
    /// How long after its push a message is due whose push says nothing about that.
    delay: DurationMs = DurationMs::ZERO, [
        delay 21 "delay", Given::Option(c"DELAY", c"delay-ms"), Unit::Ms, 0..=DURATION;
    ]
    /// A setting without a meaning, in modules that stand for the next version in tests of upgrades. Its code is that
    /// of the version after the current one.
    #[cfg(feature = "next-format")]
    colour: u64 = 0, [
        #[cfg(feature = "next-format")]
        colour 100 "colour", Given::Option(c"COLOUR", c"colour"), Unit::Plain, 0..=255;
    ]
}

/// The longest duration, in milliseconds.
const DURATION: i64 = DurationMs::MAX.as_ms() as i64;
/// The largest number of messages.
const LENGTH: i64 = MAX_LENGTH as i64;

/// One number of the settings.
pub struct Field {
    /// Its name in `DQ.INFO`; the parameter of its default is `dq.default-<name>`.
    pub name: &'static str,
    /// Its number in saved queues and effects, which no other setting ever gets. From 100 on, the hundreds say how many
    /// versions of the format do not know it.
    pub code: u8,
    /// The words with which a client gives it.
    pub given: Given,
    /// Its unit, for errors.
    pub unit: Unit,
    /// Its smallest and its largest value.
    pub range: RangeInclusive<i64>,
    /// Reads it.
    pub get: fn(&Settings) -> i64,
    /// Writes it. The number must be in the range.
    pub set: fn(&mut Settings, i64),
}

/// The words with which a client gives a number in `DQ.CREATE` and `DQ.ALTER`: the name of the option if the number
/// begins one, and last the name by which the documentation refers to the value. C strings, because servers take these.
#[derive(Clone, Copy, Debug)]
pub enum Given {
    /// The only value of an option: `LEASE lease-ms`.
    Option(&'static CStr, &'static CStr),
    /// The first of several values of an option, with the name of them all: `BACKOFF base-ms …`.
    First(&'static CStr, &'static CStr, &'static CStr),
    /// The next value of the same option: `… max-ms …`.
    Next(&'static CStr),
    /// The only value of an option, which is one of these words; the number of the setting is the index of the word.
    Word(&'static CStr, &'static CStr, &'static [Word]),
    /// A value that may follow those of the same option, after a word of its own: `… [JITTER percent]`.
    Optional(&'static CStr, &'static CStr),
}

/// A value of a setting that is a choice between words: in lower case, as it is shown, and in upper case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub &'static CStr, pub &'static CStr);

impl Field {
    /// The words from which the setting is chosen; none if it is a number.
    pub const fn words(&self) -> &'static [Word] {
        match self.given {
            Given::Word(_, _, words) => words,
            Given::Option(..) | Given::First(..) | Given::Next(_) | Given::Optional(..) => &[],
        }
    }

    /// The name of the option that begins with this setting; `None` if another one begins it.
    pub const fn option(&self) -> Option<&'static CStr> {
        match self.given {
            Given::Option(option, _) | Given::First(option, ..) | Given::Word(option, ..) => Some(option),
            Given::Next(_) | Given::Optional(..) => None,
        }
    }

    /// The word that stands for a number of this setting; `None` if the setting is a number.
    pub fn word(&self, number: i64) -> Option<&'static CStr> {
        let Word(shown, _) = usize::try_from(number).ok().and_then(|place| self.words().get(place))?;
        Some(shown)
    }
}

/// The order in which groups, and messages without a group, are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupOrder {
    /// By priority, due time and push order.
    #[default]
    Due,
    /// By priority, and among equal priorities in turn.
    Turn,
}

impl GroupOrder {
    const WORDS: &'static [Word] = &[Word(c"due", c"DUE"), Word(c"turn", c"TURN")];
}

/// The unit of a number that a client gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Milliseconds since the Unix epoch.
    UnixMs,
    /// No unit.
    Plain,
}

/// Settings that are in their ranges but contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The base of the backoff is above its maximum.
    Backoff,
    /// Only one of the two numbers of the rate is zero.
    Rate,
    /// The same of the rate of groups.
    GroupRate,
}

/// The type of a setting, and its value as the number that clients see.
trait Number {
    fn to_number(self) -> i64;
    /// Returns the value that `number` stands for. A number that is out of range becomes the nearest value.
    fn from_number(number: i64) -> Self;
}

impl Number for u64 {
    fn to_number(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }

    fn from_number(number: i64) -> Self {
        u64::try_from(number).unwrap_or(0)
    }
}

impl Number for Option<u64> {
    fn to_number(self) -> i64 {
        self.map_or(-1, u64::to_number)
    }

    fn from_number(number: i64) -> Self {
        u64::try_from(number).ok()
    }
}

impl Number for DurationMs {
    fn to_number(self) -> i64 {
        self.as_ms().to_number()
    }

    fn from_number(number: i64) -> Self {
        DurationMs::new(u64::from_number(number))
    }
}

impl Number for Percent {
    fn to_number(self) -> i64 {
        self.get().into()
    }

    fn from_number(number: i64) -> Self {
        Percent::new(u8::try_from(number).unwrap_or(0)).unwrap_or_default()
    }
}

impl Number for GroupOrder {
    fn to_number(self) -> i64 {
        self as i64
    }

    fn from_number(number: i64) -> Self {
        if number == 1 {
            GroupOrder::Turn
        } else {
            GroupOrder::Due
        }
    }
}

impl Number for Retries {
    fn to_number(self) -> i64 {
        self.count().into()
    }

    fn from_number(number: i64) -> Self {
        Retries::new(i32::try_from(number).unwrap_or(i32::MAX)).unwrap_or(Retries::UNLIMITED)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings::DEFAULT
    }
}

impl Settings {
    /// Whether every dead message is kept until a client removes it.
    pub const fn keep_all_dead(&self) -> bool {
        self.deadlen.is_none() && self.deadttl.is_zero()
    }

    /// The longest time for which a delivery may last.
    pub const fn longest_lease(&self) -> DurationMs {
        if self.maxlease.is_zero() {
            DurationMs::MAX
        } else {
            self.maxlease
        }
    }

    /// Returns which settings contradict each other, or `None` if none do.
    pub fn conflict(&self) -> Option<Conflict> {
        if self.backoff.base > self.backoff.max {
            return Some(Conflict::Backoff);
        }
        let is_half = |rate: Rate| (rate.most == 0) != rate.period.is_zero();
        let of_group = is_half(self.grouprate).then_some(Conflict::GroupRate);
        is_half(self.rate).then_some(Conflict::Rate).or(of_group)
    }

    /// Whether every value is in its range and none contradict each other; settings from a file or from the
    /// replication stream must pass this check.
    pub fn are_valid(&self) -> bool {
        FIELDS.iter().all(|field| field.range.contains(&(field.get)(self))) && self.conflict().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_each_name_is_used_once() {
        assert!(Settings::DEFAULT.are_valid());
        for field in FIELDS {
            assert_eq!(FIELDS.iter().filter(|other| other.name == field.name).count(), 1, "{}", field.name);
        }
    }

    const ONE_MS: DurationMs = DurationMs::new(1);

    #[test]
    fn each_field_is_written_and_read_within_its_range_and_refused_outside() {
        let wide = Backoff { max: DurationMs::MAX, ..Settings::DEFAULT.backoff };
        for field in FIELDS {
            let (min, max) = (*field.range.start(), *field.range.end());
            for number in [min, min + 1, max].into_iter().filter(|number| *number <= max) {
                let mut settings = Settings { backoff: wide, ..Settings::DEFAULT };
                (field.set)(&mut settings, number);
                assert_eq!((field.get)(&settings), number, "{}", field.name);
                settings.backoff.base = settings.backoff.base.min(settings.backoff.max);
                for rate in [&mut settings.rate, &mut settings.grouprate] {
                    if (rate.most == 0) != rate.period.is_zero() {
                        *rate = Rate { most: rate.most.max(1), period: rate.period.max(ONE_MS) };
                    }
                }
                assert!(settings.are_valid(), "{} {number}", field.name);
            }
        }
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::DEFAULT;
            change(&mut settings);
            !settings.are_valid()
        };
        assert!(refused(|settings| settings.lease = DurationMs::ZERO));
        assert!(refused(|settings| settings.maxlen = MAX_LENGTH + 1));
        assert!(refused(|settings| settings.maxinflight = u64::MAX));
        assert!(refused(|settings| settings.deadlen = Some(MAX_LENGTH + 1)));
        assert!(refused(|settings| settings.deadlen = Some(u64::MAX)));
        assert!(refused(|settings| settings.maxpayload = MAX_PAYLOAD + 1));
        assert!(refused(|settings| settings.backoff.base = DurationMs::MAX), "the base is above the maximum");
        assert!(refused(|settings| settings.rate.most = 1), "a rate without a period");
        assert!(refused(|settings| settings.grouprate.period = ONE_MS), "a period without a rate");
    }

    #[test]
    fn retries_count_redeliveries() {
        assert!(!Retries(1).spent(1) && Retries(1).spent(2));
        assert!(Retries(0).spent(1) && !Retries(0).spent(0));
        assert!(!Retries::UNLIMITED.spent(u32::MAX));
    }
}
