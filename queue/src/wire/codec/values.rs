//! How plain values are written and read: numbers, bytes, text, and what may be absent.

use super::{lists, Decode, Encode, Reader, Writer, NIL};
use crate::wire::Refused;

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Encode for $type {
            fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
                to.number(self)
            }
        }

        impl Decode<'_> for $type {
            fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
                from.number()
            }
        }
    )*};
}

numbers!(u64, i64, u32, i32, u8, i8);

impl<const N: usize> Encode for [i64; N] {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.numbers(self)
    }
}

impl<const N: usize> Decode<'_> for [i64; N] {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        if from.array()? != N {
            return Err(Refused::Malformed);
        }
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = from.get()?;
        }
        Ok(numbers)
    }
}

/// Refuses what is too long for the 32 bits of its length.
fn has_a_length(bytes: &[u8]) -> Result<(), Refused> {
    u32::try_from(bytes.len()).map(drop).map_err(|_| Refused::Impossible)
}

impl Encode for [u8] {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        has_a_length(self)?;
        rmp::encode::write_bin(to.buffer, self).map_err(|_| Refused::Impossible)
    }
}

impl Encode for str {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        has_a_length(self.as_bytes())?;
        rmp::encode::write_str(to.buffer, self).map_err(|_| Refused::Impossible)
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(*self)
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&**self)
    }
}

impl<'a> Decode<'a> for &'a [u8] {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        let length = rmp::decode::read_bin_len(&mut from.rest).map_err(|_| Refused::Malformed)?;
        from.raw(length)
    }
}

impl<'a> Decode<'a> for &'a str {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        let length = rmp::decode::read_str_len(&mut from.rest).map_err(|_| Refused::Malformed)?;
        std::str::from_utf8(from.raw(length)?).map_err(|_| Refused::Malformed)
    }
}

impl Decode<'_> for Box<[u8]> {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        from.get::<&[u8]>().map(Box::from)
    }
}

impl Decode<'_> for Box<str> {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        from.get::<&str>().map(Box::from)
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        match self {
            Some(value) => to.put(value),
            None => {
                to.raw(&[NIL]);
                Ok(())
            }
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        match from.rest.split_first() {
            Some((&NIL, rest)) => {
                from.rest = rest;
                Ok(None)
            }
            _ => from.get().map(Some),
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Box<T> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        from.get().map(Box::new)
    }
}

lists!('a; &'a [u8]);
