//! Tools, prompts and resources that some clients cannot see.

use mcp_server::types::{CacheScope, ErrorObject, Revision};
use mcp_server::{
    Caller, Change, CompletionInput, NoArguments, ParamClaims, Principal, Prompt, RequestContext, Resource, Server,
    Template, Tool, UriVariables, Viewer, prompt, raw_tool, template, text_resource, tool,
};
use mcp_testkit::ScriptedClient;
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, fails, removed, server};

/// The revisions that differ in what is tested here.
const ERAS: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_11_25, MODERN];

pub(crate) fn principal(subject: &str) -> Principal {
    Principal::new(Some("issuer"), subject)
}

/// A client of a user.
pub(crate) fn client_of(server: &Server, revision: Revision, subject: &str) -> ScriptedClient {
    let mut client = ScriptedClient::new(server, revision);
    client.caller.principal = Some(principal(subject));
    // A legacy client is known by its last message.
    client.notify("notifications/nothing", json!({}));
    client
}

pub(crate) fn is_alice(viewer: &Viewer<'_>) -> bool {
    viewer.principal() == Some(&principal("alice"))
}

fn named(name: &str) -> Tool {
    tool(name, async |_, _: NoArguments| "done")
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

fn completed(name: &str) -> Prompt {
    let prompt = prompt(name, async |_, Word { word }| word);
    prompt.complete("word", async |_: RequestContext, _: CompletionInput| vec!["x".to_owned()])
}

fn text(uri: &str) -> Resource {
    text_resource(uri, "text", "contents")
}

fn pattern(uri: &str) -> Template {
    let template = template(uri, "pattern", async |_: RequestContext, _: UriVariables| "contents");
    template.complete("id", async |_: RequestContext, _: CompletionInput| vec!["x".to_owned()])
}

/// A server with one item of each kind for all, and one for Alice.
fn with_secrets() -> Server {
    server(|server| {
        server
            .resource_subscriptions()
            .tool(named("open"))
            .tool(named("secret").visible(is_alice))
            .prompt(completed("open"))
            .prompt(completed("secret").visible(is_alice))
            .resource(text("a:open"))
            .resource(text("a:secret").visible(is_alice))
            .template(pattern("open:{id}"))
            .template(pattern("secret:{id}").visible(is_alice))
    })
}

/// The same server without the items for Alice.
fn without_secrets() -> Server {
    server(|server| {
        server
            .resource_subscriptions()
            .tool(named("open"))
            .prompt(completed("open"))
            .resource(text("a:open"))
            .template(pattern("open:{id}"))
    })
}

/// All requests that concern the item of a kind.
fn requests() -> Vec<(&'static str, Value)> {
    let complete = |reference: Value| json!({ "ref": reference, "argument": { "name": "word", "value": "" } });
    let complete_uri = |reference: Value| json!({ "ref": reference, "argument": { "name": "id", "value": "" } });
    vec![
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({ "name": "secret" })),
        ("prompts/get", json!({ "name": "secret", "arguments": { "word": "x" } })),
        ("prompts/get", json!({ "name": "secret" })),
        ("resources/read", json!({ "uri": "a:secret" })),
        ("resources/read", json!({ "uri": "secret:1" })),
        ("completion/complete", complete(json!({ "type": "ref/prompt", "name": "secret" }))),
        ("completion/complete", complete_uri(json!({ "type": "ref/resource", "uri": "secret:{id}" }))),
    ]
}

/// For a user who cannot see it, a server with an item responds with the same text as one without it.
// covers: AUT-4
#[test]
fn aut_4_hidden_items_do_not_exist() {
    for revision in ERAS {
        let (with, without) = (with_secrets(), without_secrets());
        let mut bob = client_of(&with, revision, "bob");
        let mut control = client_of(&without, revision, "bob");
        let mut alice = client_of(&with, revision, "alice");
        for (method, params) in requests() {
            let response = bob.call(method, params.clone());
            assert_eq!(response, control.call(method, params.clone()), "{revision}: {method} {params}");
            let (seen, shown) = (alice.call(method, params.clone()), response.to_string());
            assert_ne!(seen, response, "{revision}: {method} {params}");
            assert!(seen.get("error").is_none() || params == json!({ "name": "secret" }), "{seen}");
            assert!(!shown.contains("secret") || params.to_string().contains("secret"), "{shown}");
        }
        if revision != MODERN {
            let subscribe = |uri: &str| ("resources/subscribe", json!({ "uri": uri }));
            for (method, params) in [subscribe("a:secret"), subscribe("secret:1"), subscribe("a:nothing")] {
                assert_eq!(bob.call(method, params.clone()), control.call(method, params));
            }
        }
    }
}

