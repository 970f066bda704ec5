//! Tests for implementations of [`ReplayGuard`].
//!
//! # Examples
//!
//! ```
//! use mcp_mrtr::{MemoryReplayGuard, guard_tests};
//!
//! # async fn test() {
//! guard_tests::check_replay_guard(async |limit| MemoryReplayGuard::new(limit), 1_000_000).await;
//! # }
//! ```

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use crate::{NONCE_BYTES, ReplayGuard};

/// Tests an implementation of [`ReplayGuard`]. `make` creates an empty guard of up to so many states, and `now` is the time in
/// seconds since the Unix epoch, which has to be the real one if the guard has a clock of its own.
///
/// # Panics
///
/// Panics if the guard does not behave as the trait requires.
pub async fn check_replay_guard<G: ReplayGuard>(make: impl AsyncFn(usize) -> G, now: u64) {
    let nonce = |byte| [byte; NONCE_BYTES];
    let guard = make(2).await;
    assert!(!guard.is_claimed(now, nonce(1)).await, "it was not used yet");
    assert!(guard.claim(now, nonce(1), now + 10).await);
    assert!(guard.is_claimed(now + 5, nonce(1)).await && !guard.is_claimed(now + 5, nonce(2)).await);
    assert!(!guard.claim(now + 5, nonce(1), now + 10).await, "it was used before");
    assert!(guard.claim(now + 5, nonce(2), now + 20).await, "another one was not");
    assert!(!guard.claim(now + 5, nonce(3), now + 20).await, "full, so it cannot be decided");
    assert!(!guard.is_claimed(now + 5, nonce(3)).await, "it was not used");
    assert!(guard.claim(now + 10, nonce(3), now + 20).await, "the first has expired");
    assert!(guard.is_claimed(now + 10, nonce(2)).await && guard.is_claimed(now + 10, nonce(3)).await);

    // All bytes count, and all values of them.
    let guard = make(1000).await;
    for byte in 0..=255 {
        let mut last = nonce(0);
        last[NONCE_BYTES - 1] = byte;
        assert!(guard.claim(now, last, now + 60).await, "{byte}");
    }

    let guard = make(1000).await;
    let mut claims: Vec<Pin<Box<dyn Future<Output = bool> + Send + '_>>> =
        (0..16).map(|_| guard.claim(now, nonce(1), now + 60)).collect();
    let mut first = 0;
    poll_fn(|cx| {
        claims.retain_mut(|claim| match claim.as_mut().poll(cx) {
            Poll::Ready(is_first) => {
                first += usize::from(is_first);
                false
            }
            Poll::Pending => true,
        });
        if claims.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    assert_eq!(first, 1, "one of several calls is the first");
}
