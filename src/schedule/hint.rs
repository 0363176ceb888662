//! A hint, and how the agenda stores it.
//!
//! Each queue that has something to do has a hint, so hints are most of the memory that a small queue takes outside its
//! value. The sort key of a hint takes 12 bytes and its address 16, so a node of std's B-tree, which holds eleven,
//! exactly fills a size class of the server's allocator.

use std::num::NonZeroU32;

use dq_queue::time::UnixMs;

/// A key to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The database of the key.
    pub db: i32,
    /// The name of the key.
    pub key: Box<[u8]>,
    /// What is known about the key.
    pub grounds: Grounds,
}

/// Why a hint was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// The queue at the key was armed with this hint. If it is not there when the time comes, it has moved elsewhere.
    Armed,
    /// The walk met a queue at the key. If there is none when the time comes, it has moved elsewhere.
    Met,
    /// The timer was asked to look at the key, and nothing is known about it.
    Asked,
}

/// The time of a hint and its number.
pub(super) type HintId = (UnixMs, NonZeroU32);

/// The time of a hint and its number, in this order. Two halves of the time need no alignment to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackedId {
    upper: u32,
    lower: u32,
    number: NonZeroU32,
}

const _: () = assert!(size_of::<PackedId>() == 12);

impl From<HintId> for PackedId {
    fn from((at, number): HintId) -> PackedId {
        PackedId { upper: (at.as_ms() >> 32) as u32, lower: at.as_ms() as u32, number }
    }
}

impl PackedId {
    /// The time of the hint.
    pub fn at(self) -> UnixMs {
        UnixMs::new(u64::from(self.upper) << 32 | u64::from(self.lower))
    }

    pub fn unpacked(self) -> HintId {
        (self.at(), self.number)
    }
}

/// What a hint says. One byte has the database and the grounds, and the name follows; a database number that does not
/// fit into that byte takes four more.
#[derive(Debug)]
pub(super) struct PackedHint(Box<[u8]>);

/// Stands for a database whose number takes four more bytes.
const LARGE_DB: u8 = 63;

impl PackedHint {
    pub fn new(db: i32, key: &[u8], grounds: Grounds) -> PackedHint {
        let small = u8::try_from(db).ok().filter(|db| *db < LARGE_DB);
        let grounds = match grounds {
            Grounds::Armed => 0,
            Grounds::Met => 1,
            Grounds::Asked => 2,
        };
        let mut bytes = Vec::with_capacity(1 + if small.is_some() { 0 } else { size_of::<i32>() } + key.len());
        bytes.push(small.unwrap_or(LARGE_DB) << 2 | grounds);
        if small.is_none() {
            bytes.extend_from_slice(&db.to_le_bytes());
        }
        bytes.extend_from_slice(key);
        PackedHint(bytes.into())
    }

    pub fn unpacked(&self) -> Hint {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        let (db, key) = match (first >> 2, rest.split_first_chunk()) {
            (LARGE_DB, Some((db, key))) => (i32::from_le_bytes(*db), key),
            (db, _) => (db.into(), rest),
        };
        let grounds = match first & 3 {
            0 => Grounds::Armed,
            1 => Grounds::Met,
            _ => Grounds::Asked,
        };
        Hint { db, key: key.into(), grounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_comes_out_as_it_went_in() {
        for db in [0, 1, 62, 63, 64, 255, 256, i32::MAX, -1] {
            for grounds in [Grounds::Armed, Grounds::Met, Grounds::Asked] {
                for key in [&b""[..], b"q", b"a longer name"] {
                    let hint = Hint { db, key: key.into(), grounds };
                    assert_eq!(PackedHint::new(db, key, grounds).unpacked(), hint);
                }
            }
        }
    }

    #[test]
    fn hints_are_ordered_by_time_and_then_by_number() {
        let times = [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 32) + 1, UnixMs::MAX.as_ms()].map(UnixMs::new);
        let numbers = [1, 2, u32::MAX].map(|number| NonZeroU32::new(number).unwrap());
        let ids: Vec<HintId> = times.iter().flat_map(|at| numbers.map(|number| (*at, number))).collect();
        let packed: Vec<PackedId> = ids.iter().map(|id| PackedId::from(*id)).collect();
        assert!(packed.is_sorted_by(|one, next| one < next));
        assert!(packed.iter().zip(&ids).all(|(packed, id)| packed.unpacked() == *id));
    }
}
