//! What a server cannot be: each refusal says what to do about it.

use mcp_server::types::{Implementation, RawObject, Revision};
use mcp_server::{
    BuildError, CompletionInput, NoArguments, ProtocolExtension, RequestContext, Server, Tool, prompt, raw_tool,
    template, text_resource, tool,
};
use mcp_testkit::ScriptedClient;
use serde_json::{Value, json};

use crate::servers::{MODERN, refused, server};

fn named(name: &str) -> Tool {
    tool(name, async |_, _: NoArguments| ())
}

fn raw(schema: Value) -> Tool {
    raw_tool("raw", RawObject::new(&schema).expect("an object"), async |_, _| ())
}

async fn nothing(_: RequestContext, _: CompletionInput) -> Vec<String> {
    Vec::new()
}

/// Names are there once, and can be said.
// covers: S0.28, TL-11, B-56
#[test]
fn names_are_unique_and_sayable() {
    let twice = refused(|server| server.tool(named("a")).tool(named("a")));
    let remedy = "already: give one of the two another name, or remove the old one first";
    assert_eq!(twice.to_string(), format!("there is a tool `a` {remedy}"));
    let say = || prompt("a", async |_, _: NoArguments| "");
    assert_eq!(
        refused(|server| server.prompt(say()).prompt(say())).to_string(),
        format!("there is a prompt `a` {remedy}")
    );
    let text = || text_resource("a:b", "a", "");
    assert_eq!(
        refused(|server| server.resource(text()).resource(text())).to_string(),
        format!("there is a resource `a:b` {remedy}")
    );
    let any = || template("a:{b}", "a", async |_, _| "");
    assert_eq!(
        refused(|server| server.template(any()).template(any())).to_string(),
        format!("there is a template `a:{{b}}` {remedy}")
    );
    for (name, shown) in [("", ""), ("a\nb", "a\\nb")] {
        let expected =
            format!("`{shown}` cannot be the name of a tool: it must not be empty or have control characters");
        assert_eq!(refused(|server| server.tool(named(name))).to_string(), expected);
    }
    // TL-11: other names than the recommended ones are fine.
    server(|server| server.tool(named("söng/of the day")));
}

/// Arguments are objects, and a schema is one.
// covers: PR-2, TL-3
#[test]
fn arguments_are_objects() {
    let numbers = tool("sum", async |_, _: Vec<i64>| ());
    assert_eq!(
        refused(|server| server.tool(numbers)).to_string(),
        "the tool `sum`: the input schema must have \"type\": \"object\" at its root; make the arguments a struct, or \
         use `NoArguments` for none"
    );
    assert!(matches!(refused(|server| server.tool(raw(json!({})))), BuildError::InvalidTool { .. }));
    let texts = prompt("talk", async |_, _: Vec<String>| "");
    assert_eq!(
        refused(|server| server.prompt(texts)).to_string(),
        "the prompt `talk`: the arguments of a prompt must be a struct; use `NoArguments` for none"
    );
    let header = json!({ "type": "object", "properties": { "a": { "type": "number", "x-mcp-header": "A" } } });
    assert_eq!(
        refused(|server| server.tool(raw(header))).to_string(),
        "the tool `raw`: `x-mcp-header` of `a`: only integers, strings and booleans can be repeated in a header"
    );
}

/// A schema that cannot be checked by is refused when the server is built.
// covers: J-5, J-9
#[cfg(feature = "validate")]
#[test]
fn schemas_are_valid() {
    let invalid = refused(|server| server.tool(raw(json!({ "type": "object", "properties": 1 }))));
    assert!(invalid.to_string().starts_with("the tool `raw`: the input schema is not valid: "), "{invalid}");
    let foreign = json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/a" } } });
    assert!(matches!(refused(|server| server.tool(raw(foreign))), BuildError::InvalidTool { .. }));
}

/// Addresses have a scheme, templates follow their grammar.
// covers: RS-8..RS-10
#[test]
fn addresses_are_absolute() {
    assert_eq!(
        refused(|server| server.resource(text_resource("notes/today", "a", ""))).to_string(),
        "`notes/today` is not the URI of a resource: it must begin with a scheme, as in `file:///a` or `notes:a`"
    );
    let open = refused(|server| server.template(template("a:{b", "a", async |_, _| "")));
    assert!(open.to_string().starts_with("the template `a:{b`: "), "{open}");
}

/// Only what is there can be completed.
//
#[test]
fn completers_are_for_arguments() {
    let talk = prompt("talk", async |_, _: NoArguments| "").complete("tone", nothing);
    assert_eq!(
        refused(|server| server.prompt(talk)).to_string(),
        "the prompt `talk`: there is no argument `tone` to complete"
    );
    let notes = template("a:{b}", "a", async |_, _| "").complete("c", nothing);
    assert_eq!(
        refused(|server| server.template(notes)).to_string(),
        "the template `a:{b}`: there is no variable `c` to complete"
    );
}

/// A server has a name, a version, and a revision to serve; the first fault is the one that is told.
// covers: S0.3
#[test]
fn a_server_is_somebody() {
    for (name, version) in [("", "1"), ("a", "")] {
        let nobody = Server::builder(name, version).build().expect_err("a refusal");
        assert_eq!(nobody.to_string(), "a server needs a name and a version");
    }
    assert_eq!(refused(|server| server.info(Implementation::new("", "1"))), BuildError::MissingName);
    assert_eq!(
        refused(|server| server.revisions([])).to_string(),
        "a server must serve at least one revision: `revisions` must not be empty"
    );
    let several = refused(|server| server.tool(named("")).tool(named("a")).tool(named("a")).revisions([]));
    assert!(matches!(several, BuildError::InvalidName { .. }), "{several}");
}

