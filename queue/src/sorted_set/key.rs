//! The keys of the sorted sets: two numbers, whose kinds the type of a key names.

use crate::id::Sequence;
use crate::time::UnixMs;
use std::cmp::Ordering;
use std::marker::PhantomData;

/// One of the two parts of a key: an instant, a sequence, a hash, a turn.
pub trait Word: Copy + Ord + 'static {
    /// Its number; the numbers are ordered as the values are.
    fn word(self) -> u64;
    /// The value that has this number.
    fn from_word(word: u64) -> Self;
}

impl Word for UnixMs {
    #[inline]
    fn word(self) -> u64 {
        self.as_ms()
    }

    #[inline]
    fn from_word(word: u64) -> UnixMs {
        UnixMs::new(word)
    }
}

/// Implements [`Word`] for a type that wraps a number.
macro_rules! word {
    ($kind:ident) => {
        impl $crate::sorted_set::Word for $kind {
            #[inline]
            fn word(self) -> u64 {
                self.0.into()
            }

            #[inline]
            fn from_word(word: u64) -> $kind {
                $kind(word as _)
            }
        }
    };
}

pub(crate) use word;

word!(Sequence);

/// An `A` and a `B`, compared in this order. Most keys are an instant and the sequence of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<A = UnixMs, B = Sequence> {
    pub(super) words: Words,
    of: PhantomData<(A, B)>,
}

const _: () = assert!(size_of::<Key>() == 16);

impl<A: Word, B: Word> Key<A, B> {
    /// The key with these parts.
    #[inline]
    pub fn new(major: A, minor: B) -> Self {
        Self::from_words(Words { major: major.word(), minor: minor.word() })
    }

    /// The largest key that begins with `major`.
    #[inline]
    pub fn last_of(major: A) -> Self {
        Self::from_words(Words { major: major.word(), minor: u64::MAX })
    }

    #[inline]
    pub(super) fn from_words(words: Words) -> Self {
        Key { words, of: PhantomData }
    }

    /// The first part.
    #[inline]
    pub fn major(self) -> A {
        A::from_word(self.words.major)
    }

    /// The second part.
    #[inline]
    pub fn minor(self) -> B {
        B::from_word(self.words.minor)
    }
}

impl Key {
    /// The key of `sequence` at `time`.
    #[inline]
    pub fn at(time: UnixMs, sequence: Sequence) -> Key {
        Key::new(time, sequence)
    }

    /// The largest key of `time`.
    #[inline]
    pub fn end_of(time: UnixMs) -> Key {
        Key::last_of(time)
    }

    /// The time.
    #[inline]
    pub fn time(self) -> UnixMs {
        self.major()
    }
}

impl<A: Word> Key<A> {
    /// The sequence.
    #[inline]
    pub fn sequence(self) -> Sequence {
        self.minor()
    }
}

/// The numbers of a key, as the tree stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    major: u64,
    minor: u64,
}

impl Words {
    /// The smallest key.
    pub const LEAST: Words = Words { major: 0, minor: 0 };
    /// The largest key.
    pub const GREATEST: Words = Words { major: u64::MAX, minor: u64::MAX };

    /// The smallest key with the same first number.
    pub fn first_of(self) -> Words {
        Words { minor: 0, ..self }
    }

    /// The key directly before this one; `None` for the smallest key.
    pub fn just_before(self) -> Option<Words> {
        match self.minor.checked_sub(1) {
            Some(minor) => Some(Words { minor, ..self }),
            None => Some(Words { major: self.major.checked_sub(1)?, minor: u64::MAX }),
        }
    }

    /// Both parts as one number, which is compared with two instructions and without a branch that could be
    /// mispredicted.
    #[inline]
    fn whole(self) -> u128 {
        u128::from(self.major) << 64 | u128::from(self.minor)
    }
}

impl PartialOrd for Words {
    #[inline]
    fn partial_cmp(&self, other: &Words) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // A search calls this for every key; through `cmp` it would take twice as long.
    #[inline]
    fn le(&self, other: &Words) -> bool {
        self.whole() <= other.whole()
    }
}

impl Ord for Words {
    #[inline]
    fn cmp(&self, other: &Words) -> Ordering {
        self.whole().cmp(&other.whole())
    }
}
