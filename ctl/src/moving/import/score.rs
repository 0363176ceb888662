//! Scores of sorted sets as due times.

use crate::cli::Unit;

/// The first and the last due time that a message can have, in Unix ms.
const FIRST: i64 = 100_000_000_000;
const LAST: i64 = 8_796_093_022_207;

/// The due time of a score, in Unix ms. Without a unit, scores from `FIRST` on are ms, and others s. Scores before 1973,
/// such as 0, are due at once, before all others.
pub fn due(score: f64, unit: Option<Unit>) -> Result<i64, String> {
    #[allow(clippy::cast_precision_loss, reason = "both are below 2^53")]
    let (first, last) = (FIRST as f64, LAST as f64);
    let ms = match unit {
        Some(Unit::Ms) if score > 0.0 && score < first => {
            return Err(format!("its score {score} looks like seconds: use --unit s"));
        }
        Some(Unit::Ms) => score,
        Some(Unit::S) => score * 1_000.0,
        None if score < first => score * 1_000.0,
        None => score,
    };
    if ms > last {
        return Err(format!("its score {score} is later than any message can be due"));
    }
    // Rounded up, so that it is not due early, except for the last bits, which are noise after a multiplication.
    #[allow(clippy::cast_possible_truncation, reason = "it is at most LAST")]
    Ok(((ms - 0.01).ceil() as i64).max(FIRST))
}

#[cfg(test)]
mod tests {
    use super::{due, FIRST};
    use crate::cli::Unit;

    #[test]
    fn scores_are_seconds_or_milliseconds() {
        let seconds = [1_763_700_000.0, 1_763_700_000.123, 1_763_700_000.5, 1_763_700_000.123_4, 1.0, 0.0, -5.0];
        let expected =
            [1_763_700_000_000, 1_763_700_000_123, 1_763_700_000_500, 1_763_700_000_124, FIRST, FIRST, FIRST];
        for (score, expected) in seconds.into_iter().zip(expected) {
            assert_eq!(due(score, None), Ok(expected), "{score}");
            assert_eq!(due(score, Some(Unit::S)), Ok(expected), "{score}");
        }
        for unit in [None, Some(Unit::Ms)] {
            assert_eq!(due(1_763_700_000_123.0, unit), Ok(1_763_700_000_123));
            assert_eq!(due(f64::NEG_INFINITY, unit), Ok(FIRST));
            assert!(due(f64::INFINITY, unit).is_err());
        }
        assert!(due(1_763_700_000.0, Some(Unit::Ms)).unwrap_err().contains("--unit s"));
        assert!(due(1_763_700_000_000.0, Some(Unit::S)).is_err());
    }
}
