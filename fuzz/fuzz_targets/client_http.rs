//! Any responses of a server over HTTP, into a client.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_tests::fuzz::client_http(data));
