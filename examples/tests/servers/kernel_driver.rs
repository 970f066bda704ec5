//! The driver of `mcp-kernel` without a runtime.

use mcp::serde_json::json;

use crate::client::{Client, Era};

const KERNEL_DRIVER: &str = env!("CARGO_BIN_EXE_kernel_driver");

// covers: GW-11
#[tokio::test]
async fn gw_11_it_answers_in_both_eras() {
    for era in [Era::Legacy("2024-11-05"), Era::Legacy("2025-11-25"), Era::Modern] {
        let mut client = Client::start(KERNEL_DRIVER, &[], era).await;
        assert_eq!(client.ask("tools/list", json!({})).await["tools"][0]["name"], "hello");
        assert_eq!(client.call("hello", json!({})).await["content"][0]["text"], "Hello!", "{era:?}");
        client.finish().await;
    }
}

/// Long enough to be useful, short enough to be read.
#[test]
fn it_has_fewer_than_80_lines() {
    assert!(include_str!("../../src/bin/kernel_driver.rs").lines().count() < 80);
}
