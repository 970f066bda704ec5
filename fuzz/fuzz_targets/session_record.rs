//! Any bytes as the stored record of a session.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::session_record(data));
