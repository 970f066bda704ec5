//! What is put around handlers, and methods beyond the protocol's own.

use std::task::{Context, Poll};

use futures_util::FutureExt;
use mcp_server::types::{CallToolResult, ErrorObject, Method, RawObject, Revision};
use mcp_server::{
    Change, Endpoint, NoArguments, Notification, ProtocolExtension, Request, RequestContext, Response, ResponseFuture,
    tool,
};
use mcp_testkit::{Notes, ScriptedClient};
use serde_json::{Value, json};
use tower_layer::{Layer, layer_fn};
use tower_service::Service;

use crate::servers::{LEGACY, MODERN, server};

/// A layer that notes what passes, and may answer by itself.
#[derive(Clone)]
struct Guard<S> {
    inner: S,
    name: &'static str,
    notes: Notes,
    forbidden: Option<&'static str>,
}

impl<S> Service<Request> for Guard<S>
where
    S: Service<Request, Response = Response, Error = ErrorObject>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = ErrorObject;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let (name, notes) = (self.name, self.notes.clone());
        let tool = request.params().get("name").map(|name| name.get().trim_matches('"').to_owned()).unwrap_or_default();
        notes.add(format!("{name} sees {} {tool}", request.ctx.method()));
        if self.forbidden == Some(&tool) {
            return async move { Err(ErrorObject::invalid_params(format!("{name} forbids it"))) }.boxed();
        }
        let served = self.inner.call(request);
        async move {
            let answer = served.await;
            notes.add(format!("{name} sees {}", if answer.is_ok() { "an answer" } else { "an error" }));
            answer
        }
        .boxed()
    }
}

fn guard(
    name: &'static str,
    forbidden: Option<&'static str>,
    notes: &Notes,
) -> impl Layer<Endpoint, Service = Guard<Endpoint>> + use<> {
    let notes = notes.clone();
    layer_fn(move |inner| Guard { inner, name, notes: notes.clone(), forbidden })
}

/// Layers see what handlers see, the last one first, and the answers on their way back.
// covers: S2.1, S4.74
#[test]
fn layers_are_put_around_each_other() {
    for revision in Revision::ALL {
        let notes = Notes::default();
        let server = server(|server| {
            server
                .tool(tool("a", async |_, _: NoArguments| "done"))
                .layer(guard("inner", None, &notes))
                .layer(guard("outer", None, &notes))
        });
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(client.call_tool_text("a", json!({})), "done");
        let expected =
            ["outer sees tools/call a", "inner sees tools/call a", "inner sees an answer", "outer sees an answer"];
        assert_eq!(notes.take(), expected);
        client.error("tools/call", json!({ "name": "b" }), -32602);
        assert_eq!(notes.take().last().unwrap(), "outer sees an error");
        client.result("tools/list", json!({}));
        assert_eq!(notes.take().len(), 4);
        // What is about the connection alone, and what is not there, is nothing for layers.
        client.call("ping", json!({}));
        client.call("nobody/knows", json!({}));
        assert_eq!(notes.take(), [""; 0]);
    }
}

/// A layer may answer by itself.
// covers: S2.1
#[test]
fn layers_may_answer() {
    let notes = Notes::default();
    let ran = notes.clone();
    let server = server(|server| {
        server
            .tool(tool("secret", move |_, _: NoArguments| {
                ran.add("ran");
                std::future::ready(())
            }))
            .layer(guard("inner", None, &notes))
            .layer(guard("outer", Some("secret"), &notes))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    let error = client.error("tools/call", json!({ "name": "secret" }), -32602);
    assert_eq!(error["message"], "outer forbids it");
    assert_eq!(notes.take(), ["outer sees tools/call secret"]);
}

/// Layers see what the protocol layer answers by itself, and what they let pass comes about.
// covers: S2.1
#[test]
fn layers_see_what_handlers_do_not() {
    let notes = Notes::default();
    let server = server(|server| server.offers_tools().resource_subscriptions().layer(guard("layer", None, &notes)));
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&server, revision);
        client.result("logging/setLevel", json!({ "level": "error" }));
        client.result("resources/subscribe", json!({ "uri": "a:b" }));
        server.publish(&Change::Resource("a:b".into()));
        client.expect_message("notifications/resources/updated");
        client.result("resources/unsubscribe", json!({ "uri": "a:b" }));
        let passed = |method| [format!("layer sees {method} "), "layer sees an answer".into()];
        let methods = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
        assert_eq!(notes.take(), methods.map(passed).concat());
    }
    let mut client = ScriptedClient::new(&server, MODERN);
    client.result("server/discover", json!({}));
    let id = client.start("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    client.expect_message("notifications/subscriptions/acknowledged");
    assert_eq!(notes.take().len(), 4);
    server.publish(&Change::Tools);
    client.expect_message("notifications/tools/list_changed");
    client.cancel(id);
    assert!(client.connection.is_idle());
}

/// A layer may keep somebody from subscribing.
// covers: S4.74
#[test]
fn layers_may_refuse_subscriptions() {
    #[derive(Clone)]
    struct Closed(Endpoint);

    impl Service<Request> for Closed {
        type Response = Response;
        type Error = ErrorObject;
        type Future = ResponseFuture;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, request: Request) -> ResponseFuture {
            if request.ctx.method().as_str().contains("subscri") {
                return async { Err(ErrorObject::invalid_request("members only")) }.boxed();
            }
            self.0.call(request).boxed()
        }
    }

    let server = server(|server| server.offers_tools().resource_subscriptions().layer(layer_fn(Closed)));
    let mut client = ScriptedClient::new(&server, MODERN);
    client.error("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }), -32600);
    client.result("server/discover", json!({}));
    server.publish(&Change::Tools);
    client.assert_quiet();
    let mut client = ScriptedClient::new(&server, Revision::V2025_11_25);
    client.error("resources/subscribe", json!({ "uri": "a:b" }), -32600);
    server.publish(&Change::Resource("a:b".into()));
    client.assert_quiet();
}

/// A layer that answers everything, and panics at what it does not like.
#[derive(Clone)]
struct Mock;

impl Service<Request> for Mock {
    type Response = Response;
    type Error = ErrorObject;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        assert_eq!(*request.ctx.method(), Method::TOOLS_CALL, "this is what the test wants");
        async { Ok(Response::ToolCall(CallToolResult::text("mocked"))) }.boxed()
    }
}

