//! Any text in a header.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::header_encoding(data));
