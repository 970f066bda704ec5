//! Layers of tower, as they come.

use std::task::{Context, Poll};
use std::time::Duration;

use mcp_server::middleware::{self, Middleware};
use mcp_server::types::ErrorObject;
use mcp_server::{Endpoint, ErrorText, NoArguments, Request, Response, Server, tool};
use mcp_testkit::{Gate, Notes, ScriptedClient};
use serde_json::json;
use tower::ServiceBuilder;
use tower::limit::{ConcurrencyLimitLayer, RateLimitLayer};
use tower::load_shed::LoadShedLayer;
use tower::timeout::TimeoutLayer;
use tower_layer::layer_fn;
use tower_service::Service;

use crate::servers::{MODERN, server};

const LEGACY: mcp_server::types::Revision = mcp_server::types::Revision::V2025_11_25;

/// A server with a tool that waits for the gate, and one that does not, behind a layer.
fn behind(layer: impl Middleware) -> (Server, Gate) {
    let gate = Gate::default();
    let waiting = gate.clone();
    let server = server(|server| {
        let wait = tool("wait", move |_, _: NoArguments| waiting.wait());
        server.tool(wait).tool(tool("done", async |_, _: NoArguments| "done")).layer(layer)
    });
    (server, gate)
}

/// Runs a test with a clock that stands still.
fn with_clock(test: impl AsyncFn()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(test());
}

/// A request that takes too long is dropped, and its error says so.
// covers: AUT-5
#[test]
fn aut_5_timeouts_fit() {
    with_clock(async || {
        for revision in [MODERN, LEGACY] {
            let (server, _gate) = behind(TimeoutLayer::new(Duration::from_secs(5)));
            let mut client = ScriptedClient::new(&server, revision);
            assert_eq!(client.call_tool_text("done", json!({})), "done");
            let id = client.start_tool("wait");
            tokio::time::advance(Duration::from_secs(4)).await;
            client.run();
            client.assert_quiet();
            tokio::time::advance(Duration::from_secs(2)).await;
            client.run();
            let error = &client.response_to(id)["error"];
            assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!("request timed out")));
        }
    });
}

/// Requests beyond the limit wait for others to end, in their order; one that is cancelled gives its place away.
// covers: AUT-5
#[test]
fn aut_5_concurrency_limits_fit() {
    for revision in [MODERN, LEGACY] {
        let (server, gate) = behind(ConcurrencyLimitLayer::new(1));
        let mut client = ScriptedClient::new(&server, revision);
        let mut other = ScriptedClient::new(&server, revision);
        let first = client.start_tool("wait");
        let second = other.start_tool("done");
        let third = client.start_tool("done");
        let fourth = other.start_tool("done");
        client.run();
        client.assert_quiet();
        other.cancel(second);
        gate.open();
        for _ in 0..4 {
            client.run();
            other.run();
        }
        assert_eq!(client.response_to(first)["result"]["content"], json!([]));
        assert_eq!(client.response_to(third)["result"]["content"][0]["text"], "done");
        assert_eq!(other.response_to(fourth)["result"]["content"][0]["text"], "done");
    }
}

/// A rate limit counts all requests of the server, although its service cannot be cloned.
// covers: AUT-5
#[test]
fn aut_5_rate_limits_fit() {
    with_clock(async || {
        for revision in [MODERN, LEGACY] {
            let (server, _gate) = behind(RateLimitLayer::new(2, Duration::from_secs(1)));
            let mut client = ScriptedClient::new(&server, revision);
            let mut other = ScriptedClient::new(&server, revision);
            client.call_tool_text("done", json!({}));
            other.call_tool_text("done", json!({}));
            let third = client.start_tool("done");
            let fourth = other.start_tool("done");
            client.assert_quiet();
            tokio::time::advance(Duration::from_millis(1100)).await;
            client.run();
            other.run();
            assert_eq!(client.response_to(third)["result"]["content"][0]["text"], "done");
            assert_eq!(other.response_to(fourth)["result"]["content"][0]["text"], "done");
        }
    });
}

