//! Handlers that ask the client something, in the words of the client's revision.

use mcp_server::types::{
    BooleanSchema, ElicitRequestFormParams, OrderedMap, RequestedSchema, Revision, StringSchema, UntitledItems,
    UntitledMultiSelectEnumSchema,
};
use mcp_server::{AskError, ClientCapability, NoArguments, RequestContext, Server, Tool, tool};
use mcp_testkit::ScriptedClient;
use mcp_testkit::envelope::tool_text;
use serde_json::{Value, json};

/// A legacy client that declares everything but sampling, after its handshake.
fn client(revision: Revision, tool: Tool) -> ScriptedClient {
    let server = Server::builder("test", "1.0").tool(tool).build().expect("a server with one tool");
    ScriptedClient::with_capabilities(&server, revision, json!({ "elicitation": {}, "roots": {} }))
}

/// Calls a tool, and returns the next message: the response, or a request of the server.
fn call(client: &mut ScriptedClient, tool: &str) -> Value {
    client.start_tool(tool);
    assert_eq!(client.unread(), 1);
    client.next_routed().1
}

fn form(with_list: bool) -> Tool {
    tool("form", move |ctx: RequestContext, _: NoArguments| async move {
        let mut schema = RequestedSchema::new(OrderedMap::new())
            .field("name", StringSchema::default().default_value("Ann"))
            .field("sure", BooleanSchema::default().default_value(true));
        if with_list {
            let items = UntitledItems::new(vec!["red".to_owned()]);
            schema = schema.field("colours", UntitledMultiSelectEnumSchema::new(items));
        }
        ctx.elicit_form("form", ElicitRequestFormParams::new("Who?", schema)).await.map(|answer| format!("{answer:?}"))
    })
}

/// Defaults of texts came with 2025-11-25. They hold for the answer all the same.
// covers: EL-6
#[test]
fn a_question_has_what_the_revision_knows() {
    for (revision, default) in [(Revision::V2025_06_18, Value::Null), (Revision::V2025_11_25, json!("Ann"))] {
        let mut client = client(revision, form(false));
        let question = call(&mut client, "form");
        assert_eq!(question["method"], "elicitation/create");
        let fields = &question["params"]["requestedSchema"]["properties"];
        assert_eq!(fields["name"]["default"], default, "{revision}");
        assert_eq!(fields["sure"]["default"], true, "{revision}");
        client.respond(&question, json!({ "action": "accept", "content": {} }));
        let (_, result) = client.next_routed();
        assert!(tool_text(&result).contains("Ann"), "{result}");
    }
}

/// Several choices came with 2025-11-25; without them the question would be another one.
// covers: EL-6
#[test]
fn a_question_that_the_revision_cannot_express_is_not_asked() {
    let result = call(&mut client(Revision::V2025_06_18, form(true)), "form");
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert_eq!(tool_text(&result), "the request to the client is not valid", "{result}");
    assert_eq!(call(&mut client(Revision::V2025_11_25, form(true)), "form")["method"], "elicitation/create");
}

/// What a client lacks is said in the protocol's own words.
// covers: E-14, R-30
#[test]
fn what_a_client_must_have_can_be_required() {
    let needs = |capability| {
        tool("needs", move |ctx: RequestContext, _: NoArguments| async move {
            ctx.require(capability)?;
            Ok::<_, AskError>("it has")
        })
    };
    let result = call(&mut client(Revision::V2025_11_25, needs(ClientCapability::Roots)), "needs");
    assert_eq!(result["result"]["content"][0]["text"], "it has");
    let refused = call(&mut client(Revision::V2025_11_25, needs(ClientCapability::Sampling)), "needs");
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"], json!({ "requiredCapabilities": { "sampling": {} } }));
}
