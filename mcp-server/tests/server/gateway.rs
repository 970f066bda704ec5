//! What gateways need: methods that are not known here, and capabilities as a whole.

use mcp_server::types::{
    ErrorObject, OrderedMap, PromptsCapability, RawObject, ResourcesCapability, Revision, ServerCapabilities,
    ServerTasksCapability, ToolsCapability,
};
use mcp_server::{
    BuildError, Change, NoArguments, Notification, ProtocolExtension, RequestContext, Server, ServerBuilder,
    middleware, tool,
};
use mcp_testkit::{Notes, ScriptedClient};
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, refused, server};

/// A fallback that returns what it got, or fails.
fn forwarding(server: ServerBuilder) -> ServerBuilder {
    server.fallback(async |ctx: RequestContext, params: RawObject| {
        let params: Value = params.decode().map_err(|_| ErrorObject::invalid_params("no"))?;
        if params["fail"] == true {
            return Err(ErrorObject::invalid_request("as you wish"));
        }
        RawObject::new(&json!({ "method": ctx.method().as_str(), "text": params["text"] }))
            .map_err(|_| ErrorObject::internal_error("no"))
    })
}

/// Methods that the protocol does not define reach the fallback, through the layers, in every revision.
// covers: GW-3
#[test]
fn gw_3_unknown_methods_reach_the_fallback() {
    let notes = Notes::default();
    let noted = notes.clone();
    let server = server(|server| {
        let layer = middleware::from_fn(move |ctx, next| {
            noted.add(ctx.method().as_str());
            next.run(ctx)
        });
        forwarding(server.offers_tools()).layer(layer)
    });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let result = client.result("acme/do", json!({ "text": "hi" }));
        assert_eq!((&result["method"], &result["text"]), (&json!("acme/do"), &json!("hi")), "{revision}");
        assert_eq!(client.error("tools/do", json!({ "fail": true }), -32600)["message"], "as you wish");
        assert_eq!(notes.take(), ["acme/do", "tools/do"]);
        client.result("tools/list", json!({}));
        assert_eq!(notes.take(), ["tools/list"]);
    }
}

/// What the protocol defines stays gated by revision and capability; without a fallback all else is unknown.
// covers: GW-3
#[test]
fn gw_3_defined_methods_stay_gated() {
    let with = server(|server| forwarding(server.offers_tools()));
    let without = server(ServerBuilder::offers_tools);
    for revision in Revision::ALL {
        ScriptedClient::new(&without, revision).error("acme/do", json!({}), -32601);
        let mut client = ScriptedClient::new(&with, revision);
        client.error("prompts/list", json!({}), -32601);
        client.error("tasks/get", json!({ "taskId": "1" }), -32601);
        // One of the other era, and one that only servers send.
        let foreign = if revision == MODERN { "resources/subscribe" } else { "subscriptions/listen" };
        client.error(foreign, json!({ "uri": "a:b" }), -32601);
        client.error("sampling/createMessage", json!({}), -32601);
    }
}

/// Methods that the protocol defines and this crate does not implement are forwarded where both sides declared them.
// covers: GW-3, GW-4
#[test]
fn gw_3_tasks_can_be_forwarded() {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tasks = Some(ServerTasksCapability::default());
    let mut extensions = OrderedMap::new();
    extensions.insert("io.modelcontextprotocol/tasks", RawObject::empty());
    capabilities.extensions = Some(extensions);
    let server = server(|server| forwarding(server).capabilities(capabilities));
    let params = || json!({ "taskId": "1", "text": "hi" });
    let mut core = ScriptedClient::new(&server, Revision::V2025_11_25);
    assert_eq!(core.result("tasks/get", params())["method"], "tasks/get");
    ScriptedClient::new(&server, Revision::V2025_06_18).error("tasks/get", params(), -32601);
    ScriptedClient::new(&server, MODERN).error("tasks/get", params(), -32021);
    let declared = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut extended = ScriptedClient::with_capabilities(&server, MODERN, declared);
    assert_eq!(extended.result("tasks/get", params())["method"], "tasks/get");
}

