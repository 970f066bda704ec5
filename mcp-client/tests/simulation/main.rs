//! Our client with our server, on a way that loses, repeats, delays and breaks, with a clock that jumps.
//!
//! Everything happens in one thread and by one sequence of random numbers, so that a seed that fails always fails. Each
//! call has to end exactly once, with its own result or with an error, and nothing may stay behind.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

mod pipe;
mod requests;
mod world;

use mcp_client::types::Revision;

/// Seeds that are tried: more with `MCP_SEEDS`.
fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("MCP_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    0..count
}

/// Over a pipe whose server dies now and then.
// covers: IO-14, K-7, K-8, K-10, RB-72
#[test]
fn every_call_ends_once_over_a_pipe() {
    let mut succeeded = 0;
    for seed in seeds() {
        for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
            succeeded += pipe::run(seed, revision);
        }
    }
    assert!(succeeded > 0, "nothing ever worked");
}

/// With a request for each call, some of which break, and sessions that get lost.
// covers: H-24, H-25, S4.53
#[test]
fn every_call_ends_once_over_requests() {
    let mut succeeded = 0;
    for seed in seeds() {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            succeeded += requests::run(seed, revision);
        }
    }
    assert!(succeeded > 0, "nothing ever worked");
}
