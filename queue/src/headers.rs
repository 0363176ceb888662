//! Headers: what a producer says about a message besides its payload, such as a content type or a trace.
//!
//! The headers of a message are one block of bytes. Each header consists of the length of its name in one byte, the
//! name, the length of its value in two bytes (little-endian), and the value. They stand in the order of their names,
//! so the same headers are the same bytes, whatever order they were given in. The store keeps the block in front of the
//! payload.

use super::errors::ERROR_MAX;

/// The largest number of headers of a message.
pub const HEADERS_MAX: usize = 64;

/// The longest name of a header, in bytes.
pub const HEADER_NAME_MAX: usize = 255;

/// The longest value of a header, in bytes.
pub const HEADER_VALUE_MAX: usize = 4096;

/// The largest number of bytes that the names and values of a message have together.
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;

/// The largest number of headers that queues add to those of a message: five say how its batch ended, and six how it
/// died and which id it had (`DEADFORWARD QUEUE`).
const ADDED_MAX: usize = 11;

/// The largest number of bytes that the names and values of these have together.
const ADDED_BYTES_MAX: usize = ADDED_MAX * 32 + 2 * HEADER_VALUE_MAX + 2 * ERROR_MAX;

/// The bytes of a header besides its name and its value.
const LENGTHS: usize = 3;

/// A block is stored with its length in two bytes before it.
pub(super) const BLOCK_LENGTH: usize = 2;
const _: () = assert!(HEADERS_BYTES_MAX + ADDED_BYTES_MAX + (HEADERS_MAX + ADDED_MAX) * LENGTHS <= u16::MAX as usize);

/// The headers of a message: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a>(&'a [u8]);

/// Why headers are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeaders<'a> {
    /// There are none, or more than [`HEADERS_MAX`].
    Count,
    /// A name is empty or longer than [`HEADER_NAME_MAX`].
    Name,
    /// The value of the header with this name is longer than [`HEADER_VALUE_MAX`].
    Value(&'a [u8]),
    /// Two headers have this name.
    Twice(&'a [u8]),
    /// Names and values have more than [`HEADERS_BYTES_MAX`] bytes together: this many.
    TooLong(usize),
}

impl<'a> Headers<'a> {
    /// The headers in a block. Returns `None` if a message cannot have this block: it may have those that a queue has
    /// added to the ones of its producer.
    pub fn parse(block: &'a [u8]) -> Option<Headers<'a>> {
        let (mut rest, mut count, mut last) = (block, 0, &[][..]);
        while !rest.is_empty() {
            let (name, value) = first(&mut rest)?;
            // The first name is not empty, so it is above the one that stands for none.
            if name <= last || value.len() > HEADER_VALUE_MAX {
                return None;
            }
            (count, last) = (count + 1, name);
        }
        let fits = block.len() <= HEADERS_BYTES_MAX + ADDED_BYTES_MAX + count * LENGTHS;
        ((1..=HEADERS_MAX + ADDED_MAX).contains(&count) && fits).then_some(Headers(block))
    }

    /// The name and the value of each header, in the order of the names.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || first(&mut rest))
    }

    /// The number of headers. O(headers).
    pub fn count(self) -> usize {
        self.iter().count()
    }

    /// The block, which [`Headers::parse`] reads.
    pub fn block(self) -> &'a [u8] {
        self.0
    }

    /// The length of the block with the bytes that say how long it is.
    pub(super) fn stored_len(self) -> usize {
        BLOCK_LENGTH + self.0.len()
    }

    /// Appends the block to the bytes of a message, after its length.
    pub(super) fn store(self, to: &mut Vec<u8>) {
        // The length is below that of the longest block, as is asserted above.
        to.extend_from_slice(&(self.0.len() as u16).to_le_bytes());
        to.extend_from_slice(self.0);
    }

    /// The headers that [`Headers::store`] wrote in front of a payload, and the payload.
    pub(super) fn split(stored: &'a [u8]) -> (Option<Headers<'a>>, &'a [u8]) {
        let split = stored.split_first_chunk::<BLOCK_LENGTH>();
        let split = split.and_then(|(length, rest)| rest.split_at_checked(u16::from_le_bytes(*length).into()));
        split.map_or((None, stored), |(block, payload)| (Some(Headers(block)), payload))
    }
}

/// Takes the first header of a block; `None` if there is none that is whole.
fn first<'a>(block: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (length, rest) = block.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let (length, rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *block = rest;
    Some((name, value))
}

