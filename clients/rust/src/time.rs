//! Times: those of this process, and those of the server, which are whole milliseconds, since 1970 if they are
//! instants.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The instant after this time, which may be one without an end, such as `Duration::MAX`.
pub(crate) fn after(time: Duration) -> Instant {
    // More than a clock counts would be a panic.
    Instant::now() + time.min(Duration::from_secs(u64::from(u32::MAX)))
}

/// A duration in the unit of the server. Rounded up, so that nothing is early.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A time in the unit of the server. A time before 1970 becomes 0, which the server refuses.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// The instant of a number that the server has sent.
pub(crate) fn from_unix_ms(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms)
}

#[cfg(test)]
mod tests {
    use super::{from_unix_ms, millis, unix_ms};
    use std::time::Duration;

    #[test]
    fn a_part_of_a_millisecond_counts_as_one() {
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::from_millis(5)), 5);
        assert_eq!(millis(Duration::MAX), u64::MAX);
        assert_eq!(unix_ms(from_unix_ms(1_795_272_703_079)), 1_795_272_703_079);
    }
}
