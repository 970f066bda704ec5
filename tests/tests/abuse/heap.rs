//! How much is allocated in this process.
#![allow(unreachable_pub, reason = "shared by test targets, none of which has a public interface")]

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap::Cap;

/// Knows how many bytes are allocated.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The bytes are those of the whole process, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The right to run; a test gets it before it makes anything.
pub struct Alone {
    _guard: MutexGuard<'static, ()>,
}

pub fn alone() -> Alone {
    Alone { _guard: ALONE.lock().unwrap_or_else(PoisonError::into_inner) }
}

/// How many bytes are allocated.
pub fn allocated() -> usize {
    ALLOCATOR.allocated()
}