/// Headers with bytes of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderBlock(Box<[u8]>);

impl HeaderBlock {
    /// The headers with these names and values, in any order.
    pub fn new<'a>(mut headers: Vec<(&'a [u8], &'a [u8])>) -> Result<HeaderBlock, BadHeaders<'a>> {
        if !(1..=HEADERS_MAX).contains(&headers.len()) {
            return Err(BadHeaders::Count);
        }
        headers.sort_unstable_by_key(|(name, _)| *name);
        let (mut bytes, mut last) = (0, None);
        for (name, value) in &headers {
            if !(1..=HEADER_NAME_MAX).contains(&name.len()) {
                return Err(BadHeaders::Name);
            }
            if value.len() > HEADER_VALUE_MAX {
                return Err(BadHeaders::Value(name));
            }
            if last.replace(name) == Some(name) {
                return Err(BadHeaders::Twice(name));
            }
            bytes += name.len() + value.len();
        }
        match bytes {
            ..=HEADERS_BYTES_MAX => Ok(HeaderBlock::written(headers)),
            bytes => Err(BadHeaders::TooLong(bytes)),
        }
    }

    /// The block of headers whose lengths are in their ranges, each name once.
    fn written(mut headers: Vec<(&[u8], &[u8])>) -> HeaderBlock {
        headers.sort_unstable_by_key(|(name, _)| *name);
        let mut block = Vec::new();
        for (name, value) in headers {
            block.push(name.len() as u8);
            block.extend_from_slice(name);
            block.extend_from_slice(&(value.len() as u16).to_le_bytes());
            block.extend_from_slice(value);
        }
        HeaderBlock(block.into())
    }

    /// These headers and others, which a queue adds. The added ones replace those of the same name. At most 6 may be
    /// added whose names are short; of each value the first [`HEADER_VALUE_MAX`] bytes count.
    pub fn with_added<'a>(headers: Option<Headers<'a>>, added: &[(&'a [u8], &'a [u8])]) -> HeaderBlock {
        let is_kept = |(name, _): &(&[u8], &[u8])| added.iter().all(|(other, _)| other != name);
        let kept = headers.into_iter().flat_map(Headers::iter).filter(is_kept);
        let cut = added.iter().map(|(name, value)| (*name, value.get(..HEADER_VALUE_MAX).unwrap_or(value)));
        HeaderBlock::written(kept.chain(cut).collect())
    }

    /// The headers.
    pub fn headers(&self) -> Headers<'_> {
        Headers(&self.0)
    }

    /// The number of bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        super::memory::given(self.0.len())
    }
}

