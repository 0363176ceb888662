//! The directory of a store: its segments in push order, and which of them a sequence belongs to.
//!
//! Most queues have a single segment, and need no directory. With the second segment come two lists: the
//! segments, and apart from them the first sequence of each, so that a search stays in few cache lines.

// Indices come from a search in the same list, or from the caller, who found them here.
#![allow(clippy::indexing_slicing)]

use super::segment::Segment;
use crate::id::Sequence;
use crate::memory::{box_bytes, vec_bytes};
use std::collections::VecDeque;
use std::mem::size_of;
use std::ops::{Index, IndexMut};

/// The segments of a store.
#[derive(Debug, Default)]
pub(super) enum Directory {
    #[default]
    Empty,
    One(Box<Segment>),
    Several(Box<SegmentList>),
}

// Each queue has a segment, so its size is one that the server's allocator does not round up.
const _: () = assert!(size_of::<Segment>() == 64);

/// Two segments or more, none of which is empty: an emptied segment is kept only if it is the last one left.
#[derive(Debug, Default)]
pub(super) struct SegmentList {
    /// The first sequence of each segment, or a lower one if messages were removed.
    firsts: VecDeque<u64>,
    segments: VecDeque<Segment>,
}

impl Directory {
    /// The number of segments.
    pub fn len(&self) -> usize {
        match self {
            Directory::Empty => 0,
            Directory::One(_) => 1,
            Directory::Several(list) => list.segments.len(),
        }
    }

    /// The segment at an index.
    #[inline(always)]
    pub fn get(&self, nth: usize) -> Option<&Segment> {
        // Every command calls this several times. A single test up front is cheaper than three cases.
        if let Directory::Several(list) = self {
            return list.segments.get(nth);
        }
        match self {
            Directory::One(segment) if nth == 0 => Some(segment),
            _ => None,
        }
    }

    #[inline(always)]
    fn get_mut(&mut self, nth: usize) -> Option<&mut Segment> {
        match self {
            Directory::Several(list) => list.segments.get_mut(nth),
            Directory::One(segment) if nth == 0 => Some(segment),
            _ => None,
        }
    }

    /// The last segment.
    pub fn last_mut(&mut self) -> Option<&mut Segment> {
        match self {
            Directory::Empty => None,
            Directory::One(segment) => Some(segment),
            Directory::Several(list) => list.segments.back_mut(),
        }
    }

    /// The segments in push order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.from(0)
    }

    /// The segments from an index on, which is at most their number.
    pub fn from(&self, nth: usize) -> impl DoubleEndedIterator<Item = &Segment> {
        let (one, list) = match self {
            Directory::Empty => (None, None),
            Directory::One(segment) => ((nth == 0).then_some(&**segment), None),
            Directory::Several(list) => (None, Some(list.segments.range(nth..))),
        };
        one.into_iter().chain(list.into_iter().flatten())
    }

    /// The segments in push order, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        let (one, list) = match self {
            Directory::Empty => (None, None),
            Directory::One(segment) => (Some(&mut **segment), None),
            Directory::Several(list) => (None, Some(&mut list.segments)),
        };
        one.into_iter().chain(list.into_iter().flatten())
    }

    /// Adds a segment behind all others. It is empty, and `first` will be its first sequence.
    pub fn push(&mut self, first: Sequence, segment: Segment) {
        match self {
            Directory::Empty => *self = Directory::One(Box::new(segment)),
            Directory::Several(list) => {
                list.firsts.push_back(first.0);
                list.segments.push_back(segment);
            }
            Directory::One(_) => {
                let mut segments = std::mem::take(self).into_segments();
                segments.push_back(segment);
                let mut list = SegmentList::new(segments);
                list.firsts.back_mut().into_iter().for_each(|last| *last = first.0);
                *self = Directory::Several(Box::new(list));
            }
        }
    }

    /// Removes a segment. Gives memory back that is no longer needed.
    pub fn remove(&mut self, nth: usize) -> Option<Segment> {
        let Directory::Several(list) = self else {
            return std::mem::take(self).into_segments().pop_front();
        };
        list.firsts.remove(nth);
        let removed = list.segments.remove(nth);
        if list.segments.len() < 2 {
            *self = Directory::new(std::mem::take(&mut list.segments));
        } else {
            list.shrink();
        }
        removed
    }

    /// The segment to which `sequence` belongs, with the bounds of the sequences that it can hold.
    pub fn search(&self, sequence: Sequence) -> Option<(usize, u64, u64)> {
        match self {
            Directory::Empty => None,
            Directory::One(segment) => {
                let first = segment.first().filter(|first| *first <= sequence)?;
                Some((0, first.0, segment.last()?.0))
            }
            Directory::Several(list) => {
                let nth = list.firsts.partition_point(|first| *first <= sequence.0).checked_sub(1)?;
                let last = match list.firsts.get(nth + 1) {
                    Some(next) => next - 1,
                    None => list.segments[nth].last()?.0,
                };
                Some((nth, list.firsts[nth], last))
            }
        }
    }

    /// A directory of these segments.
    pub fn new(mut segments: VecDeque<Segment>) -> Directory {
        if segments.len() > 1 {
            return Directory::Several(Box::new(SegmentList::new(segments)));
        }
        segments.pop_front().map_or(Directory::Empty, |only| Directory::One(Box::new(only)))
    }

    /// The segments, without their directory.
    pub fn into_segments(self) -> VecDeque<Segment> {
        match self {
            Directory::Empty => VecDeque::new(),
            Directory::One(segment) => VecDeque::from([*segment]),
            Directory::Several(list) => list.segments,
        }
    }

    /// The number of bytes on the heap. O(segments).
    pub fn heap_bytes(&self) -> usize {
        let segments = match self {
            Directory::Empty => 0,
            Directory::One(_) => box_bytes::<Segment>(),
            Directory::Several(list) => {
                box_bytes::<SegmentList>()
                    + vec_bytes::<Segment>(list.segments.capacity())
                    + vec_bytes::<u64>(list.firsts.capacity())
            }
        };
        segments + self.iter().map(Segment::heap_bytes).sum::<usize>()
    }
}

impl SegmentList {
    fn new(segments: VecDeque<Segment>) -> SegmentList {
        SegmentList {
            firsts: segments.iter().map(|segment| segment.first().map_or(0, |first| first.0)).collect(),
            segments,
        }
    }

    fn shrink(&mut self) {
        let kept = self.segments.len() * 2 + 4;
        if self.segments.capacity() > 2 * kept {
            self.segments.shrink_to(kept);
            self.firsts.shrink_to(kept);
        }
    }
}

impl Index<usize> for Directory {
    type Output = Segment;

    #[inline(always)]
    #[allow(clippy::expect_used, reason = "as for the index of a vector")]
    fn index(&self, nth: usize) -> &Segment {
        self.get(nth).expect("a segment that was found here")
    }
}

impl IndexMut<usize> for Directory {
    #[inline(always)]
    #[allow(clippy::expect_used, reason = "as for the index of a vector")]
    fn index_mut(&mut self, nth: usize) -> &mut Segment {
        self.get_mut(nth).expect("a segment that was found here")
    }
}
