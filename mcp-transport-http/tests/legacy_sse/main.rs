//! HTTP+SSE of 2024-11-05: what its clients see, and what they cannot do to others.

mod abuse;
mod blocking;
mod client;
#[path = "../server/demo.rs"]
#[expect(dead_code, reason = "it belongs to the tests of the other transport, which need more of it")]
mod demo;
mod ending;
mod hooks;
mod hosting;
mod limits;
#[path = "../server/raw_http.rs"]
#[expect(dead_code, reason = "it belongs to the tests of the other transport, which need more of it")]
mod raw_http;
mod talking;
#[path = "../server/threads.rs"]
mod threads;

/// Whether responses may name a session.
const HAS_SESSIONS: bool = true;
