//! Errors of past attempts: why consumers gave a message back, or why it was buried.
//!
//! The errors of a message are one block of bytes, oldest first. Each consists of the attempt in four bytes, the
//! instant in six, the length of the text in two (all little-endian), and the text. How many are kept is a setting,
//! which counts when the next one comes. If it keeps none, the last text alone is kept: an error that is not listed,
//! marked in its length.

use super::time::UnixMs;

/// The longest error text that is stored, in bytes.
pub const ERROR_MAX: usize = 1024;

/// The most errors that the settings keep of a message.
pub const ERRORS_MAX: u64 = 64;

/// The bytes of an error before its text.
const HEAD: usize = 4 + 6 + 2;

/// Set in the length of an error that is not listed.
const UNLISTED: u16 = 1 << 15;
const _: () = assert!(ERROR_MAX < UNLISTED as usize);

/// The part of a text that is stored: all of it, or its first [`ERROR_MAX`] bytes, without the character that these
/// would cut.
pub(super) fn stored_part(text: &[u8]) -> &[u8] {
    let Some(start) = text.get(..ERROR_MAX) else { return text };
    if start.len() == text.len() {
        return text;
    }
    match start.utf8_chunks().last() {
        // What is at the end begins a character that continues behind it, and is not just any other bytes.
        Some(last) if std::str::from_utf8(last.invalid()).is_err_and(|error| error.error_len().is_none()) => {
            start.get(..start.len() - last.invalid().len()).unwrap_or(start)
        }
        Some(_) | None => start,
    }
}

/// The error of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastError<'a> {
    /// The number of the delivery, or how many there had been when the message was buried.
    pub attempt: u32,
    /// When the attempt ended.
    pub at: UnixMs,
    /// The text.
    pub text: &'a [u8],
}

/// The errors of a message: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errors<'a>(&'a [u8]);

impl<'a> Errors<'a> {
    /// The errors in a block. Returns `None` if a message cannot have this block.
    pub fn parse(block: &'a [u8]) -> Option<Errors<'a>> {
        let (mut rest, mut count, mut listed) = (block, 0, 0);
        while !rest.is_empty() {
            let (error, is_listed) = first(&mut rest)?;
            if error.text.len() > ERROR_MAX {
                return None;
            }
            count += 1;
            listed += u64::from(is_listed);
        }
        let is_whole = match listed {
            0 => count == 1,
            _ => listed == count && count <= ERRORS_MAX,
        };
        is_whole.then_some(Errors(block))
    }

    /// The text of the last error.
    pub fn last(self) -> &'a [u8] {
        self.all().last().map_or(&[], |(error, _)| error.text)
    }

    /// Those that the settings keep, oldest first.
    pub fn listed(self) -> impl Iterator<Item = PastError<'a>> {
        self.all().filter_map(|(error, is_listed)| is_listed.then_some(error))
    }

    fn all(self) -> impl Iterator<Item = (PastError<'a>, bool)> {
        let mut rest = self.0;
        std::iter::from_fn(move || first(&mut rest))
    }

    /// The block, which [`Errors::parse`] reads.
    pub fn block(self) -> &'a [u8] {
        self.0
    }

    /// The errors in a block that is known to be one.
    pub(super) fn stored(block: &'a [u8]) -> Errors<'a> {
        Errors(block)
    }

    /// The block with another error, if the settings keep this many.
    pub fn with(before: Option<Errors<'_>>, error: &PastError<'_>, kept: u64) -> Box<[u8]> {
        let before = before.filter(|before| before.listed().next().is_some());
        let mut rest = before.map_or(&[][..], Errors::block);
        let count = before.map_or(0, |before| before.listed().count() as u64);
        for _ in kept.saturating_sub(1)..count {
            first(&mut rest);
        }
        let text = stored_part(error.text);
        let mut block = Vec::with_capacity(rest.len() + HEAD + text.len());
        block.extend_from_slice(rest);
        block.extend_from_slice(&error.attempt.to_le_bytes());
        let [a, b, c, d, e, f, ..] = error.at.as_ms().to_le_bytes();
        block.extend_from_slice(&[a, b, c, d, e, f]);
        let mark = if kept == 0 { UNLISTED } else { 0 };
        block.extend_from_slice(&(text.len() as u16 | mark).to_le_bytes());
        block.extend_from_slice(text);
        block.into()
    }
}

