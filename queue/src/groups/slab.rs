//! A growing array that never moves what it holds, and gives back the memory of parts that are no longer used.

use crate::memory::vec_bytes;

/// The number of entries in one part.
const PART: usize = 256;

/// Entries by number. An entry that was never written, or that was vacated, has its default value.
#[derive(Debug)]
pub(super) struct Slab<T> {
    parts: Vec<Part<T>>,
    used: usize,
}

#[derive(Debug)]
struct Part<T> {
    /// Empty, or [`PART`] entries.
    entries: Vec<T>,
    used: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { parts: Vec::new(), used: 0 }
    }
}

impl<T: Default> Slab<T> {
    /// The number of entries in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The entry with a number; `None` if its part has no memory. A vacant entry has its default value.
    pub fn get(&self, number: u32) -> Option<&T> {
        #[cfg(test)]
        looked_at::count();
        let number = number as usize;
        self.parts.get(number / PART)?.entries.get(number % PART)
    }

    /// [`Slab::get`], to change it.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let number = number as usize;
        self.parts.get_mut(number / PART)?.entries.get_mut(number % PART)
    }

    /// Marks a vacant entry as used, and returns it.
    pub fn occupy(&mut self, number: u32) -> Option<&mut T> {
        let number = number as usize;
        while self.parts.len() <= number / PART {
            self.parts.push(Part { entries: Vec::new(), used: 0 });
        }
        let part = self.parts.get_mut(number / PART)?;
        if part.entries.is_empty() {
            part.entries.reserve_exact(PART);
            part.entries.resize_with(PART, T::default);
        }
        part.used += 1;
        self.used += 1;
        part.entries.get_mut(number % PART)
    }

    /// Empties an entry that was in use, and frees the memory of its part if no entry of it is in use.
    pub fn vacate(&mut self, number: u32) {
        let number = number as usize;
        let Some(part) = self.parts.get_mut(number / PART) else { return };
        if let Some(entry) = part.entries.get_mut(number % PART) {
            *entry = T::default();
            part.used -= 1;
            self.used -= 1;
        }
        if part.used == 0 {
            part.entries = Vec::new();
        }
    }

    /// All entries of the parts that have memory, with their numbers. Some may be vacant.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.parts.iter().enumerate().flat_map(|(nth, part)| {
            let number = move |at: usize| (nth * PART + at) as u32;
            part.entries.iter().enumerate().map(move |(at, entry)| {
                #[cfg(test)]
                looked_at::count();
                (number(at), entry)
            })
        })
    }

    /// The number of entries of all parts, including those that have no memory.
    pub fn length(&self) -> usize {
        self.parts.len() * PART
    }

    /// The number of bytes on the heap, without what the entries hold. O(n / 256).
    pub fn heap_bytes(&self) -> usize {
        let entries = self.parts.iter().map(|part| vec_bytes::<T>(part.entries.capacity())).sum::<usize>();
        entries + vec_bytes::<Part<T>>(self.parts.capacity())
    }
}

/// Counts in tests how many entries of all slabs a thread looks at.
#[cfg(test)]
pub(super) mod looked_at {
    use std::cell::Cell;

    thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

    pub(super) fn count() {
        COUNT.set(COUNT.get() + 1);
    }

    /// How many entries `look` looks at.
    pub fn during<R>(look: impl FnOnce() -> R) -> usize {
        let before = COUNT.get();
        let _ = look();
        COUNT.get() - before
    }
}
