//! Any requests to a server over HTTP.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::server_http(data));
