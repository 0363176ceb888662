//! The last part of a text that is too long to keep.

/// The server keeps 1,024 bytes of an error; the rest is for the text before it.
const KEPT: usize = 960;

/// The last bytes that were added.
#[derive(Default)]
pub struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(KEPT);
        if excess > 0 {
            self.bytes.drain(..excess);
            self.is_cut = true;
        }
    }

    /// As text, without white space around it. If the beginning is missing, it begins with `…`.
    pub fn text(&self) -> String {
        // A character that was cut in two at the beginning is left out.
        let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let torn = if self.is_cut { self.bytes.iter().take_while(is_continuation).count() } else { 0 };
        let text = String::from_utf8_lossy(self.bytes.get(torn..).unwrap_or_default());
        let text = text.trim();
        if self.is_cut {
            format!("…{text}")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Tail, KEPT};

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        let mut tail = Tail::default();
        tail.add(b"  no such user\n");
        assert_eq!(tail.text(), "no such user");
        (0..1000).for_each(|_| tail.add("ü".as_bytes()));
        tail.add(b"end");
        let text = tail.text();
        assert!(text.starts_with("…ü") && text.ends_with("üend") && text.len() <= KEPT + 3, "{text}");
    }
}
