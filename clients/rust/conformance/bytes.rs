//! Bytes that are not UTF-8, as the suite writes them in JSON: surrogate escapes, which serde_json neither reads nor
//! writes. Between the two, each such byte is a private character.

/// Byte 0 as such a character.
const FIRST: u32 = 0x0010_FF00;

/// The text for bytes.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(FIRST + u32::from(*byte))));
    }
    text
}

/// JSON with surrogate escapes, of JSON with private characters.
pub fn escaped(json: &str) -> String {
    json.chars().map(|c| private(c).map_or_else(|| c.to_string(), |byte| format!("\\udc{byte:02x}"))).collect()
}

fn private(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST).and_then(|byte| u8::try_from(byte).ok())
}

/// JSON with private characters, of JSON with surrogate escapes.
pub fn unescaped(json: &str) -> String {
    let mut parts = json.split("\\udc");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match byte.and_then(|byte| char::from_u32(FIRST + byte)) {
            Some(character) => text.push(character),
            None => text.push_str("\\udc"),
        }
        text.push_str(part.get(2..).unwrap_or_default());
    }
    text
}

/// The bytes for a text.
pub fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for c in text.chars() {
        match private(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}
