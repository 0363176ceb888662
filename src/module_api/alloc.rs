//! The module's global allocator. It forwards to the server's allocator, so that queues count towards `used_memory` and
//! `maxmemory`.
//!
//! The allocator of the `redis-module` crate implements only `alloc` and `dealloc`: a `Vec` that grows is always
//! copied, zeroed memory is cleared by hand, and a unit test without a server aborts. This one forwards all four calls.
//! If no server has filled in the API table (unit tests, benches, fuzzing), it uses the system's allocator.
//!
//! Each call chooses the allocator by a pointer that the server writes once, as the first act of the load. So nothing
//! may be allocated before that: the block would be taken from one allocator and returned to the other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use redis_module::raw;

/// The alignment that every server's allocator guarantees, in bytes. It is not 16: jemalloc aligns 8-byte blocks to 8,
/// and a server whose malloc cannot report the size of a block puts an 8-byte header before each block.
const SERVER_ALIGN: usize = 8;

/// The space for the pointer to the true start of an over-aligned block, in bytes. The pointer is stored just before
/// the block.
const LINK: usize = size_of::<*mut u8>();

// The link fits between the start of a block and the next address that is aligned to more than `SERVER_ALIGN`.
const _: () = assert!(LINK <= SERVER_ALIGN);

/// The global allocator of the module: the server's allocator, or the system's if there is no server.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerAlloc;

/// Returns whether the layout needs more alignment than the server guarantees, so that a larger block must be
/// requested.
const fn is_over_aligned(layout: Layout) -> bool {
    layout.align() > SERVER_ALIGN
}

/// The number of bytes to request from the server so that an over-aligned block of `size` bytes fits. Returns `None` if
/// the sum overflows.
const fn padded(size: usize, align: usize) -> Option<usize> {
    size.checked_add(align)
}

/// Returns the aligned block within `base` and stores the address of `base` just before it. Returns null if `base` is
/// null.
///
/// # Safety
/// `base` is null, or a block of at least `size + align` bytes, aligned to [`SERVER_ALIGN`]. `align` is a power of two
/// greater than [`SERVER_ALIGN`].
unsafe fn place(base: *mut u8, align: usize) -> *mut u8 {
    if base.is_null() {
        return base;
    }
    // The shift is from 8 to `align` bytes, because `base` is a multiple of 8.
    let shift = align - (base.addr() & (align - 1));
    // SAFETY: `shift <= align`, so the block of `size` bytes ends within `base`; and `shift >= LINK`, so the link
    // lies within it too, at an address that is a multiple of 8.
    unsafe {
        let block = base.add(shift);
        block.sub(LINK).cast::<*mut u8>().write(base);
        block
    }
}

/// Returns the start that [`place`] stored for `block`.
///
/// # Safety
/// `block` was returned by [`place`] and is not null.
unsafe fn base_of(block: *mut u8) -> *mut u8 {
    // SAFETY: `place` wrote the link there, aligned.
    unsafe { block.sub(LINK).cast::<*mut u8>().read() }
}

// SAFETY: every block comes from the server's allocator or from `System`, whichever is in force, and both are
// correct and thread-safe; which one is in force changes only once, before the first allocation (see above).
// Layouts that the server cannot align are placed within larger blocks. Nothing here unwinds.
unsafe impl GlobalAlloc for ServerAlloc {
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