/// A layer need not pass anything on, and its panics are answered as well.
// covers: S4.76
#[test]
fn layers_may_panic() {
    let server = server(|server| server.offers_tools().layer(layer_fn(|_: Endpoint| Mock)));
    let mut client = ScriptedClient::new(&server, MODERN);
    client.error("tools/list", json!({}), -32603);
    assert_eq!(client.call_tool_text("anything", json!({})), "mocked");
}

/// A method of an extension is there for clients that declared the extension.
// covers: S1.37, E-14, EX-10, EX-11, S3.F17
#[test]
fn extensions_add_methods() {
    let notes = Notes::default();
    let server = server(|server| {
        server
            .method("com.example/echo", "echo/say", async |ctx: RequestContext, params: RawObject| {
                let mut said: Value = params.decode().map_err(|_| ErrorObject::invalid_params("no"))?;
                if said["fail"] == true {
                    return Err(ErrorObject::invalid_params("as you wish"));
                }
                said["revision"] = json!(ctx.revision().as_str());
                RawObject::new(&said).map_err(|_| ErrorObject::internal_error("no"))
            })
            .layer(guard("layer", None, &notes))
    });
    for revision in Revision::ALL {
        let declared = json!({ "extensions": { "com.example/echo": {} } });
        let mut client = ScriptedClient::with_capabilities(&server, revision, declared);
        let said = client.result("echo/say", json!({ "text": "hi" }));
        assert_eq!((&said["text"], &said["revision"]), (&json!("hi"), &json!(revision.as_str())));
        assert_eq!(said.get("resultType").is_some(), revision == MODERN);
        assert_eq!(notes.take(), ["layer sees echo/say ", "layer sees an answer"]);
        client.error("echo/say", json!({ "fail": true }), -32602);
        notes.take();
        let error = ScriptedClient::new(&server, revision).error("echo/say", json!({}), -32021);
        assert_eq!(error["data"]["requiredCapabilities"]["extensions"], json!({ "com.example/echo": {} }));
        ScriptedClient::new(&server, revision).error("echo/shout", json!({}), -32601);
        assert_eq!(notes.take(), [""; 0]);
    }
}

/// A method that an extension names and nobody answers is not there.
// covers: EX-10
#[test]
fn methods_need_a_handler() {
    let mut extension = ProtocolExtension::default();
    extension.methods.insert(Method::from("echo/say"), mcp_server::types::gate::Revisions::ALL);
    let server = server(|server| server.extension("com.example/echo", extension));
    let declared = json!({ "extensions": { "com.example/echo": {} } });
    ScriptedClient::with_capabilities(&server, MODERN, declared).error("echo/say", json!({}), -32601);
}

/// What clients tell is heard, with the connection that it came on: once, that the handshake is complete.
// covers: S0.16, S1.13
#[test]
fn notifications_are_heard() {
    let notes = Notes::default();
    let heard = notes.clone();
    let server = server(|server| {
        server.offers_tools().on_notification(move |Notification { method, params, connection, .. }: Notification| {
            let count = connection.scratch().expect("a lasting connection");
            let count = count.get_or_insert_with(std::sync::atomic::AtomicU32::default);
            let count = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            heard.add(format!("{count} {method} {}", params.as_str()));
        })
    });
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&server, revision);
        client.notify("notifications/roots/list_changed", json!({}));
        client.notify("notifications/x", json!({ "a": 1 }));
        // What the protocol layer acts on by itself, or what comes at the wrong time, is not.
        client.cancel(1);
        client.notify("notifications/initialized", json!({}));
        let expected =
            ["0 notifications/initialized {}", "1 notifications/roots/list_changed {}", r#"2 notifications/x {"a":1}"#];
        assert_eq!(notes.take(), expected);
    }
    // A notification of the server's own is not one of a client.
    ScriptedClient::new(&server, MODERN).notify("notifications/tools/list_changed", json!({}));
    assert_eq!(notes.take(), [""; 0]);
}

/// What a layer finds out about a request reaches its handler.
// covers: S4.74
#[test]
fn layers_tell_handlers_what_they_found_out() {
    #[derive(Clone)]
    struct Knows(Endpoint);

    impl Service<Request> for Knows {
        type Response = Response;
        type Error = ErrorObject;
        type Future = ResponseFuture;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, request: Request) -> ResponseFuture {
            request.ctx.insert_extension(String::from("ann"));
            self.0.call(request).boxed()
        }
    }

    let who = tool("who", async |ctx: RequestContext, _: NoArguments| {
        ctx.extension::<String>().map_or_else(String::new, |who| who.to_string())
    });
    let server = server(|server| server.tool(who).layer(layer_fn(Knows)));
    assert_eq!(ScriptedClient::new(&server, MODERN).call_tool_text("who", json!({})), "ann");
}
