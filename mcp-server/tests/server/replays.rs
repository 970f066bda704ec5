//! Replay guards that have to wait.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use mcp_server::mrtr::{MemoryReplayGuard, NONCE_BYTES, ReplayGuard, async_trait};
use mcp_server::{HandlerError, NoArguments, RequestContext, tool};
use mcp_testkit::ScriptedClient;
use serde_json::json;

use crate::rounds::{Name, accepts, everything, retry};
use crate::servers::{MODERN, server};

/// A guard that has to wait, and counts.
struct SlowGuard {
    guard: MemoryReplayGuard,
    claims: Arc<AtomicU32>,
}

/// Is ready when it is polled for the second time.
async fn later() {
    let mut is_ready = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_ready, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[async_trait]
impl ReplayGuard for SlowGuard {
    async fn claim(&self, now: u64, nonce: [u8; NONCE_BYTES], expires: u64) -> bool {
        self.claims.fetch_add(1, Ordering::Relaxed);
        later().await;
        self.guard.claim(now, nonce, expires).await
    }

    async fn is_claimed(&self, now: u64, nonce: [u8; NONCE_BYTES]) -> bool {
        later().await;
        self.guard.is_claimed(now, nonce).await
    }
}

/// Questions at the same time claim the state of their round once, and one that is given up does not take the claim along.
// covers: R-9, RB-56
#[test]
fn a_state_is_claimed_once_for_all_questions() {
    let claims = Arc::new(AtomicU32::new(0));
    let guard = SlowGuard { guard: MemoryReplayGuard::new(10), claims: Arc::clone(&claims) };
    let server = server(|server| {
        server.replay_guard(guard).tool(tool("pair", async |ctx: RequestContext, _: NoArguments| {
            let mut given_up = Box::pin(ctx.elicit::<Name>("a", "Who?"));
            if ctx.is_retry() {
                assert!(poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx).is_pending())).await);
            }
            drop(given_up);
            let (a, b) = (ctx.elicit("a", "Who?"), ctx.elicit("b", "And who else?"));
            let (a, b) = futures_util::future::join(a, b).await;
            let (a, b): (Name, Name) = (a?.accepted()?, b?.accepted()?);
            Ok::<_, HandlerError>(format!("{} {}", a.name, b.name))
        }))
    });
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let params = json!({ "name": "pair" });
    let asked = client.result("tools/call", params.clone());
    let next = retry(params, &asked, accepts);
    assert_eq!(client.result("tools/call", next.clone())["content"][0]["text"], "a b");
    assert_eq!(claims.load(Ordering::Relaxed), 1);
    client.error("tools/call", next, -32602);
    assert_eq!(claims.load(Ordering::Relaxed), 2);
}
