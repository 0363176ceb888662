//! The beginning of a handler's output, which is its result unless it is too long or incomplete.

/// The largest result that a queue keeps.
pub const RESULT_BYTES: usize = 65_536;

/// The output so far, unless it is too long.
#[derive(Default)]
pub struct Head {
    bytes: Vec<u8>,
    length: usize,
    is_complete: bool,
}

/// Why an output is not a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoResult {
    /// It has this many bytes.
    TooLong(usize),
    /// Its end was not seen.
    Incomplete,
}

impl Head {
    pub fn add(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        if self.length > RESULT_BYTES {
            // A part of a result is not a result.
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Nothing more will be added.
    pub fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Everything that was added.
    pub fn take(&mut self) -> Result<Vec<u8>, NoResult> {
        if self.length > RESULT_BYTES {
            Err(NoResult::TooLong(self.length))
        } else if !self.is_complete {
            Err(NoResult::Incomplete)
        } else {
            Ok(std::mem::take(&mut self.bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, NoResult, RESULT_BYTES};

    #[test]
    fn a_part_of_a_result_is_none() {
        let mut head = Head::default();
        head.add(&[1; 65_000]);
        head.add(&[2; 536]);
        assert_eq!(head.take(), Err(NoResult::Incomplete));
        head.complete();
        assert_eq!(head.take().map(|bytes| bytes.len()), Ok(RESULT_BYTES));
        let mut head = Head::default();
        (0..RESULT_BYTES / 256 + 1).for_each(|_| head.add(&[0; 256]));
        assert_eq!(head.take(), Err(NoResult::TooLong(RESULT_BYTES + 256)));
        let mut head = Head::default();
        head.complete();
        assert_eq!(head.take(), Ok(Vec::new()));
    }
}
