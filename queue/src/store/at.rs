//! Where a message is in the store.

/// The place of a message, which is valid until the next insertion or removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    pub(super) segment: u32,
    pub(super) index: u32,
}

impl At {
    /// The place at an index of a segment. A queue has far fewer segments than 32 bits can count.
    pub(super) fn new(segment: usize, index: usize) -> At {
        At { segment: segment as u32, index: index as u32 }
    }

    pub(super) fn segment(self) -> usize {
        self.segment as usize
    }

    pub(super) fn index(self) -> usize {
        self.index as usize
    }
}
