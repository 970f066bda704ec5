//! Servers of HTTP+SSE, which know nothing but 2024-11-05.

use std::sync::{Arc, Mutex};

use mcp_client::types::Revision;
use mcp_client::{CloseReason, ConnectError, Error};
use mcp_testkit::envelope::tool_result;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scripted::{Reply, Scripted, builder, call, within};

/// Where nothing modern and no handshake helps, the stream says where messages go, and answers come by it.
// covers: DU-4, DU-38, B-34, B-106, S4.11
#[tokio::test]
async fn an_old_server_is_found() {
    let (url, log) = old_server(|endpoint| format!("event: endpoint\ndata: {endpoint}\n\n")).await;
    let client = within(builder().connect(mcp_transport_http::HttpTransport::new(&url).unwrap())).await.unwrap();
    assert_eq!(client.revision(), Some(Revision::V2024_11_05));
    for _ in 0..3 {
        assert_eq!(call(&client).await.unwrap(), "old");
    }
    assert_eq!(within(client.close()).await, CloseReason::ByClient);
    let expected = [
        "POST /sse",
        "POST /sse",
        "GET /sse",
        "POST /m?s=1",
        "POST /m?s=1",
        "POST /m?s=1",
        "POST /m?s=1",
        "POST /m?s=1",
    ];
    assert_eq!(*log.lock().expect("nobody panicked"), expected);
}

/// What the stream says is not believed if it leads elsewhere, and a server that is none of all says what it said at
/// first.
// covers: B-34, B-108, DU-38
#[tokio::test]
async fn what_is_not_one_says_what_it_said() {
    for kind in ["elsewhere", "none", "ends", "json", "off", "error"] {
        let server = Scripted::start(move |seen| match (seen.verb.as_str(), kind) {
            ("GET", "elsewhere") => Reply::open_events("event: endpoint\ndata: http://127.0.0.1:1/m\n\n"),
            ("GET", "ends") => Reply::events("data: {}\n\n"),
            ("GET", "json") => Reply::json(&json!({})),
            ("POST", "error") => Reply::new(
                404,
                &[("content-type", "application/json")],
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}"#,
            ),
            _ => Reply::status(404),
        })
        .await;
        let error = server.connect(server.transport().legacy_sse_fallback(kind != "off")).await.unwrap_err();
        let Error::Closed(CloseReason::ConnectFailed(why)) = error else { panic!("{kind}: {error:?}") };
        match kind {
            "error" => assert!(matches!(why, ConnectError::Refused(_)), "{why:?}"),
            _ => assert!(matches!(why, ConnectError::Status { status: 404, .. }), "{kind}: {why:?}"),
        }
        assert_eq!(server.seen_of("GET").is_empty(), matches!(kind, "off" | "error"), "{kind}");
    }
}

/// The end of the stream is the end of the connection: there is no way back to it.
#[tokio::test]
async fn the_end_of_the_stream_is_the_end() {
    let (url, log) = old_server(|endpoint| format!("event: endpoint\ndata: {endpoint}\n\n")).await;
    let client = within(builder().connect(mcp_transport_http::HttpTransport::new(&url).unwrap())).await.unwrap();
    let error = within(client.call_tool("die").arguments(&json!({}))).await.unwrap_err();
    assert!(matches!(error, Error::Closed(CloseReason::Disconnected(_))), "{error:?}");
    assert!(!log.lock().expect("nobody panicked").is_empty());
}

/// A server that answers by its stream; `die` ends the stream.
async fn old_server(opening: fn(&str) -> String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    let (sender, _) = tokio::sync::broadcast::channel::<String>(16);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (sender, seen) = (sender.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let mut answers = sender.subscribe();
                let mut text = String::new();
                let body = loop {
                    let mut buffer = [0; 4096];
                    let count = stream.read(&mut buffer).await.unwrap_or(0);
                    if count == 0 {
                        return;
                    }
                    text.push_str(std::str::from_utf8(&buffer[..count]).expect("text"));
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                        break body.to_owned();
                    }
                };
                let line = text.split(" HTTP").next().expect("a line").to_owned();
                seen.lock().expect("nobody panicked").push(line.clone());
                let end = "content-length: 0\r\nconnection: close\r\n\r\n";
                match line.as_str() {
                    "GET /sse" => {
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                        stream
                            .write_all(format!("{head}{}", opening("/m?s=1")).as_bytes())
                            .await
                            .expect("a connection");
                        while let Ok(answer) = answers.recv().await {
                            if answer == "die" || stream.write_all(answer.as_bytes()).await.is_err() {
                                return;
                            }
                        }
                    }
                    "POST /m?s=1" => {
                        let _ = stream.write_all(format!("HTTP/1.1 202 Accepted\r\n{end}").as_bytes()).await;
                        let message: serde_json::Value = serde_json::from_str(&body).expect("JSON");
                        let result = match message["method"].as_str().expect("a method") {
                            "initialize" => json!({
                                "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                                "serverInfo": { "name": "old", "version": "1" },
                            }),
                            "tools/call" if message["params"]["name"] == "die" => {
                                let _ = sender.send("die".to_owned());
                                return;
                            }
                            "tools/call" => tool_result("old"),
                            _ => return,
                        };
                        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                        let _ = sender.send(format!("event: message\ndata: {answer}\n\n"));
                    }
                    _ => {
                        let _ = stream.write_all(format!("HTTP/1.1 405 No\r\n{end}").as_bytes()).await;
                    }
                }
            });
        }
    });
    (format!("http://{address}/sse"), log)
}
