//! Ids of imported messages: the source's own, with a prefix that names the kind of source.

use ring::digest::{digest, SHA256};

/// The longest id that a message can have.
const LONGEST: usize = 255;

/// `prefix:part:part…`. If that is too long for an id, or has a `#`, it is `prefix:sha256:` and the hash of the parts.
pub fn id(prefix: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::new();
    for part in parts {
        if !joined.is_empty() {
            joined.push(b':');
        }
        joined.extend(*part);
    }
    let mut id = format!("{prefix}:").into_bytes();
    if id.len() + joined.len() > LONGEST || joined.contains(&b'#') || joined.is_empty() {
        id.extend(b"sha256:");
        digest(&SHA256, &joined).as_ref().iter().for_each(|byte| id.extend(format!("{byte:02x}").bytes()));
    } else {
        id.extend(joined);
    }
    id
}

#[cfg(test)]
mod tests {
    use super::id;

    #[test]
    fn ids_that_no_message_can_have_are_hashed() {
        let text = |parts: &[&[u8]]| String::from_utf8(id("zset", parts)).unwrap();
        assert_eq!(text(&[b"reminders", b"call ann"]), "zset:reminders:call ann");
        assert_eq!(id("stream", &[b"1-1"]), b"stream:1-1");
        let long = [b'x'; 250];
        assert_eq!(text(&[&long]).len(), 255);
        for odd in [&[b'x'; 251][..], b"a#b", b""] {
            let hashed = text(&[odd]);
            assert!(hashed.starts_with("zset:sha256:") && hashed.len() == 12 + 64, "{hashed}");
        }
        assert_ne!(text(&[b"a#b"]), text(&[b"a#c"]));
    }
}
