//! Command builder.

use redis::{Cmd, ToRedisArgs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A command, whose first argument is usually the key of a queue.
pub(crate) struct Command(pub(crate) Cmd);

impl Command {
    pub fn new(name: &str, first: impl ToRedisArgs) -> Command {
        let mut command = redis::cmd(name);
        command.arg(first);
        Command(command)
    }

    pub fn word(&mut self, word: impl ToRedisArgs) {
        self.0.arg(word);
    }

    pub fn maybe(&mut self, name: &str, value: Option<impl ToRedisArgs>) {
        if let Some(value) = value {
            self.option(name, value);
        }
    }

    pub fn option(&mut self, name: impl ToRedisArgs, value: impl ToRedisArgs) {
        self.0.arg(name).arg(value);
    }
}

/// A duration in the unit of the server. Rounded up, so that nothing is early.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A time in the unit of the server. A time before 1970 becomes 0, which the server refuses.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A time that the server gives in milliseconds.
pub(crate) fn time_of(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms)
}

#[cfg(test)]
mod tests {
    use super::{millis, time_of, unix_ms};
    use std::time::Duration;

    #[test]
    fn a_part_of_a_millisecond_counts_as_one() {
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::from_millis(5)), 5);
        assert_eq!(millis(Duration::MAX), u64::MAX);
        assert_eq!(unix_ms(time_of(1_795_272_703_079)), 1_795_272_703_079);
    }
}
