//! Times as people write them: `15m`, `1h30m`, and RFC 3339.

use jiff::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Units with their length in ms, the longest first.
const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The longest time that the server takes, in ms.
const LONGEST: f64 = 4_398_046_511_103.0;

const EXAMPLES: &str = "a time is a number with a unit: 500ms, 30s, 15m, 1h30m, 2d, 1w";

/// Reads a length of time such as `15m` or `1h30m`.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut total, mut rest) = (0_f64, text.trim());
    if rest.is_empty() {
        return Err(EXAMPLES.to_owned());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(EXAMPLES)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let number: f64 = number.parse().map_err(|_| EXAMPLES)?;
        let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(EXAMPLES)?;
        let unit_ms = *ms as f64;
        total += number * unit_ms;
        rest = after.trim_start();
    }
    if total > LONGEST {
        return Err("a time is at most 139 years".to_owned());
    }
    Ok(Duration::from_millis(total.round() as u64))
}

/// Reads an instant such as `2026-12-01T09:00+01:00`.
pub fn parse_instant(text: &str) -> Result<SystemTime, String> {
    let parsed: Result<Timestamp, _> = text.trim().parse();
    let instant = parsed.map_err(|_| {
        "an instant is a date, a time and an offset: 2026-12-01T09:00+01:00 or 2026-12-01T08:00:00Z".to_owned()
    })?;
    Ok(SystemTime::from(instant))
}

/// Unix ms as RFC 3339 in UTC.
pub fn instant(unix_ms: i64) -> String {
    Timestamp::from_millisecond(unix_ms).map_or_else(|_| unix_ms.to_string(), |instant| format!("{instant:.3}"))
}

/// An age or a distance as a person reads it, rounded down to two units: `1h30m`, `2d`, `1.5s`, `12ms`.
pub fn span(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms}ms");
    }
    if ms < 10_000 && ms % 1_000 >= 100 {
        return format!("{}.{}s", ms / 1_000, ms % 1_000 / 100);
    }
    let mut units = UNITS.iter().filter(|(_, unit)| *unit >= 1_000).skip_while(|(_, unit)| *unit > ms);
    let (name, unit) = units.next().copied().unwrap_or(("s", 1_000));
    let mut text = format!("{}{name}", ms / unit);
    if let Some((name, smaller)) = units.next().filter(|(_, smaller)| ms % unit >= *smaller) {
        text.push_str(&format!("{}{name}", ms % unit / smaller));
    }
    text
}

/// The same exactly, for what somebody has set: `1h1m1s`, `1s500ms`. [`parse_span`] reads it.
pub fn exact(ms: u64) -> String {
    let (mut text, mut rest) = (String::new(), ms);
    for (name, unit) in UNITS.into_iter().filter(|(name, unit)| ms >= *unit || *name == "ms") {
        if rest >= unit || ms == 0 {
            text.push_str(&format!("{}{name}", rest / unit));
            rest %= unit;
        }
    }
    text
}

/// An instant, and how far it is from the present.
pub fn with_distance(unix_ms: i64) -> String {
    format!("{} ({})", instant(unix_ms), distance(unix_ms))
}

/// How far an instant is from the present: `in 5m` or `5m ago`.
pub fn distance(unix_ms: i64) -> String {
    let distance = unix_ms.saturating_sub(now_ms());
    let length = span(distance.unsigned_abs());
    if distance > 0 {
        format!("in {length}")
    } else {
        format!("{length} ago")
    }
}

/// The present in Unix ms.
pub fn now_ms() -> i64 {
    unix_ms(SystemTime::now())
}

/// An instant in Unix ms.
pub fn unix_ms(at: SystemTime) -> i64 {
    i64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// A duration in ms.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{exact, instant, parse_instant, parse_span, span};
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn spans_are_numbers_with_units() {
        let ms = |text| parse_span(text).map(|span| span.as_millis());
        assert_eq!(ms("15m"), Ok(900_000));
        assert_eq!(ms("1h30m"), Ok(5_400_000));
        assert_eq!(ms("1h 30m"), Ok(5_400_000));
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("1.5s"), Ok(1_500));
        assert_eq!(ms("2w"), Ok(1_209_600_000));
        assert_eq!(parse_span("0"), Ok(Duration::ZERO));
        for wrong in ["", "15", "m", "15x", "1h30", "-5m", "1..2s", "9999999999999999w"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn instants_have_an_offset() {
        let expected = UNIX_EPOCH + Duration::from_secs(1_796_112_000);
        for text in ["2026-12-01T09:00+01:00", "2026-12-01T08:00:00Z", "2026-12-01 08:00:00.000Z"] {
            assert_eq!(parse_instant(text), Ok(expected), "{text}");
        }
        assert!(parse_instant("2026-12-01T09:00").is_err());
        assert!(parse_instant("tomorrow").is_err());
        assert_eq!(instant(1_796_112_000_123), "2026-12-01T08:00:00.123Z");
    }

    #[test]
    fn spans_are_shown_in_two_units() {
        let shown: Vec<String> = [0, 999, 1_500, 10_500, 61_000, 5_400_000, 90_000_000].map(span).into();
        assert_eq!(shown, ["0ms", "999ms", "1.5s", "10s", "1m1s", "1h30m", "1d1h"]);
    }

    #[test]
    fn settings_are_shown_exactly() {
        for (ms, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (1_000, "1s"),
            (1_500, "1s500ms"),
            (4_096, "4s96ms"),
            (3_611_000, "1h11s"),
            (3_661_001, "1h1m1s1ms"),
            (3_600_001, "1h1ms"),
            (604_800_000 * 2 + 86_400_000, "2w1d"),
            (4_398_046_511_103, "7271w6d7h35m11s103ms"),
        ] {
            assert_eq!(exact(ms), text);
            assert_eq!(parse_span(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
    }
}
