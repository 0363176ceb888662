//! How values become bytes: MessagePack, written and read field by field. `rmp-serde` writes and reads numbers.
//! Lengths, which say how much follows, are checked here, so that a forged length cannot cause a large allocation.
//!
//! A compound value, such as a message, is a record (see `record!`): an array whose trailing fields are left out if
//! they have their default values. A record therefore grows by a field at its end, and what was written before is read
//! with the default. An older version of the module refuses what it cannot read, because whatever writes such a field
//! calls [`Writer::needs`], and the bytes begin with the version that their reader needs.

mod values;

use super::{Refused, FIRST};
use crate::time::UnixMs;
use serde::de::DeserializeOwned;
use serde::Serialize;

/// The byte of an absent value.
const NIL: u8 = 0xc0;

/// The largest number of fields of an array whose length fits into its first byte, and that byte without the length.
const SHORT: usize = 15;
const SHORT_ARRAY: u8 = 0x90;

/// Something that can be written.
pub(super) trait Encode {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused>;
}

/// Something that can be read; `'a` is the lifetime of the bytes.
pub(super) trait Decode<'a>: Sized {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused>;
}

/// Appends values to a buffer.
pub(super) struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
    /// The instant of the decision; many numbers are written as distances from it.
    pub now: UnixMs,
    version: u8,
}

impl<'b> Writer<'b> {
    pub fn new(buffer: &'b mut Vec<u8>, now: UnixMs) -> Writer<'b> {
        Writer { buffer, now, version: FIRST }
    }

    /// The version of the format that a reader needs for what was written.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Records that the reader needs this version.
    pub fn needs(&mut self, version: u8) {
        self.version = self.version.max(version);
    }

    /// Appends bytes that are not MessagePack.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub fn put<T: Encode + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        value.encode(self)
    }

    fn number<T: Serialize>(&mut self, number: &T) -> Result<(), Refused> {
        rmp_serde::encode::write(self.buffer, number).map_err(|_| Refused::Impossible)
    }

    /// Begins an array of this many values.
    pub fn array(&mut self, length: usize) -> Result<(), Refused> {
        let length = u32::try_from(length).map_err(|_| Refused::Impossible)?;
        rmp::encode::write_array_len(self.buffer, length).map_err(|_| Refused::Impossible)?;
        Ok(())
    }

    /// Writes an array of numbers.
    pub fn numbers(&mut self, numbers: &[i64]) -> Result<(), Refused> {
        self.array(numbers.len())?;
        numbers.iter().try_for_each(|number| self.put(number))
    }

    /// Writes an array of the values that `each` writes.
    pub fn list<T>(
        &mut self,
        values: &[T],
        each: impl FnMut(&mut Writer<'b>, &T) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut each = each;
        self.array(values.len())?;
        values.iter().try_for_each(|value| each(self, value))
    }

    /// Writes a record, whose fields `write` writes.
    pub fn record(
        &mut self,
        write: impl FnOnce(&mut RecordWriter<'_, 'b>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let start = self.buffer.len();
        self.buffer.push(SHORT_ARRAY);
        let mut fields = RecordWriter { start, fields: 0, used: (0, start + 1), to: self };
        write(&mut fields)?;
        fields.end()
    }
}

/// Writes the fields of a record in their order.
pub(super) struct RecordWriter<'w, 'b> {
    to: &'w mut Writer<'b>,
    /// Where the first byte of the record is.
    start: usize,
    fields: usize,
    /// The number of fields up to the last one that does not have its default, and where that one ends.
    used: (usize, usize),
}

impl RecordWriter<'_, '_> {
    /// Writes the next field.
    pub fn put<T: Encode + Default + PartialEq>(&mut self, field: &T) -> Result<(), Refused> {
        let used = self.used;
        self.require(field)?;
        if *field == T::default() {
            self.used = used;
        }
        Ok(())
    }

    /// Writes the next field, which versions before `version` do not have.
    pub fn put_since<T: Encode + Default + PartialEq>(&mut self, version: u8, field: &T) -> Result<(), Refused> {
        if *field != T::default() {
            self.to.needs(version);
        }
        self.put(field)
    }

    /// Writes the next field, which every record has.
    pub fn require<T: Encode>(&mut self, field: &T) -> Result<(), Refused> {
        self.to.put(field)?;
        self.fields += 1;
        self.used = (self.fields, self.to.buffer.len());
        Ok(())
    }

    /// Leaves out the trailing defaults, and writes how many fields remain.
    fn end(self) -> Result<(), Refused> {
        let (fields, end) = self.used;
        let buffer = &mut *self.to.buffer;
        buffer.truncate(end);
        if fields <= SHORT {
            if let Some(first) = buffer.get_mut(self.start) {
                *first |= fields as u8;
            }
            return Ok(());
        }
        let mut length = Vec::new();
        let fields = u32::try_from(fields).map_err(|_| Refused::Impossible)?;
        rmp::encode::write_array_len(&mut length, fields).map_err(|_| Refused::Impossible)?;
        buffer.splice(self.start..=self.start, length);
        Ok(())
    }
}

/// Reads what a [`Writer`] wrote.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// The instant of the decision.
    pub now: UnixMs,
}

impl<'a> Reader<'a> {
    pub fn new(rest: &'a [u8], now: UnixMs) -> Reader<'a> {
        Reader { rest, now }
    }

    pub fn get<T: Decode<'a>>(&mut self) -> Result<T, Refused> {
        T::decode(self)
    }