/// A registered method is not the fallback's, and unknown notifications are heard in both eras.
// covers: GW-3
#[test]
fn gw_3_registered_methods_come_first() {
    let notes = Notes::default();
    let heard = notes.clone();
    let server = server(|server| {
        let own = async |_: RequestContext, _: RawObject| Ok(RawObject::parse(r#"{"own":true}"#).unwrap_or_default());
        forwarding(server)
            .method("com.example/own", "own/do", own)
            .on_notification(move |Notification { method, .. }: Notification| heard.add(method.as_str()))
    });
    let declared = json!({ "extensions": { "com.example/own": {} } });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::with_capabilities(&server, revision, declared.clone());
        notes.take();
        assert_eq!(client.result("own/do", json!({}))["own"], true);
        ScriptedClient::new(&server, revision).error("own/do", json!({}), -32021);
        notes.take();
        client.notify("acme/told", json!({}));
        assert_eq!(notes.take(), ["acme/told"]);
    }
}

fn declared_by(server: &Server, revision: Revision) -> Value {
    if revision == MODERN {
        return ScriptedClient::new(server, revision).result("server/discover", json!({}))["capabilities"].take();
    }
    let connection = mcp_server::Connection::long_lived(server);
    ScriptedClient::on_connection(connection, revision, json!({})).initialize()["result"]["capabilities"].take()
}

/// The capabilities of another server are declared as they are, cut to the revision of the client.
// covers: GW-4
#[test]
fn gw_4_capabilities_are_mirrored() {
    let upstream: ServerCapabilities = serde_json::from_value(json!({
        "tools": { "listChanged": false },
        "prompts": {},
        "resources": { "subscribe": true },
        "completions": {},
        "experimental": { "acme": { "a": 1 } },
        "extensions": { "com.example/x": { "b": 2 } },
        "tasks": { "list": {} },
    }))
    .unwrap();
    let server = server(|server| {
        server
            .tool(tool("a", async |_, _: NoArguments| ()))
            .capabilities(upstream)
            .extension("com.example/own", ProtocolExtension::default())
            .experimental("beta", RawObject::empty())
    });
    for revision in Revision::ALL {
        let declared = declared_by(&server, revision);
        assert_eq!(declared["tools"], json!({ "listChanged": false }), "{revision}");
        assert_eq!(declared["experimental"], json!({ "acme": { "a": 1 }, "beta": {} }), "{revision}");
        assert_eq!(declared["resources"], json!({ "subscribe": true }), "{revision}");
        assert_eq!(declared.get("logging"), None);
        assert_eq!(declared.get("tasks").is_some(), revision == Revision::V2025_11_25, "{revision}");
        if revision >= Revision::V2025_11_25 {
            assert_eq!(declared["extensions"], json!({ "com.example/x": { "b": 2 }, "com.example/own": {} }));
        }
        let mut client = ScriptedClient::new(&server, revision);
        client.result("prompts/list", json!({}));
        server.publish(&Change::Tools);
        client.assert_quiet();
    }
}

/// An experimental capability alone does not take the place of the others.
// covers: GW-4
#[test]
fn gw_4_experimental_capabilities_are_added() {
    let server = server(|server| server.offers_tools().experimental("acme", RawObject::empty()));
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let declared = declared_by(&server, revision);
        assert_eq!(declared["experimental"], json!({ "acme": {} }));
        assert_eq!(declared["tools"], json!({ "listChanged": true }));
    }
}

/// Capabilities that do not fit what is registered are refused, with the reason.
// covers: GW-4
#[test]
fn gw_4_contradictions_are_refused() {
    let nothing = ServerCapabilities::default;
    let reason = |build: &dyn Fn(ServerBuilder) -> ServerBuilder| {
        let BuildError::ContradictoryCapabilities { reason } = refused(build) else {
            panic!("expected a contradiction")
        };
        reason
    };
    let a = || tool("a", async |_, _: NoArguments| ());
    assert!(reason(&|server| server.tool(a()).capabilities(nothing())).contains("`tools`"));
    assert!(reason(&|server| server.offers_prompts().capabilities(nothing())).contains("`prompts`"));
    assert!(reason(&|server| server.offers_resources().capabilities(nothing())).contains("`resources`"));
    assert!(reason(&|server| server.offers_completions().capabilities(nothing())).contains("`completions`"));
    let resources = || nothing().resources(ResourcesCapability::default()).prompts(PromptsCapability::default());
    assert!(reason(&|server| server.resource_subscriptions().capabilities(resources())).contains("subscribe"));
    let logging = || nothing().logging(RawObject::empty()).tools(ToolsCapability::default());
    assert!(reason(&|server| server.without_logging().capabilities(logging())).contains("`logging`"));
    server(|server| server.tool(a()).capabilities(logging()));
}
