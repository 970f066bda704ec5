//! Allocations of a whole process, counted while that is wanted.
//!
//! While it is not, all that this allocator adds to the system's is one look at a flag, so that a client is not charged
//! for being counted when the clock runs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Starts to count from nothing, or leaves it.
pub(crate) fn start(is_counting: bool) {
    COUNT.store(0, Ordering::Relaxed);
    BYTES.store(0, Ordering::Relaxed);
    IS_COUNTING.store(is_counting, Ordering::Relaxed);
}

/// Ends counting; returns how many blocks were asked for, and how many bytes. Growing a block counts as one of its new
/// size.
pub(crate) fn stop() -> (u64, u64) {
    IS_COUNTING.store(false, Ordering::Relaxed);
    (COUNT.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator with an eye on it.
struct Counting;

impl Counting {
    fn allocated(size: usize) {
        if IS_COUNTING.load(Ordering::Relaxed) {
            COUNT.fetch_add(1, Ordering::Relaxed);
            BYTES.fetch_add(size as u64, Ordering::Relaxed);
        }
    }
}

#[expect(unsafe_code, reason = "there is no other way to see allocations; every call goes to the system unchanged")]
// SAFETY: the system's allocator keeps the contract, and what is added neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::allocated(layout.size());
        // SAFETY: the caller keeps the contract of this method, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::allocated(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::allocated(size);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
