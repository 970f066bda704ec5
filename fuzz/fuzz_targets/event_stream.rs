//! Any bytes as a stream of events, in pieces and whole.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::event_stream(data));
