//! Any bytes of a server, into a client over a pair of streams.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::client_stdio(data));