    fn number<T: DeserializeOwned>(&mut self) -> Result<T, Refused> {
        rmp_serde::from_read(&mut self.rest).map_err(|_| Refused::Malformed)
    }

    /// Reads this many bytes as they are.
    fn raw(&mut self, length: u32) -> Result<&'a [u8], Refused> {
        let (bytes, rest) = self.rest.split_at_checked(length as usize).ok_or(Refused::Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads the length of an array. Each of its values takes at least a byte, so an impossible length is refused
    /// before memory is allocated for it.
    pub fn array(&mut self) -> Result<usize, Refused> {
        let length = rmp::decode::read_array_len(&mut self.rest).map_err(|_| Refused::Malformed)? as usize;
        if length > self.rest.len() {
            return Err(Refused::Malformed);
        }
        Ok(length)
    }

    /// Whether the next value is an array of few values.
    pub fn begins_array(&self) -> bool {
        self.rest.first().is_some_and(|byte| byte & !(SHORT as u8) == SHORT_ARRAY)
    }

    /// Reads an array of numbers.
    pub fn numbers(&mut self) -> Result<Vec<i64>, Refused> {
        self.list(Reader::get)
    }

    /// Reads an array of values, each by `each`.
    pub fn list<T>(&mut self, each: impl FnMut(&mut Reader<'a>) -> Result<T, Refused>) -> Result<Vec<T>, Refused> {
        let mut each = each;
        let length = self.array()?;
        (0..length).map(|_| each(self)).collect()
    }

    /// Reads a record, whose fields `read` reads. Returns an error if fields are left over.
    pub fn record<T>(
        &mut self,
        read: impl FnOnce(&mut RecordReader<'_, 'a>) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let left = self.array()?;
        let mut fields = RecordReader { from: self, left };
        let record = read(&mut fields)?;
        if fields.left == 0 {
            Ok(record)
        } else {
            Err(Refused::Malformed)
        }
    }

    /// Reads an array of numbers, two for each value that `each` makes of them.
    pub fn pairs<T>(&mut self, mut each: impl FnMut(i64, i64) -> Result<T, Refused>) -> Result<Vec<T>, Refused> {
        let pair = |pair: &[i64]| match *pair {
            [first, second] => each(first, second),
            _ => Err(Refused::Malformed),
        };
        self.numbers()?.chunks(2).map(pair).collect()
    }

    /// Returns an error unless all bytes were read.
    pub fn end(self) -> Result<(), Refused> {
        self.rest.is_empty().then_some(()).ok_or(Refused::Malformed)
    }
}

/// Reads the fields of a record in their order.
pub(super) struct RecordReader<'r, 'a> {
    from: &'r mut Reader<'a>,
    left: usize,
}

impl<'a> RecordReader<'_, 'a> {
    /// Reads the next field, or returns its default if it was left out.
    pub fn get<T: Decode<'a> + Default>(&mut self) -> Result<T, Refused> {
        if self.left == 0 {
            return Ok(T::default());
        }
        self.required()
    }

    /// Reads the next field, which every record has.
    pub fn required<T: Decode<'a>>(&mut self) -> Result<T, Refused> {
        self.left = self.left.checked_sub(1).ok_or(Refused::Malformed)?;
        self.from.get()
    }
}

/// Declares the record of a type: the fields that every record has, those that are left out if they have their
/// defaults, and those that a later version added, with that version. The lifetime is that of the bytes.
macro_rules! record {
    ($bytes:lifetime $type:ty { $($required:ident),* ; $($field:ident),* $(; $($version:literal $new:ident),+)? }) => {
        impl<$bytes> Encode for $type {
            fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
                to.record(|fields| {
                    $(fields.require(&self.$required)?;)*
                    $(fields.put(&self.$field)?;)*
                    $($(fields.put_since($version, &self.$new)?;)+)?
                    Ok(())
                })
            }
        }

        impl<$bytes> Decode<$bytes> for $type {
            fn decode(from: &mut Reader<$bytes>) -> Result<Self, Refused> {
                from.record(|fields| {
                    Ok(Self {
                        $($required: fields.required()?,)*
                        $($field: fields.get()?,)*
                        $($($new: fields.get()?,)+)?
                    })
                })
            }
        }
    };
}
pub(super) use record;

