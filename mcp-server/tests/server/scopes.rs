//! Requests that need scopes of their access token.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_server::types::{ErrorObject, Method, Revision};
use mcp_server::{
    AuthInfo, BuildError, Caller, Change, CompletionInput, InsufficientScope, NoArguments, Principal, RequestContext,
    Server, UriVariables, prompt, template, text_resource, tool,
};
use mcp_testkit::ScriptedClient;
use serde_json::{Value, json};

use crate::servers::{MODERN, refused, server};
use crate::visibility::{heard, subscribe};

const ERAS: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_11_25, MODERN];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

/// A server whose items need scopes, and how often a handler was called.
fn library() -> (Server, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let count = |calls: &Arc<AtomicU32>| {
        let calls = Arc::clone(calls);
        move || calls.fetch_add(1, Ordering::SeqCst)
    };
    let (by_tool, by_template) = (count(&calls), count(&calls));
    let server = server(|server| {
        server
            .tool(tool("list", async |_, _: NoArguments| "done"))
            .tool(
                tool("write", move |_, _: NoArguments| {
                    by_tool();
                    async { "written" }
                })
                .requires_scope("books:write")
                .requires_scope("books:read"),
            )
            .prompt(
                prompt("review", async |_, Word { word }| word)
                    .complete("word", async |_: RequestContext, _: CompletionInput| vec!["x".to_owned()])
                    .requires_scope("books:read"),
            )
            .resource(text_resource("books://1", "book", "contents").requires_scope("books:read"))
            .template(
                template("papers://{id}", "paper", move |_: RequestContext, _: UriVariables| {
                    by_template();
                    async { "contents" }
                })
                .requires_scope("papers:read"),
            )
            .resource_subscriptions()
    });
    (server, calls)
}

fn client(server: &Server, revision: Revision, scopes: Option<&[&str]>) -> ScriptedClient {
    let mut client = ScriptedClient::new(server, revision);
    if let Some(scopes) = scopes {
        let auth = AuthInfo::builder(Principal::new(Some("issuer"), "ann")).scopes(scopes.iter().copied());
        client.caller = Caller::default().auth_info(Arc::new(auth.build()));
    }
    client
}

/// The scopes that an error names.
fn scopes_of(client: &mut ScriptedClient, method: &str, params: Value) -> Value {
    client.error(method, params, -32600)["data"]["requiredScopes"].clone()
}

fn call(name: &str) -> Value {
    json!({ "name": name, "arguments": {} })
}

// covers: AU-8, AU-9, AU-15
#[test]
fn items_need_their_scopes_before_handlers_run() {
    let (server, calls) = library();
    let subscribe = json!({ "uri": "books://1" });
    let complete =
        json!({ "ref": { "type": "ref/prompt", "name": "review" }, "argument": { "name": "word", "value": "" } });
    for revision in ERAS {
        for scopes in [None, Some(&[][..]), Some(&["books:write", "books", "books:readers"])] {
            let mut client = client(&server, revision, scopes);
            // All scopes of the operation at once, not only those that are missing.
            let both = json!(["books:read", "books:write"]);
            assert_eq!(scopes_of(&mut client, "tools/call", call("write")), both);
            let get = json!({ "name": "review", "arguments": { "word": "a" } });
            assert_eq!(scopes_of(&mut client, "prompts/get", get), json!(["books:read"]));
            assert_eq!(scopes_of(&mut client, "completion/complete", complete.clone()), json!(["books:read"]));
            assert_eq!(scopes_of(&mut client, "resources/read", json!({ "uri": "books://1" })), json!(["books:read"]));
            assert_eq!(
                scopes_of(&mut client, "resources/read", json!({ "uri": "papers://7" })),
                json!(["papers:read"])
            );
            if revision == MODERN {
                let uris = json!({ "resourceSubscriptions": ["books://1", "papers://7", "unknown://1"] });
                let scopes = scopes_of(&mut client, "subscriptions/listen", json!({ "notifications": uris }));
                assert_eq!(scopes, json!(["books:read", "papers:read"]));
            } else {
                assert_eq!(scopes_of(&mut client, "resources/subscribe", subscribe.clone()), json!(["books:read"]));
            }
            // They are listed, so that clients know what more they could do, and others need no scope.
            assert_eq!(client.result("tools/list", json!({}))["tools"].as_array().map(Vec::len), Some(2));
            assert_eq!(client.call_tool_text("list", json!({})), "done");
        }
        assert_eq!(calls.load(Ordering::SeqCst), 0, "no handler was called");
        let all = ["books:write", "books:read", "papers:read"];
        let mut client = client(&server, revision, Some(&all));
        assert_eq!(client.call_tool_text("write", json!({})), "written");
        client.result("prompts/get", json!({ "name": "review", "arguments": { "word": "a" } }));
        client.result("completion/complete", complete.clone());
        let read = client.result("resources/read", json!({ "uri": "books://1" }));
        if revision == MODERN {
            assert_eq!(read["cacheScope"], "private", "a shared cache would give it to others");
        } else {
            client.result("resources/subscribe", subscribe.clone());
        }
        client.result("resources/read", json!({ "uri": "papers://7" }));
        assert_eq!(calls.swap(0, Ordering::SeqCst), 2);
    }
}