/// A hidden resource leaves its URI to a template, as if it did not exist.
// covers: AUT-4
#[test]
fn aut_4_hidden_resources_leave_their_uri_to_templates() {
    let server = server(|server| {
        let secret = text_resource("a:1", "secret", "for alice").visible(is_alice);
        let all = template("a:{id}", "all", async |_: RequestContext, _: UriVariables| "for all");
        let bobs = template("b:{id}", "bobs", async |_: RequestContext, _: UriVariables| "for others");
        let alices = template("{+any}", "alices", async |_: RequestContext, _: UriVariables| "for alice");
        server.resource(secret).template(all).template(bobs.visible(|viewer| !is_alice(viewer))).template(alices)
    });
    for revision in ERAS {
        for (subject, uri, contents) in [
            ("alice", "a:1", "for alice"),
            ("bob", "a:1", "for all"),
            ("alice", "b:1", "for alice"),
            ("bob", "b:1", "for others"),
        ] {
            let read = client_of(&server, revision, subject).result("resources/read", json!({ "uri": uri }));
            assert_eq!(read["contents"][0]["text"], contents, "{subject} {uri}");
        }
    }
}

/// Pages are as long as if hidden items did not exist, and a cursor that names one is invalid.
// covers: AUT-4
#[test]
fn aut_4_pages_and_cursors_reveal_nothing() {
    let server = server(|server| {
        let tools = (0..10).map(|number| {
            let tool = named(&format!("t{number}"));
            if number % 3 == 0 { tool } else { tool.visible(is_alice) }
        });
        tools.fold(server.page_size(2), |server, tool| server.tool(tool))
    });
    for revision in ERAS {
        let mut bob = client_of(&server, revision, "bob");
        let mut alice = client_of(&server, revision, "alice");
        let mut names = Vec::new();
        let mut params = json!({});
        loop {
            let page = bob.result("tools/list", params);
            let tools = page["tools"].as_array().unwrap();
            names.push(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
            let Some(cursor) = page.get("nextCursor") else { break };
            params = json!({ "cursor": cursor });
        }
        assert_eq!(names, [["t0", "t3"], ["t6", "t9"]]);
        let of_alice = alice.result("tools/list", json!({}))["nextCursor"].clone();
        let hidden = bob.error("tools/list", json!({ "cursor": of_alice }), -32602);
        // "unknown" in Base64.
        assert_eq!(hidden, bob.error("tools/list", json!({ "cursor": "dW5rbm93bg==" }), -32602));
    }
}

/// Lists and contents that depend on the viewer are cached for one user only, whatever the settings are.
// covers: AUT-4
#[test]
fn aut_4_what_depends_on_the_viewer_is_not_cached_for_all() {
    let ttl = std::time::Duration::from_secs(60);
    let server = server(|server| {
        server
            .cache(ttl, CacheScope::PUBLIC)
            .tool(named("secret").visible(is_alice))
            .resource(text("a:secret").cache(ttl, CacheScope::PUBLIC).visible(is_alice))
            .resource(text("a:open"))
            .template(pattern("open:{id}"))
    });
    let mut alice = client_of(&server, MODERN, "alice");
    for (method, params, scope) in [
        ("tools/list", json!({}), "private"),
        ("resources/list", json!({}), "private"),
        ("resources/templates/list", json!({}), "public"),
        ("resources/read", json!({ "uri": "a:secret" }), "private"),
        ("resources/read", json!({ "uri": "a:open" }), "public"),
    ] {
        let result = alice.result(method, params);
        assert_eq!((&result["cacheScope"], &result["ttlMs"]), (&json!(scope), &json!(60_000)), "{method}");
    }
}

/// Subscribes to all changes, and to resources.
pub(crate) fn subscribe(client: &mut ScriptedClient, revision: Revision, uris: &[&str]) {
    if revision == MODERN {
        let filter = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": uris });
        client.start("subscriptions/listen", json!({ "notifications": filter }));
        client.expect_message("notifications/subscriptions/acknowledged");
        return;
    }
    for uri in uris {
        client.result("resources/subscribe", json!({ "uri": uri }));
    }
}

pub(crate) fn heard(client: &mut ScriptedClient) -> Vec<String> {
    client.run();
    client.methods().into_iter().map(|method| method.trim_start_matches("notifications/").to_owned()).collect()
}

/// A client is notified of a list if something was added or removed that it can see, and of a resource that it can see.
// covers: AUT-4, AUT-3
#[test]
fn aut_4_notifications_reveal_nothing() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let server = with_secrets();
        let mut alice = client_of(&server, revision, "alice");
        let mut bob = client_of(&server, revision, "bob");
        let uris = ["a:open", "a:secret", "open:1", "secret:1", "a:unknown"];
        for client in [&mut alice, &mut bob] {
            subscribe(client, revision, &uris);
        }
        for (uri, is_secret) in uris.into_iter().zip([false, true, false, true, false]) {
            server.publish(&Change::Resource(uri.into()));
            assert_eq!(heard(&mut alice), ["resources/updated"], "{uri}");
            assert_eq!(heard(&mut bob).len(), usize::from(!is_secret), "{revision}: {uri}");
        }
        let (tools, prompts, resources) =
            (&["tools/list_changed"][..], &["prompts/list_changed"][..], &["resources/list_changed"][..]);
        let mut check = |what: &str, all: &[&str], bobs: &[&str]| {
            assert_eq!(heard(&mut alice), all, "{revision}: {what}");
            assert_eq!(heard(&mut bob), bobs, "{revision}: {what}");
        };
        server.update(|registry| registry.add_tool(named("secret2").visible(is_alice))).unwrap();
        check("a hidden tool is added", tools, &[]);
        assert!(removed(&server, "secret2"));
        check("a hidden tool is removed", tools, &[]);
        server.update(|registry| registry.add_tool(named("open2"))).unwrap();
        check("a tool is added", tools, tools);
        server.update(|registry| registry.add_prompt(completed("secret2").visible(is_alice))).unwrap();
        check("a hidden prompt is added", prompts, &[]);
        server.update(|registry| registry.add_resource(text("a:secret2").visible(is_alice))).unwrap();
        check("a hidden resource is added", resources, &[]);
        server
            .update(|registry| {
                registry.add_template(pattern("secret2:{id}").visible(is_alice))?;
                registry.add_resource(text("a:open2"))
            })
            .unwrap();
        check("a hidden template and a resource are added", resources, resources);
        // A tool that becomes visible is a change for those who could not see it before.
        server
            .update(|registry| {
                registry.remove_tool("secret");
                registry.add_tool(named("secret"))
            })
            .unwrap();
        check("a hidden tool becomes visible", tools, tools);
        server.publish(&Change::Tools);
        check("it is published explicitly", tools, tools);
    }
}

