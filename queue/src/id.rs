//! The identifiers of messages and of their deliveries.
//!
//! A [`Sequence`] is a hybrid clock: milliseconds in the upper 44 bits and a count in the lower 20, so that it is
//! unique, strictly increasing, and close to the time of the push even if the wall clock steps back (Kulkarni et al.,
//! "Logical Physical Clocks", 2014). A [`Receipt`] is the same for deliveries. An [`Id`] is what clients pass: the
//! printed sequence, or the name that the producer chose.

#[cfg(test)]
mod tests;

use super::time::UnixMs;
use std::fmt;

/// The bits of a hybrid clock below the milliseconds: a million ticks per millisecond before it runs ahead of the wall
/// clock. Sequences, receipts and the turns of groups are such ticks.
pub(super) const COUNT_BITS: u32 = 20;

/// The first tick of an instant.
pub(super) const fn first_tick(instant: UnixMs) -> u64 {
    instant.as_ms() << COUNT_BITS
}

/// The instant of a tick.
pub(super) const fn instant_of(tick: u64) -> UnixMs {
    UnixMs::new(tick >> COUNT_BITS)
}

/// The smallest number of digits that the milliseconds of a generated id have. Producers may choose names of the form
/// `digits-digits` with fewer digits before the dash, such as `2024-01`, so a generated id never looks like one.
const MS_DIGITS: usize = 12;

/// The smallest number of [`MS_DIGITS`] digits, in ms, which is in March 1973. If the clock shows less, ids start here.
const FIRST_MS: u64 = 100_000_000_000;

/// The position of a message in push order, and its generated id if it has no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// A value below every sequence.
    pub const ZERO: Sequence = Sequence(0);

    /// Returns the next sequence after `last` at `now`; `None` if the sequences are exhausted.
    pub fn next(last: Sequence, now: UnixMs) -> Option<Sequence> {
        next_tick(last.0, now, 0).map(Sequence)
    }

    /// Whether [`Sequence::next`] could have returned it, so that its printed form can be parsed.
    pub const fn is_possible(self) -> bool {
        self.0 >> COUNT_BITS >= FIRST_MS
    }

    /// The instant at which it was generated. If the clock had stepped back, this is later than the clock's time.
    pub const fn created(self) -> UnixMs {
        UnixMs::new(self.0 >> COUNT_BITS)
    }

    /// Parses `<ms>-<count>` exactly as [`fmt::Display`] writes it. Returns `None` for any other text.
    pub fn parse(text: &[u8]) -> Option<Sequence> {
        Sequence::leading(text).filter(|(_, rest)| rest.is_empty()).map(|(sequence, _)| sequence)
    }

    /// Parses a printed sequence at the start of `text`, and returns it with the rest of the text.
    #[inline]
    fn leading(text: &[u8]) -> Option<(Sequence, &[u8])> {
        // The first twelve digits, of which four are in both words.
        let (twelve, rest) = text.split_first_chunk::<MS_DIGITS>()?;
        let (head, tail) = (digits_of(*twelve.first_chunk()?)?, digits_of(*twelve.last_chunk()?)?);
        let (ms, count) = append_digits(joined(head << 32) * 100_000_000 + joined(tail), rest);
        let rest = rest.get(count..)?.strip_prefix(b"-")?;
        let (tick, count) = append_digits(0, rest);
        let (digits, rest) = rest.split_at_checked(count)?;
        let fits = (FIRST_MS..=UnixMs::MAX.as_ms()).contains(&ms) && tick < 1 << COUNT_BITS;
        let is_printed = fits && is_canonical(twelve) && is_canonical(digits);
        is_printed.then_some((Sequence(ms << COUNT_BITS | tick), rest))
    }

    /// Writes `<ms>-<count>` into `buffer` and returns the text.
    pub fn write(self, buffer: &mut IdBuffer) -> &[u8] {
        let written = buffer.decimal(0, self.0 >> COUNT_BITS);
        let written = buffer.byte(written, b'-');
        let written = buffer.decimal(written, self.0 & ((1 << COUNT_BITS) - 1));
        buffer.text(written)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0 >> COUNT_BITS, self.0 & ((1 << COUNT_BITS) - 1))
    }
}

/// The number of one delivery, which is never used twice in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(pub u64);

impl Receipt {
    /// A value below every receipt.
    pub const ZERO: Receipt = Receipt(0);

    /// The bits of [`Floor::start`]. They leave a million receipts to each millisecond, and an effect stores numbers of
    /// 16 bits in two bytes.
    pub const START_BITS: u32 = 15;

    /// Returns the next receipt after `last` at `now`, where the count of a millisecond begins at `start`. `None` if
    /// the receipts are exhausted.
    pub fn next(last: Receipt, now: UnixMs, start: u32) -> Option<Receipt> {
        next_tick(last.0, now, u64::from(start)).map(Receipt)
    }