// covers: AU-9, AU-15
#[test]
fn methods_need_their_scopes_together_with_those_of_items() {
    let server = server(|server| {
        server
            .tool(tool("write", async |_, _: NoArguments| "written").requires_scope("books:write"))
            .tool(tool("list", async |_, _: NoArguments| "done"))
            .requires_scope(Method::TOOLS_CALL, "tools:use")
            .requires_scope(Method::TOOLS_LIST, "tools:list")
    });
    for revision in ERAS {
        let mut nothing = client(&server, revision, Some(&["books:write"]));
        assert_eq!(scopes_of(&mut nothing, "tools/list", json!({})), json!(["tools:list"]));
        assert_eq!(scopes_of(&mut nothing, "tools/call", call("list")), json!(["tools:use"]));
        assert_eq!(scopes_of(&mut nothing, "tools/call", call("write")), json!(["books:write", "tools:use"]));
        let mut some = client(&server, revision, Some(&["tools:use", "tools:list"]));
        some.result("tools/list", json!({}));
        assert_eq!(some.call_tool_text("list", json!({})), "done");
        assert_eq!(scopes_of(&mut some, "tools/call", call("write")), json!(["books:write", "tools:use"]));
    }
}

// covers: AU-10
#[test]
fn a_policy_knows_scopes_that_include_others_and_clients_without_tokens() {
    let server = server(|server| {
        server
            .tool(tool("write", async |_, _: NoArguments| "written").requires_scope("books:write"))
            .tool(tool("hidden", async |_, _: NoArguments| "seen").visible(|viewer| viewer.has_scope("books:admin")))
            .scope_policy(|auth, scope| auth.is_none_or(|auth| auth.has_scope(scope) || auth.has_scope("admin")))
    });
    for revision in ERAS {
        for scopes in [None, Some(&["admin"][..])] {
            let mut client = client(&server, revision, scopes);
            assert_eq!(client.call_tool_text("write", json!({})), "written");
            assert_eq!(client.call_tool_text("hidden", json!({})), "seen");
        }
        let mut client = client(&server, revision, Some(&["books:read"]));
        assert_eq!(scopes_of(&mut client, "tools/call", call("write")), json!(["books:write"]));
        assert_eq!(client.result("tools/list", json!({}))["tools"].as_array().map(Vec::len), Some(1));
        client.error("tools/call", call("hidden"), -32602);
    }
}

