//! Lists without end, and answers of any size.

use mcp_client::{Error, ListLimitExceeded, ListLimits};
use serde_json::{Value, json};

use crate::arena::{builder, compare, run, within};
use crate::heap::alone;
use crate::pipe::Pipe;
use crate::tally::repeated;

fn page(tools: Vec<Value>, next: Option<String>) -> Value {
    json!({ "resultType": "complete", "tools": tools, "nextCursor": next, "ttlMs": 3_600_000, "cacheScope": "private" })
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// What a list may hold is bounded as a whole, and so are the cursors that are kept of it.
// covers: SEC-7
#[test]
fn sec_7_endless_lists() {
    let _alone = alone();
    run(async {
        let limits = ListLimits::default().max_bytes(8 << 20);
        let mut pipe = Pipe::open_with(true, builder().list_limits(limits)).await;
        let mut cursors = 0;
        compare("pages with long cursors", 6, async || {
            let client = pipe.client.clone();
            let mut listing = tokio::spawn(async move { within(client.tools().skip_cache().all()).await });
            let mut pages = 0;
            let outcome = loop {
                let request = tokio::select! {
                    request = pipe.request() => request,
                    outcome = &mut listing => break outcome.expect("no panic"),
                };
                pages += 1;
                cursors += 1;
                let next = format!("{cursors}{}", "x".repeat(500_000));
                pipe.answer(&request, &page(vec![tool("t")], Some(next))).await;
            };
            assert!(matches!(outcome, Err(Error::ListTooLong(ListLimitExceeded::Bytes(_)))), "{outcome:?}");
            repeated(pages, "pages")
        })
        .await;
        pipe.honest().await;
    });
}

/// A page whose items would take many times its own memory is not decoded.
// covers: SEC-7
#[test]
fn sec_7_pages_with_too_many_items() {
    let _alone = alone();
    run(async {
        let mut pipe = Pipe::open(true).await;
        let text = format!("[{}{{}}]", r#"{"name":""},"#.repeat(150_000));
        compare("pages with many items", 3, async || {
            let client = pipe.client.clone();
            let listing = tokio::spawn(async move { within(client.list_prompts(None)).await });
            let request = pipe.request().await;
            let head =
                format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","prompts":"#, request["id"]);
            pipe.write(head.as_bytes()).await;
            pipe.write(text.as_bytes()).await;
            pipe.write(b"}}\n").await;
            let outcome = within(listing).await.expect("no panic");
            assert!(matches!(outcome, Err(Error::ListTooLong(ListLimitExceeded::Items(_)))), "{outcome:?}");
            repeated(1, "pages")
        })
        .await;
        pipe.honest().await;
    });
}

/// Results of some megabytes are given back when nobody holds them.
#[test]
fn giant_results() {
    let _alone = alone();
    for is_modern in [true, false] {
        run(async {
            let mut pipe = Pipe::open(is_modern).await;
            let content = json!([{ "type": "text", "text": "x".repeat(4 << 20) }]);
            compare(&format!("giant results, {}", if is_modern { "modern" } else { "legacy" }), 10, async || {
                let calling = tokio::spawn(crate::arena::honest(&pipe.client));
                let request = pipe.request().await;
                pipe.answer(&request, &json!({ "resultType": "complete", "content": content })).await;
                within(calling).await.expect("no panic").expect("a result");
                repeated(1, "responses")
            })
            .await;
        });
    }
}

/// Lines beyond the limit are skipped, and nothing of them is kept.
#[test]
fn lines_that_are_too_long() {
    let _alone = alone();
    run(async {
        let mut pipe = Pipe::open(true).await;
        let piece = vec![b'x'; 1 << 20];
        compare("long lines", 2, async || {
            for _ in 0..20 {
                pipe.write(&piece).await;
            }
            pipe.write(b"\n").await;
            pipe.honest().await;
            repeated(1, "lines")
        })
        .await;
    });
}