    /// The instant at which the delivery began. A receipt never steps back, so after a step back of the clock this
    /// instant may be later than the time that the clock showed.
    pub const fn began(self) -> UnixMs {
        UnixMs::new(self.0 >> COUNT_BITS)
    }
}

/// The rule of a hybrid clock: the larger of the last tick plus one and the shifted time, with the count at which a
/// millisecond begins. The time counts as at least [`FIRST_MS`].
fn next_tick(last: u64, now: UnixMs, start: u64) -> Option<u64> {
    last.checked_add(1).map(|after| after.max(now.as_ms().max(FIRST_MS) << COUNT_BITS | start))
}

/// The last sequence and receipt that were given out in this process. They are kept for the whole process and not only
/// in each queue, so that a queue which is deleted and created again does not reuse the numbers of its predecessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// The last sequence that any queue gave out.
    pub sequence: u64,
    /// The last receipt that any queue gave out.
    pub receipt: u64,
    /// The count at which the receipts of each millisecond begin, of [`Receipt::START_BITS`]. Each process draws its
    /// own, because two masters that a partition separates deliver the same messages at the same instants, and a
    /// receipt of the one must not count on the other.
    pub start: u32,
    /// The most milliseconds that this process leaves out if its clock is behind the numbers that it knows. It has
    /// [`Floor::GAP_BITS`] bits, and each process draws its own.
    pub gap: u32,
}

impl Floor {
    /// The bits of [`Floor::gap`]: up to four seconds.
    pub const GAP_BITS: u32 = 12;

    /// Raises the floor to the numbers that a queue has given out. A number that no clock reaches before the year 2248
    /// was forged and is ignored: that queue may exhaust its own numbers, but not those of all others.
    pub fn raise(&mut self, sequence: Sequence, receipt: Receipt) {
        let raised =
            |floor: u64, given: u64| if given >> COUNT_BITS <= UnixMs::MAX_AT { floor.max(given) } else { floor };
        self.sequence = raised(self.sequence, sequence.0);
        self.receipt = raised(self.receipt, receipt.0);
    }

    /// Passes over the numbers that another process may have given out after the last ones that are known here, before
    /// its writes were lost. If the clock is ahead of the known numbers, the next ones are beyond those anyway. If it
    /// is behind, the next ones begin at [`Floor::start`] of a millisecond that [`Floor::gap`] chooses, and that is
    /// ahead of the known numbers by no more than the clock is behind them.
    pub fn pass_over_lost(&mut self, now: UnixMs) {
        let beyond = |last: u64| {
            let ms = last >> COUNT_BITS;
            let behind = ms.checked_sub(now.as_ms());
            let next = behind.map(|behind| ms + 1 + u64::from(self.gap) % (behind + 1));
            next.map_or(last, |next| next << COUNT_BITS | u64::from(self.start))
        };
        self.sequence = beyond(self.sequence);
        self.receipt = beyond(self.receipt);
    }
}

/// A client's reference to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id<'a> {
    /// The message without a name that has this sequence.
    Generated(Sequence),
    /// The message with the name that its producer chose.
    Named(&'a [u8]),
}

impl<'a> Id<'a> {
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = 255;

    /// Parses an id. Returns `None` if no message can have it.
    pub fn parse(text: &'a [u8]) -> Option<Id<'a>> {
        match Sequence::parse(text) {
            Some(sequence) => Some(Id::Generated(sequence)),
            None => Self::is_name(text).then_some(Id::Named(text)),
        }
    }

    /// Whether a producer may choose `text` as a name: it has 1 to 255 bytes, no `#`, and not the form of a generated
    /// id (12 or more digits, `-`, digits).
    pub fn is_name(text: &[u8]) -> bool {
        (1..=Self::MAX_NAME).contains(&text.len()) && !text.contains(&b'#') && !has_generated_form(text)
    }
}

/// A message, or one delivery of it: the argument of `DQ.ACK`, `DQ.NACK` and `DQ.EXTEND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The message.
    pub id: Id<'a>,
    /// The receipt of the delivery; `None` stands for the current delivery.
    pub receipt: Option<Receipt>,
}

