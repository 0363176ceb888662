//! Decodes base64, as RFC 4648 defines it.

/// `None` if the text is no base64 with its padding.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if digits.len() % 4 != 0 {
        return None;
    }
    let padding = digits.iter().rev().take_while(|digit| **digit == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.get(..digits.len() - padding)? {
        bits = bits << 6 | u32::from(value(*digit)?);
        count += 1;
        if count == 4 {
            bytes.extend(bits.to_be_bytes().get(1..)?);
            (bits, count) = (0, 0);
        }
    }
    match count {
        0 => {}
        // The bits that no byte uses are zero, so that every text has one meaning.
        2 if bits & 0xf == 0 => bytes.push(u8::try_from(bits >> 4).ok()?),
        3 if bits & 0x3 == 0 => bytes.extend(u16::try_from(bits >> 2).ok()?.to_be_bytes()),
        _ => return None,
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;
    use crate::reply::base64;

    #[test]
    fn what_was_encoded_is_decoded() {
        let all: Vec<u8> = (0..=255).collect();
        for length in 0..=256 {
            assert_eq!(decode(&base64(&all[..length])).as_deref(), Some(&all[..length]));
        }
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in ["A", "AA", "AAA", "A===", "====", "AA=A", "A!==", "AB==", "AAB=", "AAAA\n"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