/// A server says whether it needs sessions, and subscriptions are none of these needs.
// covers: MIS-8, MIS-9, S0.4, S0.28
#[test]
fn mis_8_a_server_says_what_it_needs() {
    assert!(!server(|server| server).requires_sessions());
    assert!(!server(|server| server.resource_subscriptions()).requires_sessions());
    assert!(server(|server| server.requires_sessions().resource_subscriptions()).requires_sessions());
}

/// A running server cannot get what clients were told it does not have; the remedy is named, nothing changes.
// covers: S0.28
#[test]
fn a_running_server_keeps_its_word() {
    let server = server(|server| server);
    let told = |what: &str, remedy: &str| {
        format!(
            "this server did not declare that it has {what}, so none can be added now: call `{remedy}` when \
                 building it"
        )
    };
    let refused = server.update(|registry| registry.add_tool(named("a"))).unwrap_err();
    assert_eq!(refused.to_string(), told("tools", "offers_tools"));
    let refused = server.update(|registry| registry.add_prompt(prompt("a", async |_, _: NoArguments| ""))).unwrap_err();
    assert_eq!(refused.to_string(), told("prompts", "offers_prompts"));
    let refused = server.update(|registry| registry.add_resource(text_resource("a:b", "a", ""))).unwrap_err();
    assert_eq!(refused.to_string(), told("resources", "offers_resources"));
    let refused = server.update(|registry| registry.add_template(template("a:{b}", "a", async |_, _| ""))).unwrap_err();
    assert_eq!(refused.to_string(), told("resources", "offers_resources"));
}

/// Suggestions that no client would ask for are refused as well.
//
#[test]
fn a_running_server_cannot_start_to_complete() {
    let completed = || template("a:{b}", "a", async |_, _| "").complete("b", nothing);
    let without = server(|server| server.offers_resources());
    let refused = without.update(|registry| registry.add_template(completed())).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "this server did not declare that it has completions, so none can be added now: call `offers_completions` \
         when building it"
    );
    let with = server(|server| server.offers_resources().offers_completions());
    with.update(|registry| registry.add_template(completed())).unwrap();
    let params = json!({ "ref": { "type": "ref/resource", "uri": "a:{b}" }, "argument": { "name": "b", "value": "" } });
    assert_eq!(
        ScriptedClient::new(&with, MODERN).result("completion/complete", params)["completion"]["values"],
        json!([])
    );
}

/// An extension and its methods may be described in any order.
// covers: EX-10
#[test]
fn extensions_are_described_in_any_order() {
    let answer = async |_: RequestContext, params: RawObject| Ok(params);
    let settings = || {
        let mut extension = ProtocolExtension::default();
        extension.settings = Some(RawObject::new(&json!({ "deep": true })).unwrap());
        extension
    };
    let first = server(|server| server.extension("x.y/z", settings()).method("x.y/z", "z/echo", answer));
    let last = server(|server| server.method("x.y/z", "z/echo", answer).extension("x.y/z", settings()));
    for server in [first, last] {
        let declared = json!({ "extensions": { "x.y/z": {} } });
        let mut client = ScriptedClient::with_capabilities(&server, MODERN, declared);
        let discovered = client.result("server/discover", json!({}));
        assert_eq!(discovered["capabilities"]["extensions"]["x.y/z"], json!({ "deep": true }));
        assert_eq!(client.result("z/echo", json!({ "a": 1 }))["a"], 1);
    }
}

/// What is served, how it is described, and what it says of itself is the builder's.
// covers: S0.3, S0.19
#[test]
fn a_description_reaches_the_client() {
    let server = server(|server| {
        server
            .info(Implementation::new("other", "2.0").title("Other"))
            .instructions("Ask nicely.")
            .revisions([Revision::V2025_06_18, MODERN])
            .without_server_info()
            .tool(named("a"))
    });
    assert_eq!(server.info().name, "other");
    let discovered = ScriptedClient::new(&server, MODERN).result("server/discover", json!({}));
    assert_eq!(discovered["instructions"], "Ask nicely.");
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    let listed = ScriptedClient::new(&server, MODERN).result("tools/list", json!({}));
    assert_eq!(listed.get("_meta"), None);
    let connection = mcp_server::Connection::long_lived(&server);
    let agreed = ScriptedClient::on_connection(connection, Revision::V2025_11_25, json!({})).initialize();
    assert_eq!(agreed["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(agreed["result"]["serverInfo"]["title"], "Other");
}

/// An extension adds methods; it does not take the protocol's own, and it adds each once.
// covers: EX-10
#[test]
fn methods_of_extensions_are_their_own() {
    let answer = async |_: RequestContext, _: RawObject| Ok(RawObject::empty());
    let own = refused(|server| server.method("com.example/x", "tools/call", answer));
    assert_eq!(
        own.to_string(),
        "`tools/call` cannot be the method of an extension: the protocol defines a method of that name"
    );
    let twice = refused(|server| server.method("com.example/x", "x/y", answer).method("com.example/x", "x/y", answer));
    assert_eq!(twice.to_string(), "`x/y` cannot be the method of an extension: it is registered already");
}
