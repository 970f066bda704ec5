//! Any bytes as what happens to a server's connection, one thing per line.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::sequence(data));