/// Declares how the values of types are written and read: as a value of another type, which depends on the instant of
/// the decision. The lifetime is that of the bytes.
macro_rules! coded {
    ($bytes:lifetime; $($(#[$doc:meta])* $type:ty as $code:ty: $put:expr, $get:expr;)+) => {$(
        $(#[$doc])*
        impl<$bytes> Encode for $type {
            fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
                let code: fn(&Self, UnixMs) -> $code = $put;
                to.put(&code(self, to.now))
            }
        }

        impl<$bytes> Decode<$bytes> for $type {
            fn decode(from: &mut Reader<$bytes>) -> Result<Self, Refused> {
                let value: fn($code, UnixMs) -> Option<Self> = $get;
                value(from.get()?, from.now).ok_or(Refused::Malformed)
            }
        }
    )+};
}
pub(super) use coded;

/// Declares that lists of these types are arrays of their values.
macro_rules! lists {
    ($bytes:lifetime; $($type:ty),+) => {$(
        impl<$bytes> Encode for Vec<$type> {
            fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
                to.list(self, |to, value| to.put(value))
            }
        }

        impl<$bytes> Decode<$bytes> for Vec<$type> {
            fn decode(from: &mut Reader<$bytes>) -> Result<Self, Refused> {
                from.list(Reader::get)
            }
        }
    )+};
}
pub(super) use lists;

#[cfg(test)]
mod tests {
    use super::*;

    /// What one version of this module writes of a record.
    #[derive(Debug, Default, PartialEq)]
    struct Older {
        priority: i8,
        name: Option<Box<[u8]>>,
    }

    /// The same record in the next version, which adds a field.
    #[derive(Debug, Default, PartialEq)]
    struct Newer {
        priority: i8,
        name: Option<Box<[u8]>>,
        colour: Option<u32>,
    }

    record!('a Older { ; priority, name });
    record!('a Newer { ; priority, name; 2 colour });

    /// The bytes, and the version that their reader needs.
    fn written(value: &impl Encode) -> (Vec<u8>, u8) {
        let mut buffer = Vec::new();
        let mut to = Writer::new(&mut buffer, UnixMs::EPOCH);
        to.put(value).unwrap();
        let version = to.version();
        (buffer, version)
    }

    fn read<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
        let mut from = Reader::new(bytes, UnixMs::EPOCH);
        let value = from.get()?;
        from.end().map(|()| value)
    }

    fn older(priority: i8) -> Older {
        Older { priority, name: Some(Box::from(&b"m"[..])) }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri would fill four gigabytes")]
    fn what_is_too_long_for_its_length_is_not_written() {
        let long = vec![0; u32::MAX as usize + 1];
        let mut buffer = Vec::new();
        assert_eq!(Writer::new(&mut buffer, UnixMs::EPOCH).put(&long[..]), Err(Refused::Impossible));
        assert_eq!(buffer, []);
    }

    #[test]
    fn a_field_that_is_not_used_changes_no_byte_for_older_modules() {
        let newer = Newer { priority: 3, name: older(3).name, colour: None };
        assert_eq!(written(&newer), written(&older(3)));
        assert_eq!(written(&newer).1, FIRST);
        assert_eq!(read::<Older>(&written(&newer).0), Ok(older(3)));
    }

    #[test]
    fn what_an_older_module_wrote_has_the_default_of_the_field() {
        assert_eq!(read(&written(&older(3)).0), Ok(Newer { priority: 3, name: older(3).name, colour: None }));
        assert_eq!(read(&written(&Older::default()).0), Ok(Newer::default()));
    }

    #[test]
    fn a_field_that_is_used_names_the_version_that_it_needs() {
        let newer = Newer { colour: Some(7), ..Newer::default() };
        let (bytes, version) = written(&newer);
        assert_eq!(version, 2);
        assert_eq!(read(&bytes), Ok(newer));
        assert_eq!(read::<Older>(&bytes), Err(Refused::Malformed), "bytes that name too low a version");
    }

    /// Sixteen fields and more do not fit into the first byte of a record.
    #[test]
    fn a_record_may_have_many_fields() {
        struct Wide(Vec<u8>);
        impl Encode for Wide {
            fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
                to.record(|fields| self.0.iter().try_for_each(|field| fields.put(field)))
            }
        }
        for fields in [1, 14, 15, 16, 17, 300] {
            let (bytes, _) = written(&Wide((0..fields).map(|nth| (nth % 7) as u8 + 1).collect()));
            let mut from = Reader::new(&bytes, UnixMs::EPOCH);
            let read = |record: &mut RecordReader<'_, '_>| (0..fields).map(|_| record.get()).collect();
            let values: Vec<u8> = from.record(read).unwrap();
            assert!(values.into_iter().eq((0..fields).map(|nth| (nth % 7) as u8 + 1)));
            from.end().unwrap();
        }
    }
}
