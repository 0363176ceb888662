//! Percent-encoding and base64, as they arrive.

/// The pairs of a query, decoded to bytes.
pub fn query(text: &str) -> Vec<(String, Vec<u8>)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (String::from_utf8_lossy(&percent(name)).into_owned(), percent(value))
    };
    text.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

fn percent(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = tail;
            }
        }
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Base64 in either alphabet of RFC 4648, with or without padding.
pub fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for position in 0..4 {
            let value = group.get(position).map_or(Some(0), |digit| value_of(*digit))?;
            bits = bits << 6 | value;
        }
        let [_, decoded @ ..] = bits.to_be_bytes();
        let count = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        bytes.extend(decoded.iter().take(count));
    }
    Some(bytes)
}

fn value_of(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::{base64, query};

    #[test]
    fn queries_carry_any_bytes() {
        let pairs = query("queue=a%20b+c&id=%ff%00&x&&y=%zz%4");
        let value = |name: &str| pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
        assert_eq!(value("queue").unwrap(), b"a b c");
        assert_eq!(value("id").unwrap(), [255, 0]);
        assert_eq!(value("x").unwrap(), b"");
        assert_eq!(value("y").unwrap(), b"%zz%4");
        assert!(query("").is_empty());
    }

    #[test]
    fn both_alphabets_of_base64_are_read() {
        for text in ["//79", "__79"] {
            assert_eq!(base64(text.as_bytes()).unwrap(), [255, 254, 253], "{text}");
        }
        for text in ["/w==", "_w", "/w"] {
            assert_eq!(base64(text.as_bytes()).unwrap(), [255], "{text}");
        }
        assert_eq!(base64(b"").unwrap(), b"");
        for wrong in ["a", "a===", "ab cd", "ä"] {
            assert_eq!(base64(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
