//! Servers that do not do what they should, played by the test.

use std::time::Duration;

use futures_util::future::join_all;
use mcp_client::types::Era;
use mcp_client::{CloseReason, Error, Limits, Mode};
use serde_json::json;
use tokio::time::timeout;

use crate::peer::{SHORT, builder, call, modern, modern_with, peer, result, text, within};

/// A server that does not answer the probe gets `initialize` on the same pipe.
// covers: DU-33, S4.62
#[tokio::test(start_paused = true)]
async fn silence_means_legacy() {
    let (transport, mut peer) = peer(1000);
    let serve = async {
        peer.asked("server/discover").await;
        peer.initialized().await;
    };
    let connect = builder().probe_timeout(SHORT).connect(transport);
    let (client, ()) = within(async { tokio::join!(connect, serve) }).await;
    let client = client.expect("a connection");
    assert_eq!(client.revision().map(|revision| revision.era()), Some(Era::Legacy));
}

/// So does one that refuses it, whatever the code.
// covers: DU-33, IO-17
#[tokio::test(start_paused = true)]
async fn a_refusal_means_legacy() {
    for code in [-32601, -32000, 1] {
        let (transport, mut peer) = peer(1000);
        let serve = async {
            let probe = peer.asked("server/discover").await;
            let error = json!({ "code": code, "message": "what?" });
            peer.say(&json!({ "jsonrpc": "2.0", "id": probe["id"], "error": error })).await;
            peer.initialized().await;
        };
        let (client, ()) = within(async { tokio::join!(builder().connect(transport), serve) }).await;
        assert_eq!(client.expect("a connection").revision().map(|revision| revision.era()), Some(Era::Legacy));
    }
}

/// A client that is modern alone asks too, and says what is wrong.
// covers: IO-18
#[tokio::test(start_paused = true)]
async fn a_modern_client_does_not_take_a_legacy_server() {
    let (transport, mut peer) = peer(1000);
    let serve = async { drop(peer.asked("server/discover").await) };
    let connect = builder().mode(Mode::Modern).probe_timeout(Duration::from_secs(5)).connect(transport);
    let (client, ()) = within(async { tokio::join!(connect, serve) }).await;
    let error = client.expect_err("no connection").to_string();
    assert!(error.contains("does not support a modern revision"), "{error}");
}

/// Answers are told apart by their ids; wrong and second ones change nothing.
// covers: IO-7
#[tokio::test(start_paused = true)]
async fn wrong_ids_and_second_answers() {
    let (client, mut peer) = modern(1000).await;
    let serve = async {
        for text in ["first", "second"] {
            let request = peer.asked("tools/call").await;
            for id in [json!(9999), json!("1"), json!(null), json!(format!("0{}", request["id"]))] {
                peer.say(&result(&id, "not for you")).await;
            }
            peer.answer(&request, text).await;
            peer.answer(&request, "once more").await;
        }
    };
    let calls = async { [text(call(&client).await), text(call(&client).await)] };
    let (texts, ()) = within(async { tokio::join!(calls, serve) }).await;
    assert_eq!(texts, ["first", "second"]);
}

/// What is no message is passed over.
// covers: IO-2
#[tokio::test(start_paused = true)]
async fn garbage() {
    let (client, mut peer) = modern(1000).await;
    let serve = async {
        let request = peer.asked("tools/call").await;
        let garbage: [&[u8]; 6] =
            [b"listening on stdio\n", b"\xff\xfe\x00\n", b"{\n", b"[]\n", b"{\"jsonrpc\":\"1.0\"}\n\r\n\n", b"null\n"];
        for line in garbage {
            peer.write(line).await;
        }
        peer.answer(&request, "hello").await;
    };
    let (result, ()) = within(async { tokio::join!(call(&client), serve) }).await;
    assert_eq!(text(result), "hello");
}

/// A server that writes a byte order mark first is understood at once, and not taken for a silent one.
// covers: INT-8
#[tokio::test(start_paused = true)]
async fn int_8_a_byte_order_mark_before_the_first_answer() {
    let (transport, mut peer) = peer(1000);
    let serve = async {
        peer.write("\u{feff}".as_bytes()).await;
        peer.discovered().await;
    };
    let (client, ()) = within(async { tokio::join!(builder().connect(transport), serve) }).await;
    assert_eq!(client.expect("a connection").revision().map(|revision| revision.era()), Some(Era::Modern));
}

/// An answer that is not one ends its call, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_broken_answer_ends_its_call() {
    let (client, mut peer) = modern(1000).await;
    let serve = async {
        let request = peer.asked("tools/call").await;
        peer.say(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": 5 })).await;
        let request = peer.asked("tools/call").await;
        peer.answer(&request, "hello").await;
    };
    let calls = async { (call(&client).await, call(&client).await) };
    let ((first, second), ()) = within(async { tokio::join!(calls, serve) }).await;
    assert!(matches!(first, Err(Error::InvalidResponse(_))), "{first:?}");
    assert_eq!(text(second), "hello");
}