impl From<Headers<'_>> for HeaderBlock {
    fn from(headers: Headers<'_>) -> HeaderBlock {
        HeaderBlock(headers.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

    #[test]
    fn the_order_in_which_headers_are_given_does_not_matter() {
        let pairs: Pairs<'_> = vec![(b"b", b"2"), (b"a", b""), (b"aa", &[0, 255])];
        let block = HeaderBlock::new(pairs.clone()).unwrap();
        assert_eq!(block, HeaderBlock::new(pairs.into_iter().rev().collect()).unwrap());
        let sorted: Pairs<'_> = vec![(b"a", b""), (b"aa", &[0, 255]), (b"b", b"2")];
        assert_eq!(block.headers().iter().collect::<Vec<_>>(), sorted);
        assert_eq!(Headers::parse(block.headers().block()), Some(block.headers()));
    }

    #[test]
    fn names_values_and_sums_have_limits() {
        let (long, longest) = (vec![b'n'; HEADER_NAME_MAX + 1], vec![b'v'; HEADER_VALUE_MAX + 1]);
        let of = |name, value| HeaderBlock::new(vec![(name, value)]);
        assert!(of(&long[1..], &longest[1..]).is_ok());
        assert_eq!(of(&long, b""), Err(BadHeaders::Name));
        assert_eq!(of(b"", b""), Err(BadHeaders::Name));
        assert_eq!(of(b"n", &longest), Err(BadHeaders::Value(b"n")));
        assert_eq!(HeaderBlock::new(vec![(b"n", b"1"), (b"m", b""), (b"n", b"2")]), Err(BadHeaders::Twice(b"n")));
        assert_eq!(HeaderBlock::new(Vec::new()), Err(BadHeaders::Count));
        let names: Vec<[u8; 1]> = (0..=HEADERS_MAX as u8).map(|nth| [nth]).collect();
        let many = |count: usize| -> Pairs<'_> { names.iter().take(count).map(|name| (&name[..], &[][..])).collect() };
        assert!(HeaderBlock::new(many(64)).is_ok());
        assert_eq!(HeaderBlock::new(many(65)), Err(BadHeaders::Count));
        let full = |last: usize| -> Pairs<'_> {
            let lengths = [HEADER_VALUE_MAX, HEADER_VALUE_MAX, HEADER_VALUE_MAX, last];
            names.iter().zip(lengths).map(|(name, length)| (&name[..], &longest[..length])).collect()
        };
        assert!(HeaderBlock::new(full(HEADER_VALUE_MAX - 4)).is_ok());
        assert_eq!(HeaderBlock::new(full(HEADER_VALUE_MAX - 3)), Err(BadHeaders::TooLong(HEADERS_BYTES_MAX + 1)));
    }

    #[test]
    fn a_block_that_no_client_could_have_given_is_refused() {
        let block = |bytes: &[u8]| Headers::parse(bytes).is_some();
        assert!(block(b"\x01a\0\0") && block(b"\x01a\0\0\x01b\x01\0x"));
        for bad in [
            &b""[..],
            b"\0\0\0",
            b"\x01",
            b"\x01a",
            b"\x01a\0",
            b"\x01a\x01\0",
            b"\x01a\0\0\x01",
            b"\x01a\0\0\x01a\0\0",
            b"\x01b\0\0\x01a\0\0",
        ] {
            assert!(!block(bad), "{bad:?}");
        }
        let long = [&[1, b'a', 1, 16][..], &[0; HEADER_VALUE_MAX + 1]].concat();
        assert!(!block(&long));
        let many: Vec<u8> = (0..=(HEADERS_MAX + ADDED_MAX) as u8).flat_map(|nth| [1, nth, 0, 0]).collect();
        assert!(block(&many[4..]) && !block(&many));
        let most = HEADERS_BYTES_MAX + ADDED_BYTES_MAX;
        let full = |sum: usize| {
            let (mut bytes, mut left): (Vec<u8>, _) = (Vec::new(), sum);
            for name in 0.. {
                if left == 0 {
                    break;
                }
                bytes.extend([1, name]);
                let length = (left - 1).min(HEADER_VALUE_MAX) as u16;
                left -= 1 + usize::from(length);
                bytes.extend(length.to_le_bytes());
                bytes.extend(std::iter::repeat_n(0, length.into()));
            }
            bytes
        };
        assert!(block(&full(most)) && !block(&full(most + 1)));
    }

    #[test]
    fn a_queue_adds_headers_to_those_of_a_full_message_and_cuts_long_values() {
        let names: Vec<[u8; 1]> = (0..HEADERS_MAX as u8).map(|nth| [nth]).collect();
        let value = vec![1; HEADERS_BYTES_MAX / HEADERS_MAX - 1];
        let full = HeaderBlock::new(names.iter().map(|name| (&name[..], &value[..])).collect()).unwrap();
        let long = vec![2; HEADER_VALUE_MAX + 1];
        let added: Vec<(&[u8], &[u8])> =
            vec![(b"dq-queue", &long), (b"dq-reason", b"rejected"), (b"dq-error", &long[..ERROR_MAX]), (b"\0", b"x")];
        let block = HeaderBlock::with_added(Some(full.headers()), &added);
        assert_eq!(Headers::parse(block.headers().block()), Some(block.headers()));
        let of = |wanted: &[u8]| block.headers().iter().find(|(name, _)| *name == wanted).unwrap().1;
        assert_eq!((block.headers().count(), of(b"dq-queue").len(), of(b"\0")), (67, HEADER_VALUE_MAX, &b"x"[..]));
        assert_eq!(HeaderBlock::with_added(Some(block.headers()), &added), block, "a second step replaces them");
    }

    #[test]
    fn stored_headers_are_split_from_the_payload() {
        let block = HeaderBlock::new(vec![(b"a", b"1")]).unwrap();
        let mut stored = Vec::new();
        block.headers().store(&mut stored);
        assert_eq!(stored.len(), block.headers().stored_len());
        stored.extend_from_slice(b"payload");
        assert_eq!(Headers::split(&stored), (Some(block.headers()), &b"payload"[..]));
    }
}
