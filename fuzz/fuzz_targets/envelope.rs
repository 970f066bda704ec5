//! Any bytes as one unit of a transport.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::envelope(data));