/// To drop a call is to cancel it, and an answer that comes all the same is no offence.
// covers: IO-8, K-7, S3.33
#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it() {
    let (client, mut peer) = modern(1000).await;
    assert!(timeout(SHORT, call(&client)).await.is_err());
    let request = peer.asked("tools/call").await;
    let cancelled = peer.asked("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    peer.answer(&request, "too late").await;
    let serve = async {
        let request = peer.asked("tools/call").await;
        peer.answer(&request, "hello").await;
    };
    let (result, ()) = within(async { tokio::join!(call(&client), serve) }).await;
    assert_eq!(text(result), "hello");
}

/// A server that never reads holds up nothing: calls end in time, and so does the client.
#[tokio::test(start_paused = true)]
async fn it_never_reads() {
    let (client, peer) = modern(100).await;
    let arguments = json!({ "text": "x".repeat(1_000_000) });
    for _ in 0..3 {
        // Some fill what may wait to be sent, and the rest waits for room.
        let calls = (0..30).map(|_| client.call_tool("tool").arguments(&arguments).idle_timeout(SHORT).into_future());
        let ended = within(join_all(calls)).await;
        assert!(ended.iter().all(|ended| matches!(ended, Err(Error::TimedOut))));
    }
    assert_eq!(within(client.close()).await, CloseReason::ByClient);
    drop(peer);
}

/// What had to wait for a server that was busy is sent as soon as it reads, even if nothing else happens.
#[tokio::test(start_paused = true)]
async fn it_reads_late() {
    let (client, mut peer) = modern(100).await;
    for text in ["x".repeat(300_000), "y".repeat(300_000), "z".to_owned()] {
        within(client.notify("notifications/extension", &json!({ "text": text }))).await.expect("there is room");
        tokio::time::sleep(SHORT).await;
    }
    for first in ["x", "y", "z"] {
        let heard = peer.asked("notifications/extension").await;
        assert!(heard["params"]["text"].as_str().is_some_and(|text| text.starts_with(first)));
    }
}

/// A server that gets rid of each result before it reads on is not waited for.
#[tokio::test(start_paused = true)]
async fn it_writes_before_it_reads_on() {
    let mut limits = Limits::default();
    limits.max_outbox_bytes = 20_000;
    let (client, mut peer) = modern_with(100, builder().limits(limits), |transport| transport).await;
    let serve = async {
        for _ in 0..50 {
            let request = peer.asked("tools/call").await;
            peer.answer(&request, &"y".repeat(50_000)).await;
        }
    };
    let arguments = json!({ "text": "x".repeat(50_000) });
    let calls = (0..50).map(|_| client.call_tool("tool").arguments(&arguments).into_future());
    let (results, ()) = within(async { tokio::join!(join_all(calls), serve) }).await;
    assert!(results.into_iter().all(|result| text(result).len() == 50_000));
}

/// A server that asks without reading the answers is not read from any more; the client can still be closed.
#[tokio::test(start_paused = true)]
async fn it_asks_without_end() {
    let (transport, mut peer) = peer(100);
    let connect = builder().mode(Mode::Legacy).connect(transport);
    let (client, ()) = within(async { tokio::join!(connect, peer.initialized()) }).await;
    let client = client.expect("a connection");
    let mut asked: u32 = 0;
    // The clock moves when nobody has anything to do: then it is not read from any more.
    while timeout(SHORT, peer.say(&json!({ "jsonrpc": "2.0", "id": asked, "method": "ping" }))).await.is_ok() {
        asked += 1;
        assert!(asked < 100_000, "what it asks for is kept without end");
    }
    assert_eq!(within(client.close()).await, CloseReason::ByClient);
}

/// Calls end when the server hangs up, and the client says why.
// covers: S4.52, S4.54
#[tokio::test(start_paused = true)]
async fn it_hangs_up() {
    let (client, mut peer) = modern(1000).await;
    let serve = async move {
        peer.asked("tools/call").await;
        drop(peer);
    };
    let (ended, ()) = within(async { tokio::join!(call(&client), serve) }).await;
    let error = ended.expect_err("nobody answered").to_string();
    assert!(error.contains("closed the connection") || error.contains("pipe"), "{error}");
    assert!(matches!(within(client.closed()).await, CloseReason::Disconnected(_)));
    assert!(matches!(call(&client).await, Err(Error::Closed(CloseReason::Disconnected(_)))));
}

/// It may also do so when it is asked which era it belongs to.
#[tokio::test(start_paused = true)]
async fn it_hangs_up_at_once() {
    let (transport, mut peer) = peer(1000);
    let serve = async move {
        peer.asked("server/discover").await;
        drop(peer);
    };
    let (client, ()) = within(async { tokio::join!(builder().connect(transport), serve) }).await;
    let error = client.expect_err("no connection");
    assert!(matches!(error, Error::Closed(CloseReason::Disconnected(_))), "{error}");
}

/// Closing hangs up, after what was to be said.
#[tokio::test(start_paused = true)]
async fn closing_says_what_is_left() {
    let (client, mut peer) = modern(100).await;
    let text = "x".repeat(10_000);
    within(client.notify("notifications/extension", &json!({ "text": text }))).await.expect("there is room");
    let serve = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let heard = peer.asked("notifications/extension").await;
        assert_eq!(heard["params"]["text"], text);
        assert_eq!(peer.heard().await, None);
    };
    let (closed, ()) = within(async { tokio::join!(client.close(), serve) }).await;
    assert_eq!(closed, CloseReason::ByClient);
}
