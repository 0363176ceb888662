//! The settings of a queue: [`settings!`] declares each with its type, default, range and the words of clients.

use super::id::Sequence;
use super::time::DurationMs;
use std::ffi::CStr;
use std::ops::RangeInclusive;

/// The largest number of messages that a setting can hold: a double, and so any client, represents it exactly.
pub const MAX_LENGTH: u64 = (1 << 53) - 1;

/// The largest payload size that a setting can hold, in bytes: the server's own default limit for a string.
pub const MAX_PAYLOAD: u64 = 512 * 1024 * 1024;

/// How many times a message may be redelivered after its first delivery; -1 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries(i32);

impl Retries {
    /// No limit.
    pub const UNLIMITED: Retries = Retries(-1);

    /// At most `count` redeliveries, where -1 is no limit. Returns `None` if `count` is less than -1.
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

/// The delay before a nacked message is due again: base × 2^(attempt-1), at most max, shortened by up to `jitter`
/// percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first attempt.
    pub base: DurationMs,
    /// The longest delay.
    pub max: DurationMs,
    /// The largest share by which a delay is shortened, so that messages that failed together do not become due
    /// together.
    pub jitter: Percent,
}

/// A percentage from 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percent(u8);

impl Percent {
    /// No share at all.
    pub const ZERO: Percent = Percent(0);
    /// The largest percentage.
    pub const MAX: u8 = 100;

    /// `share` percent. Returns `None` if it is above 100.
    pub const fn new(share: u8) -> Option<Percent> {
        if share > Self::MAX {
            None
        } else {
            Some(Percent(share))
        }
    }

    /// The number, from 0 to 100.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Backoff {
    /// The delay of the message `sequence` after delivery number `attempt` (from 1).
    pub fn after(self, sequence: Sequence, attempt: u32) -> DurationMs {
        let full = self.full(attempt);
        if self.jitter == Percent::ZERO {
            return full;
        }
        // The share, in 2^-32, follows from the message and the attempt alone: the same history has the same times.
        let share = mixed(sequence.0 ^ u64::from(attempt).rotate_left(48)) >> 32;
        let cut = u128::from(full.as_ms()) * u128::from(self.jitter.0) * u128::from(share) / (100 << 32);
        DurationMs::new(full.as_ms() - u64::try_from(cut).unwrap_or(0).min(full.as_ms()))
    }

    /// The delay without jitter.
    fn full(self, attempt: u32) -> DurationMs {
        let doublings = attempt.saturating_sub(1);
        let waited = if self.base.is_zero() {
            0
        } else if doublings > self.base.as_ms().leading_zeros() {
            u64::MAX
        } else {
            self.base.as_ms().saturating_mul(1 << doublings.min(63))
        };
        DurationMs::new(waited.min(self.max.as_ms()))
    }
}

/// Returns a number of which each bit depends on all bits of `seed` (the finalizer of SplitMix64; Steele et al., 2014).
fn mixed(seed: u64) -> u64 {
    let once = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ twice >> 31
}

/// Declares [`Settings`], its default values, and [`FIELDS`]: one row for each number in it.
///
/// An entry reads `field: Type = default, [rows]`, and a row reads `path "name", given, unit, range`.
macro_rules! settings {
    ($($(#[$doc:meta])* $setting:ident: $type:ty = $default:expr, [
        $($head:ident $(. $tail:ident)* $name:literal, $given:expr, $unit:expr, $range:expr;)+
    ])+) => {
        /// The settings of one queue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Settings { $($(#[$doc])* pub $setting: $type,)+ }

        impl Settings {
            /// The settings of a queue for which nothing is configured.
            pub const DEFAULT: Settings = Settings { $($setting: $default,)+ };
        }

        /// Every number of the settings, in the order in which `DQ.INFO` shows them. The numbers of one option follow
        /// each other.
        pub const FIELDS: &[Field] = &[$($(
            Field {
                name: $name,
                given: $given,
                unit: $unit,
                range: $range,
                get: |settings| settings.$head$(.$tail)*.to_number(),
                set: |settings, number| settings.$head$(.$tail)* = Number::from_number(number),
            },
        )+)+];
    };
}