/// What a predicate gets is there in requests, and in notifications of both eras.
// covers: AUT-4
#[test]
fn aut_4_viewers_have_the_same_properties_everywhere() {
    struct Role(&'static str);
    struct Greeting(&'static str);
    let server = server(|server| {
        let seen = text("a:secret").visible(|viewer| {
            assert_eq!(viewer.state::<Greeting>().unwrap().0, "hello");
            assert!(!viewer.connection().token().is_empty());
            assert_eq!(viewer.client_info().is_some(), viewer.connection().negotiated().is_some());
            viewer.extension::<Role>().is_some_and(|role| role.0 == "admin")
        });
        server.resource_subscriptions().state(Greeting("hello")).resource(seen)
    });
    let secret = Change::Resource("a:secret".into());
    for revision in [Revision::V2025_11_25, MODERN] {
        let mut client = ScriptedClient::new(&server, revision);
        subscribe(&mut client, revision, &["a:secret"]);
        server.publish(&secret);
        assert!(heard(&mut client).is_empty());
        client.caller.extensions.insert(Role("admin"));
        client.result("resources/read", json!({ "uri": "a:secret" }));
        server.publish(&secret);
        assert!(heard(&mut client).is_empty(), "the values of one request are not those of the subscription");
        if revision == MODERN {
            subscribe(&mut client, revision, &["a:secret"]);
        } else {
            client.connection.handle().scratch().unwrap().insert(Role("admin"));
        }
        server.publish(&secret);
        assert_eq!(heard(&mut client), ["resources/updated"], "{revision}");
    }
}

/// With layers, the values that they attach to `subscriptions/listen` count for its notifications.
// covers: AUT-4
#[test]
fn aut_4_middleware_determines_the_viewer() {
    struct User(String);

    // Takes the user of a request from its principal.
    let authenticate = mcp_server::middleware::from_fn(async |ctx, next| {
        if let Some(principal) = ctx.principal() {
            let user = principal.subject.to_string();
            if let Ok(scratch) = ctx.connection().scratch() {
                scratch.insert(User(user.clone()));
            }
            ctx.insert_extension(User(user));
        }
        next.run(ctx).await
    });
    let is_user = |viewer: &Viewer<'_>| viewer.extension::<User>().is_some_and(|user| user.0 == "alice");
    let server = server(|server| {
        let server = server.layer(authenticate).resource_subscriptions();
        server.tool(named("secret").visible(is_user)).resource(text("a:secret").visible(is_user))
    });
    for revision in ERAS {
        for (subject, count) in [("alice", 1), ("bob", 0)] {
            let mut client = client_of(&server, revision, subject);
            subscribe(&mut client, revision, &["a:secret"]);
            assert_eq!(client.result("tools/list", json!({}))["tools"].as_array().unwrap().len(), count);
            server.publish(&Change::Resource("a:secret".into()));
            assert_eq!(heard(&mut client).len(), count, "{revision}: {subject}");
        }
    }
}

/// What a predicate cannot decide is hidden, and the connection goes on.
// covers: AUT-4
#[test]
fn aut_4_a_panic_hides() {
    let server = server(|server| {
        let panics = |_: &Viewer<'_>| {
            fails();
            true
        };
        server.resource_subscriptions().tool(named("a").visible(panics)).resource(text("a:b").visible(panics))
    });
    for revision in ERAS {
        let mut client = client_of(&server, revision, "alice");
        subscribe(&mut client, revision, &["a:b"]);
        assert_eq!(client.result("tools/list", json!({}))["tools"], json!([]));
        client.error("tools/call", json!({ "name": "a" }), -32602);
        server.publish(&Change::Resource("a:b".into()));
        assert!(heard(&mut client).is_empty());
    }
}

/// A predicate may use the server and the connection, of which no lock is held.
// covers: AUT-4
#[test]
fn aut_4_predicates_run_without_locks() {
    for revision in ERAS {
        let server = server(|server| {
            let tool = named("a").visible(|viewer| {
                viewer.server().publish(&Change::Prompts);
                viewer.server().update(|_| Ok(())).unwrap();
                viewer.connection().scratch().unwrap().insert(1_u8);
                viewer.connection().notify(&"notifications/hello".into(), &json!({}));
                viewer.connection().negotiated().is_none_or(|negotiated| negotiated != MODERN)
            });
            server.offers_prompts().tool(tool)
        });
        let mut client = client_of(&server, revision, "alice");
        subscribe(&mut client, revision, &[]);
        assert_eq!(client.call_tool("a", json!({}))["content"][0]["text"], "done");
        heard(&mut client);
        assert!(removed(&server, "a"));
        assert!(heard(&mut client).contains(&"tools/list_changed".to_owned()), "{revision}");
    }
}

/// Header parameters of a tool with a predicate are compared after it is known to be visible, so that a mismatch reveals
/// nothing.
// covers: AUT-4
#[test]
fn aut_4_header_params_reveal_nothing() {
    let schema = || {
        let region = json!({ "type": "string", "x-mcp-header": "Region" });
        mcp_server::types::RawObject::new(&json!({ "type": "object", "properties": { "region": region } })).unwrap()
    };
    let raw = |name: &str| raw_tool(name, schema(), async |_, _| "done");
    let server = server(|server| server.tool(raw("open")).tool(raw("secret").visible(is_alice)));
    assert!(server.defers_header_params());
    assert!(server.header_params("open").is_some() && server.header_params("secret").is_none());
    let caller = Caller::default().extension(ParamClaims::new(|param, arguments| {
        assert_eq!((param.name.as_str(), arguments), ("Region", r#"{"region":"eu"}"#));
        Err(ErrorObject::invalid_request("the header differs"))
    }));
    let call = |subject: &str, tool: &str| {
        let mut client = client_of(&server, MODERN, subject);
        client.caller.extensions = caller.extensions.clone();
        client.call("tools/call", json!({ "name": tool, "arguments": { "region": "eu" } }))
    };
    assert_eq!(call("alice", "secret")["error"]["message"], "the header differs");
    assert_eq!(call("bob", "secret")["error"]["message"], "Unknown tool: secret");
    assert_eq!(call("bob", "unknown")["error"]["code"], call("bob", "secret")["error"]["code"]);
    // The transport has compared those of other tools before.
    assert!(call("bob", "open").get("error").is_none());
}
