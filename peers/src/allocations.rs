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
    let (output, tally) = tallied(operation);
    drop(output);
    tally.allocations
}

/// Runs an operation once; returns its output and how many bytes are allocated on this thread since, and not freed.
///
/// It is negative if the operation frees more than it allocates.
pub fn retained<T>(operation: impl FnOnce() -> T) -> (T, i64) {
    let (output, tally) = tallied(operation);
    (output, tally.retained)
}

fn tallied<T>(operation: impl FnOnce() -> T) -> (T, Tally) {
    TALLY.set(Some(NONE));
    let output = operation();
    (output, TALLY.take().unwrap_or(NONE))
}

#[derive(Debug, Clone, Copy)]
struct Tally {
    allocations: Allocations,
    /// The bytes that were allocated and not freed.
    retained: i64,
}

const NONE: Tally = Tally { allocations: Allocations { count: 0, bytes: 0 }, retained: 0 };

thread_local! {
    /// The count so far, if something is being counted.
    static TALLY: Cell<Option<Tally>> = const { Cell::new(None) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator with an eye on it.
struct Counting;

impl Counting {
    /// Notes that a block of `old` bytes, if any, became one of `new` bytes.
    fn allocated(old: usize, new: usize) {
        if let Some(mut tally) = TALLY.get() {
            tally.allocations.count += 1;
            tally.allocations.bytes += new as u64;
            tally.retained += new as i64 - old as i64;
            TALLY.set(Some(tally));
        }
    }

    fn freed(size: usize) {
        if let Some(mut tally) = TALLY.get() {
            tally.retained -= size as i64;
            TALLY.set(Some(tally));
        }
    }
}

#[expect(unsafe_code, reason = "there is no other way to see allocations; every call goes to the system unchanged")]
// SAFETY: the system's allocator keeps the contract, and what is added neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::allocated(0, layout.size());
        // SAFETY: the caller keeps the contract of this method, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::allocated(0, layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::allocated(layout.size(), size);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::freed(layout.size());
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
        assert_eq!(count(|| black_box(1)), NONE.allocations);
    }

    #[test]
    fn what_is_freed_is_not_retained() {
        let (text, bytes) = retained(|| {
            drop(black_box(String::with_capacity(100)));
            let mut text = black_box(String::with_capacity(10));
            text.reserve_exact(20);
            text
        });
        assert_eq!(bytes, 20);
        assert_eq!(retained(|| drop(text)).1, -20);
    }
}
