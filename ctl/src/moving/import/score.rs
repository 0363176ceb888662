//! Scores of sorted sets as due times.

/// The first and the last due time that a message can have, in Unix ms.
const FIRST: i64 = 100_000_000_000;
const LAST: i64 = 8_796_093_022_207;

/// The due time of a score, in Unix ms. Scores from `FIRST` on are ms, and others s. Scores before 1973, such as 0, are
/// due at once, before all others.
pub fn due(score: f64) -> Result<i64, String> {
    let (first, last) = (FIRST as f64, LAST as f64);
    let ms = if score < first { score * 1_000.0 } else { score };
    if ms > last {
        return Err(format!("its score {score} is later than any message can be due"));
    }
    // Rounded up, so that it is not due early, except for the last bits, which are noise after a multiplication.
    Ok(((ms - 0.01).ceil() as i64).max(FIRST))
}

#[cfg(test)]
mod tests {
    use super::{due, FIRST};

    #[test]
    fn scores_are_seconds_or_milliseconds() {
        for (score, expected) in [
            (1_763_700_000.0, 1_763_700_000_000),
            (1_763_700_000.123, 1_763_700_000_123),
            (1_763_700_000.5, 1_763_700_000_500),
            (1_763_700_000.123_4, 1_763_700_000_124),
            (1_763_700_000_123.0, 1_763_700_000_123),
            (1.0, FIRST),
            (0.0, FIRST),
            (-5.0, FIRST),
            (f64::NEG_INFINITY, FIRST),
        ] {
            assert_eq!(due(score), Ok(expected), "{score}");
        }
        assert!(due(f64::INFINITY).is_err());
    }
}
