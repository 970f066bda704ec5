//! Messages that are longer than the other side reads.

use std::time::Duration;

use mcp_client::{Error, Mode};
use mcp_server::{Server, tool};
use mcp_transport_stdio::{ServeOptions, StreamTransport, serve_io};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::peer::{builder, call, modern_with, peer, text, within};

/// A response that is too long ends its call at once, wherever its id stands, and the connection goes on.
// covers: INT-3
#[tokio::test(start_paused = true)]
async fn int_3_a_response_that_is_too_long_ends_its_call() {
    let filler = "x".repeat(1_000_000);
    for is_first in [true, false] {
        let (client, mut peer) = modern_with(1000, builder(), |transport| transport.line_limit(10_000)).await;
        let serve = async {
            let (long, other) = (peer.asked("tools/call").await, peer.asked("tools/call").await);
            let (id, result) = (&long["id"], format!(r#""result":{{"id":{},"content":"{filler}"}}"#, other["id"]));
            let line = if is_first {
                format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#)
            } else {
                format!(r#"{{"jsonrpc":"2.0",{result},"id":{id}}}"#)
            };
            peer.write(format!("{line}\n").as_bytes()).await;
            peer.answer(&other, "hello").await;
        };
        let without_limit = || client.call_tool("tool").idle_timeout(Duration::MAX).into_future();
        let ((first, second), ()) =
            within(async { tokio::join!(async { tokio::join!(without_limit(), call(&client)) }, serve) }).await;
        let error = first.expect_err("it is too long");
        assert!(matches!(error, Error::ResponseTooLong { limit: 10_000 }), "{error:?}");
        assert!(error.to_string().contains("10000 bytes") && error.to_string().contains("`line_limit`"), "{error}");
        assert_eq!(text(second), "hello");
    }
}

/// Where the id cannot be read, the response may have been that of any call.
// covers: INT-3
#[tokio::test(start_paused = true)]
async fn int_3_a_response_without_an_id_ends_every_call() {
    let filler = "x".repeat(1_000_000);
    let (client, mut peer) = modern_with(1000, builder(), |transport| transport.line_limit(10_000)).await;
    let serve = async {
        peer.asked("tools/call").await;
        peer.asked("tools/call").await;
        peer.write(format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"content\":\"{filler}\"}}}}\n").as_bytes()).await;
        let request = peer.asked("tools/call").await;
        peer.answer(&request, "hello").await;
    };
    let without_limit = || client.call_tool("tool").idle_timeout(Duration::MAX).into_future();
    let calls = async {
        let ended = tokio::join!(without_limit(), without_limit());
        (ended, call(&client).await)
    };
    let (((first, second), third), ()) = within(async { tokio::join!(calls, serve) }).await;
    for ended in [first, second] {
        assert!(matches!(ended, Err(Error::ResponseTooLong { limit: 10_000 })), "{ended:?}");
    }
    assert_eq!(text(third), "hello");
}

/// What is too long and no response ends no call: stray output, a notification, the request of a legacy server, which is
/// refused by its id.
// covers: INT-3
#[tokio::test(start_paused = true)]
async fn int_3_other_lines_that_are_too_long_end_no_call() {
    let filler = "x".repeat(1_000_000);
    let (transport, mut peer) = peer(1000);
    let connect = builder().mode(Mode::Legacy).connect(transport.line_limit(10_000));
    let (client, ()) = within(async { tokio::join!(connect, peer.initialized()) }).await;
    let client = client.expect("a connection");
    let serve = async {
        let request = peer.asked("tools/call").await;
        let id = &request["id"];
        for line in [
            filler.clone(),
            format!(r#"{{"level":"info","text":"{filler}","id":{id}}}"#),
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{filler}","id":{id}}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","method":"roots/list","params":{{"text":"{filler}"}},"id":{id}}}"#),
        ] {
            peer.write(format!("{line}\n").as_bytes()).await;
        }
        let refusal = peer.heard().await.expect("a refusal");
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (id, &json!(-32600)), "{refusal}");
        assert!(refusal["error"]["message"].as_str().is_some_and(|text| text.contains("10000 bytes")), "{refusal}");
        peer.answer(&request, "hello").await;
    };
    let (result, ()) = within(async { tokio::join!(call(&client), serve) }).await;
    assert_eq!(text(result), "hello");
}

/// The mirror case: a server that takes less than the client sends says so, and the call ends with that.
// covers: INT-3
#[tokio::test(start_paused = true)]
async fn int_3_a_request_that_is_too_long_is_refused_by_its_id() {
    #[derive(Deserialize, JsonSchema)]
    struct Arguments {
        text: String,
    }

    for mode in [Mode::Auto, Mode::Legacy] {
        let echo = tool("tool", async |_, arguments: Arguments| arguments.text);
        let server = Server::builder("own", "1").tool(echo).build().expect("a server");
        let (ours, theirs) = tokio::io::duplex(1000);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(async move {
            let options = ServeOptions::default().line_limit(10_000);
            serve_io(&server, reader, writer, &options, std::future::pending()).await
        });
        let (reader, writer) = tokio::io::split(ours);
        let client = within(builder().mode(mode).connect(StreamTransport::new(reader, writer))).await;
        let client = client.expect("a connection");
        let send = async |size: usize| {
            let call =
                client.call_tool("tool").arguments(&json!({ "text": "x".repeat(size) })).idle_timeout(Duration::MAX);
            within(call.into_future()).await
        };
        let error = send(1_000_000).await.expect_err("it is too long");
        let refusal = error.as_rejection().unwrap_or_else(|| panic!("{error:?}"));
        assert_eq!(refusal.code.get(), -32600);
        assert!(refusal.message.contains("10000 bytes") && refusal.message.contains("line_limit"), "{refusal}");
        assert_eq!(text(send(5000).await).len(), 5000);
        within(client.close()).await;
    }
}