/// In one stack, load is shed when the limit is reached.
// covers: AUT-5
#[test]
fn aut_5_load_is_shed() {
    for revision in [MODERN, LEGACY] {
        let stack = ServiceBuilder::new().layer(LoadShedLayer::new()).concurrency_limit(1);
        let (server, gate) = behind(stack);
        let mut client = ScriptedClient::new(&server, revision);
        let first = client.start_tool("wait");
        let error = client.error("tools/call", json!({ "name": "done" }), -32603);
        assert_eq!(error["message"], "service overloaded");
        gate.open();
        client.run();
        client.response_to(first);
        assert_eq!(client.call_tool_text("done", json!({})), "done");
    }
}

/// A function can be part of a stack, around services that cannot be cloned.
// covers: AUT-5
#[test]
fn aut_5_functions_fit_into_stacks() {
    with_clock(async || {
        let notes = Notes::default();
        let noted = notes.clone();
        let note = middleware::from_fn(move |ctx, next| {
            noted.add(ctx.tool_name().unwrap_or_default());
            next.run(ctx)
        });
        let stack =
            ServiceBuilder::new().layer(note).timeout(Duration::from_secs(1)).rate_limit(100, Duration::from_secs(1));
        let (server, _gate) = behind(stack);
        assert_eq!(ScriptedClient::new(&server, MODERN).call_tool_text("done", json!({})), "done");
        assert_eq!(notes.take(), ["done"]);
    });
}

/// A layer per tool limits that tool alone.
// covers: AUT-5
#[test]
fn aut_5_tools_have_limits_of_their_own() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let server = server(|server| {
        let wait = tool("wait", move |_, _: NoArguments| waiting.wait()).layer(ConcurrencyLimitLayer::new(1));
        server.tool(wait).tool(tool("done", async |_, _: NoArguments| "done"))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    let (first, second) = (client.start_tool("wait"), client.start_tool("wait"));
    assert_eq!(client.call_tool_text("done", json!({})), "done");
    gate.open();
    client.run();
    client.response_to(first);
    client.response_to(second);
}

/// Errors of services may be of any type; those of the protocol are found in them.
// covers: AUT-5
#[test]
fn aut_5_errors_may_be_boxed() {
    #[derive(Debug, thiserror::Error)]
    #[error("refused by the layer")]
    struct Refused(#[source] ErrorObject);

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is full")]
    struct Other;

    struct Refuses(Endpoint);

    impl Service<Request> for Refuses {
        type Response = Response;
        type Error = tower::BoxError;
        type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response, tower::BoxError>> + Send>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
            self.0.poll_ready(cx).map_err(Into::into)
        }

        fn call(&mut self, request: Request) -> Self::Future {
            match request.ctx.tool_name() {
                Some("wrapped") => Box::pin(async { Err(Refused(ErrorObject::invalid_params("no")).into()) }),
                Some("plain") => Box::pin(async { Err(ErrorObject::invalid_request("never").into()) }),
                Some("other") => Box::pin(async { Err(Other.into()) }),
                _ => {
                    let response = self.0.call(request);
                    Box::pin(async { Ok(response.await?) })
                }
            }
        }
    }

    let (server, _gate) = behind(layer_fn(Refuses));
    for revision in [MODERN, LEGACY] {
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(client.call_tool_text("done", json!({})), "done");
        for (name, code, message) in [
            ("wrapped", -32602, "no"),
            ("plain", -32600, "never"),
            ("other", -32603, "the disk is full"),
            ("unknown", -32602, "Unknown tool: unknown"),
        ] {
            assert_eq!(client.error("tools/call", json!({ "name": name }), code)["message"], message);
        }
    }
}

/// The policy for errors of handlers decides about those of layers, too.
// covers: AUT-1, AUT-5
#[test]
fn aut_1_errors_of_layers_follow_the_policy() {
    let failing = layer_fn(|_: Endpoint| {
        tower::service_fn(|_: Request| async { Err::<Response, tower::BoxError>("the password is 1234".into()) })
    });
    let server = server(|server| server.offers_tools().layer(failing).on_handler_error(|_, _| ErrorText::masked()));
    for revision in [MODERN, LEGACY] {
        let mut client = ScriptedClient::new(&server, revision);
        let error = client.error("tools/call", json!({ "name": "any" }), -32603);
        assert_eq!(error["message"], "the server failed to process the request");
    }
}

/// A service that panics does not keep others from being served.
// covers: AUT-5
#[test]
fn aut_5_a_panic_leaves_the_service() {
    struct Panics(Endpoint);

    impl Service<Request> for Panics {
        type Response = Response;
        type Error = ErrorObject;
        type Future = mcp_server::EndpointFuture;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request) -> Self::Future {
            assert_ne!(request.ctx.tool_name(), Some("wait"), "this is what the test wants");
            self.0.call(request)
        }
    }

    let (server, _gate) = behind(layer_fn(Panics));
    let mut client = ScriptedClient::new(&server, MODERN);
    client.error("tools/call", json!({ "name": "wait" }), -32603);
    assert_eq!(client.call_tool_text("done", json!({})), "done");
}