// Each setting stands here once. The options of `DQ.CREATE` and `DQ.ALTER`, the parameter `dq.default-<name>`, the
// field of `DQ.INFO` and the check of what comes from a file are all made from these rows.
settings! {
    /// The duration of a lease, at least 1 ms.
    lease: DurationMs = DurationMs::new(30_000), [
        lease "lease", Given::Option(c"LEASE", c"lease-ms"), Unit::Ms, 1..=DURATION;
    ]
    /// The number of redeliveries before a message becomes dead.
    retries: Retries = Retries(16), [
        retries "retries", Given::Option(c"RETRIES", c"retries"), Unit::Plain, -1..=i32::MAX as i64;
    ]
    /// The delay after a nack that sets none.
    backoff: Backoff = Backoff {
        base: DurationMs::new(1_000), max: DurationMs::new(3_600_000), jitter: Percent::ZERO
    }, [
        backoff.base "backoff-base", Given::First(c"BACKOFF", c"backoff", c"base-ms"), Unit::Ms, 0..=DURATION;
        backoff.max "backoff-max", Given::Next(c"max-ms"), Unit::Ms, 0..=DURATION;
        backoff.jitter "backoff-jitter", Given::Optional(c"JITTER", c"percent"), Unit::Plain, 0..=Percent::MAX as i64;
    ]
    /// If a message is not completed within this time after it was due, it becomes dead. Zero is no limit.
    ttl: DurationMs = DurationMs::ZERO, [
        ttl "ttl", Given::Option(c"TTL", c"ttl-ms"), Unit::Ms, 0..=DURATION;
    ]
    /// The largest number of messages, not counting dead ones. Zero is no limit.
    maxlen: u64 = 0, [
        maxlen "maxlen", Given::Option(c"MAXLEN", c"messages"), Unit::Plain, 0..=LENGTH;
    ]
    /// The largest number of running leases. Zero is no limit.
    maxinflight: u64 = 0, [
        maxinflight "maxinflight", Given::Option(c"MAXINFLIGHT", c"leases"), Unit::Plain, 0..=LENGTH;
    ]
    /// The largest number of dead messages; `None`, which clients write as -1, is no limit.
    deadlen: Option<u64> = None, [
        deadlen "deadlen", Given::Option(c"DEADLEN", c"dead-messages"), Unit::Plain, -1..=LENGTH;
    ]
    /// How long a dead message is kept. Zero keeps it forever.
    deadttl: DurationMs = DurationMs::ZERO, [
        deadttl "deadttl", Given::Option(c"DEADTTL", c"dead-ttl-ms"), Unit::Ms, 0..=DURATION;
    ]
    /// The largest payload that is accepted, in bytes, at most [`MAX_PAYLOAD`]. Zero is no limit.
    maxpayload: u64 = 0, [
        maxpayload "maxpayload", Given::Option(c"MAXPAYLOAD", c"bytes"), Unit::Plain, 0..=MAX_PAYLOAD as i64;
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
    /// The words by which a client gives it.
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

/// The words by which a client gives a number in `DQ.CREATE` and `DQ.ALTER`: the name of the option if the number
/// begins one, and last the name by which the documentation refers to the value. C strings, as servers take them.
#[derive(Clone, Copy, Debug)]
pub enum Given {
    /// The only value of an option: `LEASE lease-ms`.
    Option(&'static CStr, &'static CStr),
    /// The first of several values of an option, with the name of them all: `BACKOFF base-ms …`.
    First(&'static CStr, &'static CStr, &'static CStr),
    /// The next value of the same option: `… max-ms …`.
    Next(&'static CStr),
    /// A value that may follow those of the same option, after a word of its own: `… [JITTER percent]`.
    Optional(&'static CStr, &'static CStr),
}

/// The unit of a number that a client gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Milliseconds since 1970.
    UnixMs,
    /// No unit.
    Plain,
}

/// Settings that are in their ranges but contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The base of the backoff is above its maximum.
    Backoff,
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
        Percent::new(u8::try_from(number.max(0)).unwrap_or(Percent::MAX)).unwrap_or(Percent(Percent::MAX))
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

    /// Returns which settings contradict each other, or `None` if none do.
    pub fn conflict(&self) -> Option<Conflict> {
        (self.backoff.base > self.backoff.max).then_some(Conflict::Backoff)
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
    fn backoff_doubles_from_base_to_max() {
        let waits: Vec<u64> = (1..=4).map(|attempt| backoff(1_000, 5_000, 0).full(attempt).as_ms()).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 5_000]);
        assert_eq!(backoff(1_000, 5_000, 0).full(u32::MAX).as_ms(), 5_000);
        assert_eq!(backoff(0, 0, 0).full(u32::MAX), DurationMs::ZERO);
        for attempt in [43, 64, 65, 100] {
            assert_eq!(backoff(1, u64::MAX, 0).full(attempt), DurationMs::MAX, "{attempt}");
        }
    }

    fn backoff(base: u64, max: u64, jitter: u8) -> Backoff {
        Backoff { base: DurationMs::new(base), max: DurationMs::new(max), jitter: Percent::new(jitter).unwrap() }
    }

    #[test]
    fn jitter_shortens_delays_evenly_and_within_its_share() {
        let waits = |jitter| {
            let wait = move |n: u64| backoff(1_000, 1_000, jitter).after(Sequence(n << 20), 1).as_ms();
            (0..1_000).map(wait).collect::<Vec<u64>>()
        };
        assert!(waits(0).iter().all(|wait| *wait == 1_000));
        assert!(waits(25).iter().all(|wait| (750..=1_000).contains(wait)));
        let mean = waits(100).iter().sum::<u64>() / 1_000;
        assert!((450..=550).contains(&mean), "{mean}");
        assert_eq!(waits(100), waits(100), "the same history has the same times");
        assert_ne!(
            backoff(1_000, 1_000, 100).after(Sequence(7), 1),
            backoff(1_000, 1_000, 100).after(Sequence(7), 2),
            "each attempt has its own delay"
        );
        assert!(backoff(1, u64::MAX, 100).after(Sequence(7), 60) <= DurationMs::MAX);
    }

    #[test]
    fn the_defaults_are_valid_and_each_name_is_used_once() {
        assert!(Settings::DEFAULT.are_valid());
        for field in FIELDS {
            assert_eq!(FIELDS.iter().filter(|other| other.name == field.name).count(), 1, "{}", field.name);
        }
    }

    #[test]
    fn each_field_is_written_and_read_within_its_range_and_refused_outside() {
        let wide = Backoff { max: DurationMs::MAX, ..Settings::DEFAULT.backoff };
        for field in FIELDS {
            let (min, max) = (*field.range.start(), *field.range.end());
            for number in [min, min + 1, max] {
                let mut settings = Settings { backoff: wide, ..Settings::DEFAULT };
                (field.set)(&mut settings, number);
                assert_eq!((field.get)(&settings), number, "{}", field.name);
                settings.backoff.base = settings.backoff.base.min(settings.backoff.max);
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
    }

    #[test]
    fn retries_count_redeliveries() {
        assert!(!Retries(1).spent(1) && Retries(1).spent(2));
        assert!(Retries(0).spent(1) && !Retries(0).spent(0));
        assert!(!Retries::UNLIMITED.spent(u32::MAX));
    }
}