/// Takes the first error of a block, and says whether it is listed; `None` if there is none that is whole.
fn first<'a>(block: &mut &'a [u8]) -> Option<(PastError<'a>, bool)> {
    let (attempt, rest) = block.split_first_chunk()?;
    let ([a, b, c, d, e, f], rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = u16::from_le_bytes(*length);
    let (text, rest) = rest.split_at_checked(usize::from(length & !UNLISTED))?;
    let at = UnixMs::checked(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, 0, 0]))?;
    *block = rest;
    Some((PastError { attempt: u32::from_le_bytes(*attempt), at, text }, length & UNLISTED == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(attempt: u32, text: &[u8]) -> PastError<'_> {
        PastError { attempt, at: UnixMs::new(1_000 + u64::from(attempt)), text }
    }

    fn listed(block: &[u8]) -> Vec<u32> {
        Errors::parse(block).unwrap().listed().map(|error| error.attempt).collect()
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (character, kept) in [("a", 1_024), ("ä", 1_024), ("€", 1_023), ("😀", 1_024)] {
            let text = character.repeat(2_000);
            assert_eq!(stored_part(text.as_bytes()).len(), kept, "{character}");
            let shifted = format!("a{text}");
            let expected = 1 + 1_023 / character.len() * character.len();
            assert_eq!(stored_part(shifted.as_bytes()).len(), expected, "{character}");
        }
        // Bytes that are no text are cut anywhere.
        assert_eq!(stored_part(&[0x80; 2_000]).len(), ERROR_MAX);
        assert_eq!(stored_part(&[0xff; 2_000]).len(), ERROR_MAX);
        assert_eq!(stored_part("ä".repeat(512).as_bytes()).len(), ERROR_MAX);
    }

    #[test]
    fn the_oldest_errors_make_room_for_new_ones() {
        let mut block: Option<Box<[u8]>> = None;
        for (attempt, kept, expected) in [
            (1, 3, &[1][..]),
            (2, 3, &[1, 2]),
            (3, 3, &[1, 2, 3]),
            (4, 3, &[2, 3, 4]),
            (5, 1, &[5]),
            (6, 0, &[]),
            (7, 2, &[7]),
            (8, 2, &[7, 8]),
        ] {
            let text = [b'e'; 9];
            let new = Errors::with(block.as_deref().and_then(Errors::parse), &error(attempt, &text[..1]), kept);
            assert_eq!((listed(&new), Errors::parse(&new).unwrap().last()), (expected.to_vec(), &b"e"[..]));
            block = Some(new);
        }
    }

    #[test]
    fn an_error_has_its_attempt_its_instant_and_the_start_of_its_text() {
        let long = [7; ERROR_MAX + 1];
        let block = Errors::with(None, &PastError { attempt: u32::MAX, at: UnixMs::MAX, text: &long }, 64);
        let kept = Errors::parse(&block).unwrap().listed().next().unwrap();
        assert_eq!(kept, PastError { attempt: u32::MAX, at: UnixMs::MAX, text: &long[1..] });
    }

    #[test]
    fn a_block_that_no_queue_could_have_made_is_refused() {
        let (one, bare) = (Errors::with(None, &error(1, b"one"), 1), Errors::with(None, &error(1, b"one"), 0));
        assert!(Errors::parse(&one).is_some() && Errors::parse(&bare).is_some());
        assert!(Errors::parse(&[one.clone(), one.clone()].concat()).is_some());
        let most = ERRORS_MAX as usize;
        assert!(Errors::parse(&one.repeat(most)).is_some() && Errors::parse(&one.repeat(most + 1)).is_none());
        let mut late = one.to_vec();
        late[9] = 255;
        let mut long = one.to_vec();
        long[10..12].copy_from_slice(&(ERROR_MAX as u16 + 1).to_le_bytes());
        long.resize(HEAD + ERROR_MAX + 1, 0);
        for bad in [&[][..], &one[1..], &one[..one.len() - 1], &[bare.clone(), bare.clone()].concat(), &late, &long] {
            assert_eq!(Errors::parse(bad), None, "{bad:?}");
        }
        assert_eq!(Errors::parse(&[one, bare].concat()), None);
    }
}
