//! What handlers leave to be done when the connection ends, which here is when their request does.

use std::time::Duration;

use mcp_server::{NoArguments, RequestContext, Server, tool};
use mcp_testkit::envelope::tool_text;
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::{HttpOptions, HttpService};
use serde_json::json;
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::demo::server;
use crate::raw_http::Post;

/// A server whose tools leave something to be done, which takes until a gate is open.
fn leaving(notes: &Notes, gate: &Gate, stay: &Gate) -> Server {
    let (notes, gate, stay) = (notes.clone(), gate.clone(), stay.clone());
    let leave = move |ctx: &RequestContext| {
        for note in ["first", "second"] {
            let (notes, gate) = (notes.clone(), gate.clone());
            ctx.connection().on_close(move || async move {
                gate.wait().await;
                notes.add(note);
            });
        }
    };
    let leave_too = leave.clone();
    server(|builder| {
        builder
            .tool(tool("leave", move |ctx: RequestContext, _: NoArguments| {
                leave(&ctx);
                std::future::ready("left")
            }))
            .tool(tool("stay", move |ctx: RequestContext, _: NoArguments| {
                leave_too(&ctx);
                let stay = stay.clone();
                async move {
                    stay.wait().await;
                    "stayed"
                }
            }))
            .tool(tool("hello", async |_, _: NoArguments| "hello"))
    })
}

/// It is done after the answer, and also if the client did not wait for one; the last comes first.
// covers: S4.14, S1.16
#[tokio::test]
async fn it_is_done_when_the_request_ends() {
    let (notes, gate) = (Notes::default(), Gate::default());
    gate.open();
    let service = HttpService::new(leaving(&notes, &gate, &Gate::default()));
    for post in [Post::tool("leave", json!({})), Post::legacy_tool(Some("2025-06-18"), "leave")] {
        assert_eq!(tool_text(&post.json(&service, 200).await), "left");
        yield_now().await;
        assert_eq!(notes.take(), ["second", "first"]);
    }
    let mut pending = Post::tool("stay", json!({})).send(&service);
    pending.starts().await;
    assert_eq!(notes.take(), [""; 0]);
    drop(pending);
    yield_now().await;
    assert_eq!(notes.take(), ["second", "first"]);
}

/// It counts as work, for the limits and for the end of the service, but not for ever.
// covers: S1.17, RB-52, RB-60
#[tokio::test(start_paused = true)]
async fn it_counts_as_work() {
    let (notes, gate) = (Notes::default(), Gate::default());
    let server = leaving(&notes, &gate, &Gate::default());
    let service = HttpService::with_options(server, HttpOptions::default().max_in_flight(1));
    assert_eq!(tool_text(&Post::tool("leave", json!({})).json(&service, 200).await), "left");
    Post::tool("hello", json!({})).json(&service, 503).await;
    let begin = Instant::now();
    let drained = service.drain(Duration::from_secs(30)).await;
    assert_eq!((drained.finished, drained.aborted), (1, 0));
    assert_eq!(begin.elapsed().as_secs(), 10, "five seconds for each");
    assert_eq!(notes.take(), [""; 0], "they took too long");
}
