//! What a handler writes: the end of its errors, and its output, which is its result unless it is too long or
//! incomplete.

/// The largest result that a queue keeps.
pub const RESULT_BYTES: usize = 65_536;
/// The server keeps 1,024 bytes of an error; the rest is for the text before it.
const ERROR_BYTES: usize = 960;

/// The output so far.
#[derive(Default)]
pub struct Head {
    bytes: Vec<u8>,
    is_too_long: bool,
    /// Nothing more will be added.
    pub is_complete: bool,
}

impl Head {
    pub fn add(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.bytes.len() + bytes.len() > RESULT_BYTES;
        if self.is_too_long {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The whole output; `None` if it is incomplete, because part of a result is not a result.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        (self.is_complete && !self.is_too_long).then(|| std::mem::take(&mut self.bytes))
    }
}

/// The last bytes that were added.
#[derive(Default)]
pub struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(ERROR_BYTES);
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
        format!("{}{}", if self.is_cut { "…" } else { "" }, text.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, Tail, ERROR_BYTES, RESULT_BYTES};

    #[test]
    fn a_part_of_a_result_is_none() {
        let mut head = Head::default();
        head.add(&[1; 65_000]);
        head.add(&[2; 536]);
        assert_eq!(head.take(), None);
        head.is_complete = true;
        assert_eq!(head.take().map(|bytes| bytes.len()), Some(RESULT_BYTES));
        let mut long = Head::default();
        (0..RESULT_BYTES / 256 + 2).for_each(|_| long.add(&[0; 256]));
        long.is_complete = true;
        assert_eq!(long.take(), None);
    }

    #[test]
    fn the_end_of_a_long_error_is_kept() {
        let mut tail = Tail::default();
        tail.add(b"  no such user\n");
        assert_eq!(tail.text(), "no such user");
        (0..1000).for_each(|_| tail.add("ü".as_bytes()));
        tail.add(b"end");
        let text = tail.text();
        assert!(text.starts_with("…ü") && text.ends_with("üend") && text.len() <= ERROR_BYTES + 3, "{text}");
    }
}
