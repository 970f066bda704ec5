//! Allocations, counted.
//!
//! Counting is off while the clock runs: then all that this allocator adds to the system's is
//! one look at a thread-local, so that a contestant is not charged for being counted. That is
//! why no crate does this here; those that are around count all the time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What an operation asked of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allocations {
    /// How many blocks were asked for; growing a block counts as asking for one.
    pub count: u64,
    /// How many bytes were asked for; growing a block counts with its new size.
    pub bytes: u64,
}

/// Counts what one run of an operation allocates on this thread.
pub fn count<T>(operation: impl FnOnce() -> T) -> Allocations {
    TALLY.set(Some(NONE));
    let output = operation();
    let allocations = TALLY.take().unwrap_or(NONE);
    drop(output);
    allocations
}

const NONE: Allocations = Allocations { count: 0, bytes: 0 };

thread_local! {
    /// The count so far, if something is being counted.
    static TALLY: Cell<Option<Allocations>> = const { Cell::new(None) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator with an eye on it.
struct Counting;

impl Counting {
    fn note(size: usize) {
        if let Some(Allocations { count, bytes }) = TALLY.get() {
            TALLY.set(Some(Allocations { count: count + 1, bytes: bytes + size as u64 }));
        }
    }
}

#[expect(unsafe_code, reason = "there is no other way to see allocations; every call goes to the system unchanged")]
// SAFETY: the system's allocator keeps the contract, and what is added neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller keeps the contract of this method, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::note(size);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn blocks_and_growth_are_counted() {
        let allocations = count(|| {
            let mut text = black_box(String::with_capacity(10));
            text.reserve_exact(20);
            black_box(text)
        });
        assert_eq!(allocations, Allocations { count: 2, bytes: 30 });
        assert_eq!(count(|| black_box(1)), NONE);
    }
}