#[test]
fn handlers_can_demand_scopes_that_depend_on_arguments() {
    let server = server(|server| {
        server.tool(tool("remove", async |ctx: RequestContext, Word { word }| {
            match ctx.auth_info().is_some_and(|auth| auth.has_scope(&word)) {
                true => Ok("removed"),
                false => Err(ErrorObject::from(InsufficientScope::new([word]))),
            }
        }))
    });
    for revision in ERAS {
        let mut client = client(&server, revision, Some(&["a"]));
        assert_eq!(client.call_tool_text("remove", json!({ "word": "a" })), "removed");
        let params = json!({ "name": "remove", "arguments": { "word": "b" } });
        assert_eq!(scopes_of(&mut client, "tools/call", params), json!(["b"]));
    }
}

#[test]
fn texts_that_are_no_scopes_are_refused() {
    for scope in ["", "a b", "a\"", "ä", "a\\b"] {
        let error = refused(|server| server.tool(tool("a", async |_, _: NoArguments| "").requires_scope(scope)));
        assert!(matches!(error, BuildError::InvalidTool { .. }), "{error}");
        let error = refused(|server| server.requires_scope(Method::TOOLS_CALL, scope));
        assert!(matches!(error, BuildError::InvalidScope { .. }), "{error}");
    }
}

fn updates(client: &mut ScriptedClient) -> usize {
    heard(client).iter().filter(|method| *method == "resources/updated").count()
}

/// Resources that are added later are protected as those of the start: for subscriptions, completion and reads.
// covers: AU-9, AU-15
#[test]
fn items_that_are_added_later_need_their_scopes_everywhere() {
    for revision in ERAS {
        let server = server(|server| {
            server.resource_subscriptions().template(
                template("open://{id}", "open", async |_: RequestContext, _: UriVariables| "contents")
                    .complete("id", async |_: RequestContext, _: CompletionInput| vec!["1".to_owned()]),
            )
        });
        server
            .update(|registry| {
                registry.add_resource(text_resource("books://1", "book", "contents").requires_scope("books:read"))?;
                registry.add_resource(text_resource("open://1", "hidden", "contents").requires_scope("books:read"))?;
                registry.add_template(
                    template("papers://{id}", "paper", async |_: RequestContext, _: UriVariables| "contents")
                        .complete("id", async |_: RequestContext, _: CompletionInput| vec!["1".to_owned()])
                        .requires_scope("papers:read"),
                )
            })
            .unwrap();
        let mut client = client(&server, revision, Some(&["books"]));
        let complete = json!({
            "ref": { "type": "ref/resource", "uri": "papers://{id}" }, "argument": { "name": "id", "value": "" },
        });
        assert_eq!(scopes_of(&mut client, "completion/complete", complete), json!(["papers:read"]));
        // A template for all does not lead to a resource that needs a scope.
        for (uri, scope) in [("books://1", "books:read"), ("open://1", "books:read"), ("papers://7", "papers:read")] {
            assert_eq!(scopes_of(&mut client, "resources/read", json!({ "uri": uri })), json!([scope]));
            let refused = match revision == MODERN {
                true => {
                    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
                    scopes_of(&mut client, "subscriptions/listen", filter)
                }
                false => scopes_of(&mut client, "resources/subscribe", json!({ "uri": uri })),
            };
            assert_eq!(refused, json!([scope]), "{revision}: {uri}");
        }
        client.result("resources/read", json!({ "uri": "open://2" }));
    }
}

/// Sends two requests with one id before the first is handled. Returns whether both succeed, as the kernel responds at once.
fn is_served_by_kernel(client: &mut ScriptedClient) -> bool {
    let subscribe = client.build_request("resources/subscribe", json!({ "uri": "open://1" }));
    let mut unsubscribe = subscribe.clone();
    unsubscribe["method"] = json!("resources/unsubscribe");
    client.send(&subscribe);
    client.send(&unsubscribe);
    client.run();
    let responses = [client.response_to(subscribe["id"].clone()), client.response_to(subscribe["id"].clone())];
    responses.iter().all(|response| response.get("result").is_some())
}