/// Connections on many threads share a service; none of them is forgotten while another one has it.
// covers: AUT-5
#[test]
#[expect(clippy::disallowed_methods, reason = "the threads of a runtime, as a test sees them")]
fn aut_5_threads_share_a_service() {
    let (server, _gate) = behind(ServiceBuilder::new().map_request(|request: Request| request).concurrency_limit(2));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let server = server.clone();
            std::thread::spawn(move || {
                let mut client = ScriptedClient::new(&server, MODERN);
                for _ in 0..200 {
                    let id = client.start_tool("done");
                    while client.unread() == 0 {
                        std::thread::yield_now();
                        client.run();
                    }
                    assert_eq!(client.response_to(id)["result"]["content"][0]["text"], "done");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// A request that is not polled, because its client does not read the response, does not keep the service from others:
/// neither from one that waits already, nor from one that arrives later.
// covers: AUT-5
#[test]
fn aut_5_unread_responses_hold_no_turn() {
    with_clock(async || {
        for revision in [MODERN, LEGACY] {
            for unread in 1..=3 {
                let (server, _gate) = behind(RateLimitLayer::new(1, Duration::from_secs(1)));
                let connect = || ScriptedClient::new(&server, revision);
                connect().call_tool_text("done", json!({}));
                // None of these runs again.
                let mut stalled: Vec<_> = (0..unread).map(|_| connect()).collect();
                for client in &mut stalled {
                    client.start_tool("done");
                }
                let mut other = connect();
                let waiting = (unread == 1).then(|| other.start_tool("done"));
                other.assert_quiet();
                tokio::time::advance(Duration::from_millis(1100)).await;
                tokio::task::yield_now().await;
                if let Some(waiting) = waiting {
                    other.run();
                    assert_eq!(other.response_to(waiting)["result"]["content"][0]["text"], "done");
                    tokio::time::advance(Duration::from_millis(1100)).await;
                }
                // Each arrival passes the turn on.
                let mut later: Vec<_> = (0..3).map(|_| connect()).collect();
                let started: Vec<_> = later.iter_mut().map(|client| client.start_tool("done")).collect();
                for _ in 0..4 {
                    tokio::time::advance(Duration::from_millis(1100)).await;
                    tokio::task::yield_now().await;
                    later.iter_mut().for_each(ScriptedClient::run);
                }
                for (client, id) in later.iter_mut().zip(started) {
                    assert_eq!(client.response_to(id)["result"]["content"][0]["text"], "done", "{unread}");
                }
            }
        }
    });
}
