//! Headers: what a producer says about a message besides its payload, such as a content type or a trace.
//!
//! The headers of a message are one block of bytes. Each header consists of the length of its name in one byte, the
//! name, the length of its value in two bytes (little-endian), and the value. They stand in the order of their names,
//! so the same headers are the same bytes, whatever order they were given in. The store keeps the block in front of the
//! payload.

/// The largest number of headers of a message.
pub const HEADERS_MAX: usize = 64;

/// The longest name of a header, in bytes.
pub const HEADER_NAME_MAX: usize = 255;

/// The longest value of a header, in bytes.
pub const HEADER_VALUE_MAX: usize = 4096;

/// The largest number of bytes that the names and values of a message have together.
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;

/// The bytes of a header besides its name and its value.
const LENGTHS: usize = 3;

/// A block is stored with its length in two bytes before it.
pub(super) const BLOCK_LENGTH: usize = 2;
const _: () = assert!(HEADERS_BYTES_MAX + HEADERS_MAX * LENGTHS <= u16::MAX as usize);

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
    /// The headers in a block. Returns `None` if a message cannot have this block.
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
        let fits = block.len() <= HEADERS_BYTES_MAX + count * LENGTHS;
        ((1..=HEADERS_MAX).contains(&count) && fits).then_some(Headers(block))
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
    pub fn of<'a>(mut headers: Vec<(&'a [u8], &'a [u8])>) -> Result<HeaderBlock, BadHeaders<'a>> {
        if !(1..=HEADERS_MAX).contains(&headers.len()) {
            return Err(BadHeaders::Count);
        }
        headers.sort_unstable_by_key(|(name, _)| *name);
        let (mut block, mut last) = (Vec::new(), None);
        for (name, value) in &headers {
            let length = u8::try_from(name.len()).ok().filter(|length| *length > 0).ok_or(BadHeaders::Name)?;
            if value.len() > HEADER_VALUE_MAX {
                return Err(BadHeaders::Value(name));
            }
            if last.replace(name) == Some(name) {
                return Err(BadHeaders::Twice(name));
            }
            block.push(length);
            block.extend_from_slice(name);
            block.extend_from_slice(&(value.len() as u16).to_le_bytes());
            block.extend_from_slice(value);
        }
        match block.len() - headers.len() * LENGTHS {
            ..=HEADERS_BYTES_MAX => Ok(HeaderBlock(block.into())),
            bytes => Err(BadHeaders::TooLong(bytes)),
        }
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
        let block = HeaderBlock::of(pairs.clone()).unwrap();
        assert_eq!(block, HeaderBlock::of(pairs.into_iter().rev().collect()).unwrap());
        let sorted: Pairs<'_> = vec![(b"a", b""), (b"aa", &[0, 255]), (b"b", b"2")];
        assert_eq!(block.headers().iter().collect::<Vec<_>>(), sorted);
        assert_eq!(Headers::parse(block.headers().block()), Some(block.headers()));
    }

    #[test]
    fn names_values_and_sums_have_limits() {
        let (long, longest) = (vec![b'n'; HEADER_NAME_MAX + 1], vec![b'v'; HEADER_VALUE_MAX + 1]);
        let of = |name, value| HeaderBlock::of(vec![(name, value)]);
        assert!(of(&long[1..], &longest[1..]).is_ok());
        assert_eq!(of(&long, b""), Err(BadHeaders::Name));
        assert_eq!(of(b"", b""), Err(BadHeaders::Name));
        assert_eq!(of(b"n", &longest), Err(BadHeaders::Value(b"n")));
        assert_eq!(HeaderBlock::of(vec![(b"n", b"1"), (b"m", b""), (b"n", b"2")]), Err(BadHeaders::Twice(b"n")));
        assert_eq!(HeaderBlock::of(Vec::new()), Err(BadHeaders::Count));
        let names: Vec<[u8; 1]> = (0..=HEADERS_MAX as u8).map(|nth| [nth]).collect();
        let many = |count: usize| -> Pairs<'_> { names.iter().take(count).map(|name| (&name[..], &[][..])).collect() };
        assert!(HeaderBlock::of(many(64)).is_ok());
        assert_eq!(HeaderBlock::of(many(65)), Err(BadHeaders::Count));
        let full = |last: usize| -> Pairs<'_> {
            let lengths = [HEADER_VALUE_MAX, HEADER_VALUE_MAX, HEADER_VALUE_MAX, last];
            names.iter().zip(lengths).map(|(name, length)| (&name[..], &longest[..length])).collect()
        };
        assert!(HeaderBlock::of(full(HEADER_VALUE_MAX - 4)).is_ok());
        assert_eq!(HeaderBlock::of(full(HEADER_VALUE_MAX - 3)), Err(BadHeaders::TooLong(HEADERS_BYTES_MAX + 1)));
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
        let many: Vec<u8> = (0..=HEADERS_MAX as u8).flat_map(|nth| [1, nth, 0, 0]).collect();
        assert!(block(&many[4..]) && !block(&many));
        let full = |last: u16| {
            let mut bytes: Vec<u8> = Vec::new();
            for name in 0..4 {
                bytes.extend([1, name]);
                let length: u16 = if name == 3 { last } else { 4096 };
                bytes.extend(length.to_le_bytes());
                bytes.extend(std::iter::repeat_n(0, length.into()));
            }
            bytes
        };
        assert!(block(&full(4092)) && !block(&full(4093)));
    }

    #[test]
    fn stored_headers_are_split_from_the_payload() {
        let block = HeaderBlock::of(vec![(b"a", b"1")]).unwrap();
        let mut stored = Vec::new();
        block.headers().store(&mut stored);
        assert_eq!(stored.len(), block.headers().stored_len());
        stored.extend_from_slice(b"payload");
        assert_eq!(Headers::split(&stored), (Some(block.headers()), &b"payload"[..]));
    }
}
