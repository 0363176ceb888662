//! Numbers as a person reads them.

/// A number with a comma before each group of three digits.
pub fn separated(number: impl ToString) -> String {
    let number = number.to_string();
    let digits = number.trim_start_matches('-');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number;
    }
    let mut text = number.get(..number.len() - digits.len()).unwrap_or_default().to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of messages: `1 message`, `1,200 messages`.
pub fn messages(number: u64) -> String {
    counted(number, "message", "messages")
}

/// A number of things: `1 attempt`, `1,200 attempts`.
pub fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", separated(number), if number == 1 { one } else { several })
}

/// A size as a person reads it: `12 bytes`, `1.5 MiB`. It is rounded as on the page.
pub fn bytes(number: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        let size = 1_u64 << shift;
        if number >= size {
            return format!("{:.1} {unit}", number as f64 / size as f64);
        }
    }
    format!("{number} byte{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::{bytes, separated};

    #[test]
    fn numbers_have_separators() {
        let numbers = ["0", "999", "1000", "-1234567", "-", "12a"].map(separated);
        assert_eq!(numbers, ["0", "999", "1,000", "-1,234,567", "-", "12a"]);
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [1, 1_023, 1_536, 5_822, 5 << 20].map(bytes);
        assert_eq!(sizes, ["1 byte", "1023 bytes", "1.5 KiB", "5.7 KiB", "5.0 MiB"]);
    }
}
