//! Any answers and any states, against handlers with all kinds of questions.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::rounds(data));