impl<'a> Target<'a> {
    /// Parses an id or a receipt (`<id>#<n>`). Returns `None` if no message can have it.
    pub fn parse(text: &'a [u8]) -> Option<Target<'a>> {
        // This is what consumers usually send: the receipt of a message without a name.
        if let Some((sequence, [b'#', number @ ..])) = Sequence::leading(text) {
            if let Some(number) = parse_number(number) {
                return Some(Target { id: Id::Generated(sequence), receipt: Some(Receipt(number)) });
            }
        }
        let Some(hash) = text.iter().position(|byte| *byte == b'#') else {
            return Some(Target { id: Id::parse(text)?, receipt: None });
        };
        let (id, number) = text.split_at(hash);
        let receipt = Some(Receipt(parse_number(number.get(1..)?)?));
        Some(Target { id: Id::parse(id)?, receipt })
    }
}

/// Whether `text` is 12 or more digits, `-`, and digits. This form is reserved for generated ids, whether or not one
/// could have this value.
fn has_generated_form(text: &[u8]) -> bool {
    let mut parts = text.splitn(2, |byte| *byte == b'-');
    let digits = |part: Option<&[u8]>, least: usize| {
        part.is_some_and(|part| part.len() >= least && part.iter().all(u8::is_ascii_digit))
    };
    digits(parts.next(), MS_DIGITS) && digits(parts.next(), 1)
}

/// Parses a number as clients write it: digits without leading zeros.
#[inline]
pub fn parse_number(text: &[u8]) -> Option<u64> {
    let Some(first) = text.first_chunk() else {
        let (value, count) = append_digits(0, text);
        return (count == text.len() && is_canonical(text)).then_some(value);
    };
    let (head, eights) = text.split_at(text.len() % 8);
    // Fewer than eight digits are moved to the end, behind zeros.
    let mut value = joined(digits_of(*first)?.checked_shl(64 - 8 * head.len() as u32).unwrap_or(0));
    for eight in eights.chunks_exact(8) {
        value = value.checked_mul(100_000_000)?.checked_add(joined(digits_of(eight.try_into().ok()?)?))?;
    }
    is_canonical(text).then_some(value)
}

/// Whether digits are written without leading zeros.
#[inline]
fn is_canonical(digits: &[u8]) -> bool {
    digits.len() == 1 || digits.first().is_some_and(|first| *first != b'0')
}

/// Appends the digits that `text` begins with, at most seven, to those of `number`, which has at most twelve. Returns
/// the new number and how many digits were appended.
#[inline]
fn append_digits(mut number: u64, text: &[u8]) -> (u64, usize) {
    let few = text.get(..7).unwrap_or(text);
    let mut count = 0;
    for digit in few.iter().map(|byte| byte.wrapping_sub(b'0')).take_while(|digit| *digit < 10) {
        number = number * 10 + u64::from(digit);
        count += 1;
    }
    (number, count)
}

/// The values of eight digits, a byte for each; `None` if one of the bytes is no digit.
#[inline]
fn digits_of(text: [u8; 8]) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let text = u64::from_le_bytes(text);
    // The upper half of a digit is 3, and it is still 3 after 6 is added; no other byte has both. A carry can only come
    // from a byte that is no digit.
    let upper_is_three = |text: u64| text & (0xf0 * EACH) == 0x30 * EACH;
    (upper_is_three(text) && upper_is_three(text.wrapping_add(6 * EACH))).then_some(text & (0x0f * EACH))
}

/// The number that eight digits form. All are combined at once, with one multiplication each for pairs, fours and eight
/// (after D. Lemire, "Quickly parsing eight digits", 2018).
#[inline]
fn joined(digits: u64) -> u64 {
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff
}

/// A buffer for the longest printed id and receipt, so that printing allocates nothing.
pub struct IdBuffer([u8; IdBuffer::SIZE]);

impl IdBuffer {
    /// The bytes of the longest name, `#` and twenty digits, rounded up.
    const SIZE: usize = 288;

    /// An empty buffer.
    pub const fn new() -> Self {
        IdBuffer([0; Self::SIZE])
    }

    /// Writes the id, which is `name` or else the printed `sequence`, and returns its length.
    pub fn id(&mut self, sequence: Sequence, name: Option<&[u8]>) -> usize {
        match name.map(|name| (name, self.0.get_mut(..name.len()))) {
            Some((name, Some(room))) => {
                room.copy_from_slice(name);
                name.len()
            }
            _ => sequence.write(self).len(),
        }
    }

    /// Appends `#<n>` to an id of `length` bytes, and returns the length of the whole receipt.
    pub fn receipt(&mut self, length: usize, receipt: Receipt) -> usize {
        let length = self.byte(length, b'#');
        self.decimal(length, receipt.0)
    }

    /// The first `length` bytes that were written.
    pub fn text(&self, length: usize) -> &[u8] {
        self.0.get(..length).unwrap_or_default()
    }

    fn byte(&mut self, at: usize, byte: u8) -> usize {
        if let Some(room) = self.0.get_mut(at) {
            *room = byte;
        }
        at + 1
    }

    fn decimal(&mut self, at: usize, value: u64) -> usize {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(value).as_bytes();
        if let Some(room) = self.0.get_mut(at..at + digits.len()) {
            room.copy_from_slice(digits);
        }
        at + digits.len()
    }
}

impl Default for IdBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// A group of one queue. The number is local to a server and is reused after the last message of the group is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupId(pub u32);

/// A consumer that deliveries of one queue bear the name of. The number is local to a server and is used again after
/// the last of these deliveries has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConsumerId(pub u32);

/// A batch of a queue. The number is local to a server and is used again after the batch has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BatchId(pub u32);
