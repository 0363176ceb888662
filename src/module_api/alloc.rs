//! The module's allocator: the server's own, so that queues count in `used_memory` and in `maxmemory`.
//!
//! The crate's allocator knows only alloc and free: growing a `Vec` copies it, zeroed memory is cleared by hand,
//! and a unit test without a server aborts. This one forwards all four calls, and where no server has filled the
//! API table (unit tests, benches, fuzzing) it is the system's allocator.
//!
//! The choice is made call by call, on a pointer that the server writes once, as the first act of the load. So
//! nothing may be allocated before that act: it would be taken from one allocator and given back to the other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use redis_module::raw;

/// The alignment that every server's allocator gives, bytes. Not 16: jemalloc aligns 8-byte blocks to 8, and a
/// server built on a malloc that cannot tell sizes puts 8 bytes before each block.
const SERVER_ALIGN: usize = 8;

/// Room for the pointer to the true start of an over-aligned block, kept just before it, bytes.
const LINK: usize = size_of::<*mut u8>();

// The link fits between the start of a block and the next address that is aligned to more than SERVER_ALIGN.
const _: () = assert!(LINK <= SERVER_ALIGN);

/// The global allocator of the module: the server's, or the system's where there is no server.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerAlloc;

/// Whether the server must be asked for more, so that the block can be aligned within it.
#[inline]
const fn is_over_aligned(layout: Layout) -> bool {
    layout.align() > SERVER_ALIGN
}

/// What to ask the server for, bytes, so that an over-aligned block of `size` bytes fits.
#[inline]
const fn padded(size: usize, align: usize) -> Option<usize> {
    size.checked_add(align)
}

/// The aligned block within `base`, whose start is noted just before it. Null stays null.
///
/// # Safety
/// `base` is null, or a block of at least `size + align` bytes, aligned to [`SERVER_ALIGN`]; `align` is a power of
/// two above it.
unsafe fn place(base: *mut u8, align: usize) -> *mut u8 {
    if base.is_null() {
        return base;
    }
    // From 8 to `align` bytes, as `base` is a multiple of 8.
    let shift = align - (base.addr() & (align - 1));
    // SAFETY: `shift <= align`, so the block of `size` bytes ends within `base`; and `shift >= LINK`, so the link
    // lies within it too, at an address that is a multiple of 8.
    unsafe {
        let block = base.add(shift);
        block.sub(LINK).cast::<*mut u8>().write(base);
        block
    }
}

/// The start that [`place`] noted for `block`.
///
/// # Safety
/// `block` came from [`place`] and was not null.
unsafe fn base_of(block: *mut u8) -> *mut u8 {
    // SAFETY: `place` wrote the link there, aligned.
    unsafe { block.sub(LINK).cast::<*mut u8>().read() }
}

// SAFETY: every block comes from the server's allocator or from `System`, whichever is in force, and both are
// correct and thread-safe; which one is in force changes only once, before the first allocation (see above).
// Layouts that the server cannot align are placed within larger blocks. Nothing here unwinds.
unsafe impl GlobalAlloc for ServerAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the static is read by value; the layout is the caller's, of a size that is not zero.
        unsafe {
            match raw::RedisModule_Alloc {
                Some(alloc) if !is_over_aligned(layout) => alloc(layout.size()).cast(),
                Some(alloc) => match padded(layout.size(), layout.align()) {
                    Some(bytes) => place(alloc(bytes).cast(), layout.align()),
                    None => ptr::null_mut(),
                },
                None => System.alloc(layout),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe {
            match raw::RedisModule_Calloc {
                Some(calloc) if !is_over_aligned(layout) => calloc(1, layout.size()).cast(),
                Some(calloc) => match padded(layout.size(), layout.align()) {
                    Some(bytes) => place(calloc(1, bytes).cast(), layout.align()),
                    None => ptr::null_mut(),
                },
                None => System.alloc_zeroed(layout),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is one of this allocator's, made with this layout, so it has a link if and only if the
        // layout is over-aligned.
        unsafe {
            match raw::RedisModule_Free {
                Some(free) if !is_over_aligned(layout) => free(block.cast()),
                Some(free) => free(base_of(block).cast()),
                None => System.dealloc(block, layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`; the caller warrants that `new_size` is not zero and fits the alignment. The copy
        // is of the shorter of both sizes, between two blocks that live.
        unsafe {
            match raw::RedisModule_Realloc {
                Some(realloc) if !is_over_aligned(layout) => realloc(block.cast(), new_size).cast(),
                Some(_) => {
                    let wanted = Layout::from_size_align_unchecked(new_size, layout.align());
                    let grown = self.alloc(wanted);
                    if !grown.is_null() {
                        ptr::copy_nonoverlapping(block, grown, layout.size().min(new_size));
                        self.dealloc(block, layout);
                    }
                    grown
                }
                None => System.realloc(block, layout, new_size),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_over_aligned_block_is_aligned_within_its_base_and_finds_it_again() {
        for align in [16, 32, 64, 4096] {
            for offset in [0, 8, 16, 24] {
                let size = 40;
                let layout = Layout::from_size_align(padded(size, align).unwrap() + offset, 8).unwrap();
                // SAFETY: a fresh block of the system's, large enough for every placement, freed at the end.
                unsafe {
                    let whole = System.alloc(layout);
                    let base = whole.add(offset);
                    let block = place(base, align);
                    assert_eq!(block.addr() % align, 0);
                    assert!(block.addr() - LINK >= base.addr());
                    assert!(block.addr() + size <= base.addr() + size + align);
                    block.write_bytes(0xff, size);
                    assert_eq!(base_of(block), base);
                    System.dealloc(whole, layout);
                }
            }
        }
    }

    #[test]
    fn null_stays_null_and_sizes_that_overflow_are_refused() {
        // SAFETY: null is allowed.
        assert!(unsafe { place(ptr::null_mut(), 64) }.is_null());
        assert_eq!(padded(usize::MAX, 16), None);
    }

    #[test]
    fn without_a_server_it_is_the_systems_allocator() {
        let layout = Layout::from_size_align(24, 64).unwrap();
        // SAFETY: one block, grown and freed with its own layouts.
        unsafe {
            let block = ServerAlloc.alloc_zeroed(layout);
            assert_eq!(block.addr() % 64, 0);
            assert_eq!(block.read(), 0);
            block.write(7);
            let grown = ServerAlloc.realloc(block, layout, 4096);
            assert_eq!(grown.read(), 7);
            ServerAlloc.dealloc(grown, Layout::from_size_align(4096, 64).unwrap());
        }
    }
}