/// The kernel responds to subscriptions as long as no resource needs a scope, also for connections that are open when one is added.
// covers: AU-9, AU-15
#[test]
fn only_scopes_of_resources_take_subscriptions_from_the_kernel() {
    let open = || text_resource("open://1", "open", "contents");
    let book = || text_resource("books://1", "book", "contents").requires_scope("books:read");
    let server = server(|server| server.resource_subscriptions().resource(open()));
    let mut without = client(&server, Revision::V2025_11_25, Some(&["books"]));
    assert!(is_served_by_kernel(&mut without));
    server.update(|registry| registry.add_resource(text_resource("open://2", "other", "contents"))).unwrap();
    assert!(is_served_by_kernel(&mut without));
    server.update(|registry| registry.add_resource(book())).unwrap();
    assert!(!is_served_by_kernel(&mut without));
    let subscribe = json!({ "uri": "books://1" });
    assert_eq!(scopes_of(&mut without, "resources/subscribe", subscribe), json!(["books:read"]));
    let later = crate::servers::server(|server| server.resource_subscriptions().resource(open()).resource(book()));
    assert!(!is_served_by_kernel(&mut client(&later, Revision::V2025_11_25, None)));
}

/// Updates are sent to those who may read the resource when it changes, and not to those who could subscribe to it before it
/// needed a scope.
// covers: AU-9, AU-15
#[test]
fn updates_need_the_scopes_of_the_resource() {
    for revision in ERAS {
        let server = server(|server| server.resource_subscriptions().offers_resources());
        let mut without = client(&server, revision, Some(&["books"]));
        let mut with = client(&server, revision, Some(&["books:read"]));
        let mut nobody = client(&server, revision, None);
        for client in [&mut without, &mut with, &mut nobody] {
            subscribe(client, revision, &["books://1"]);
        }
        let change = Change::Resource("books://1".into());
        server.publish(&change);
        assert_eq!((updates(&mut without), updates(&mut with), updates(&mut nobody)), (1, 1, 1), "{revision}");
        let book = || text_resource("books://1", "book", "contents").requires_scope("books:read");
        server.update(|registry| registry.add_resource(book())).unwrap();
        server.publish(&change);
        assert_eq!((updates(&mut without), updates(&mut with), updates(&mut nobody)), (0, 1, 0), "{revision}");
        server
            .update(|registry| {
                registry.remove_resource("books://1");
                registry.add_template(
                    template("books://{id}", "book", async |_: RequestContext, _: UriVariables| "contents")
                        .requires_scope("books:read"),
                )
            })
            .unwrap();
        server.publish(&change);
        assert_eq!((updates(&mut without), updates(&mut with), updates(&mut nobody)), (0, 1, 0), "{revision}");
        // A resource that some cannot see has a template behind it that others can read.
        server.update(|registry| registry.add_resource(book().visible(|_| false))).unwrap();
        server.publish(&change);
        assert_eq!((updates(&mut without), updates(&mut with)), (0, 1), "{revision}");
    }
}

/// The token of the last message counts for a legacy client.
// covers: AU-9
#[test]
fn a_token_with_fewer_scopes_ends_updates() {
    let (server, _) = library();
    let mut reader = client(&server, Revision::V2025_11_25, Some(&["books:read"]));
    subscribe(&mut reader, Revision::V2025_11_25, &["books://1"]);
    let change = Change::Resource("books://1".into());
    for (scope, count) in [("books:read", 1), ("books", 0), ("books:read", 1)] {
        let auth = AuthInfo::builder(Principal::new(Some("issuer"), "ann")).scopes([scope]);
        reader.caller = Caller::default().auth_info(Arc::new(auth.build()));
        reader.result("tools/list", json!({}));
        server.publish(&change);
        assert_eq!(updates(&mut reader), count, "{scope}");
    }
}
