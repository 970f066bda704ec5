//! Handlers that ask the client something, in the words of the client's revision.

use std::task::{Context, Waker};

use mcp_server::types::{
    BooleanSchema, ElicitRequestFormParams, OrderedMap, RequestedSchema, StringSchema, UntitledItems,
    UntitledMultiSelectEnumSchema,
};
use mcp_server::{
    AskError, Caller, ClientCapability, Connection, NoArguments, RequestContext, Server, Time, Tool, tool,
};
use serde_json::{Value, json};

/// A legacy client that declares everything but sampling, after its handshake.
struct Client {
    connection: Connection,
    now: Time,
}

impl Client {
    fn new(revision: &str, tool: Tool) -> Self {
        let server = Server::builder("test", "1.0").tool(tool).build().expect("a server with one tool");
        let mut client = Self { connection: Connection::long_lived(&server), now: Time::EPOCH };
        let hello = client.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision,
            "capabilities": { "elicitation": {}, "roots": {} },
            "clientInfo": { "name": "client", "version": "1.0" },
        } }));
        assert_eq!(hello[0]["result"]["protocolVersion"], revision);
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    /// Sends a message, and returns what the server has to say then.
    fn send(&mut self, message: Value) -> Vec<Value> {
        let _ = self.connection.feed(self.now, message.to_string().as_bytes(), &Caller::default());
        let _ = self.connection.poll(&mut Context::from_waker(Waker::noop()), self.now);
        std::iter::from_fn(|| self.connection.poll_transmit())
            .map(|transmit| serde_json::from_slice(&transmit.message).expect("the server sends JSON"))
            .collect()
    }

    fn call(&mut self, tool: &str) -> Value {
        let mut said =
            self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool } }));
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }
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
    for (revision, default) in [("2025-06-18", Value::Null), ("2025-11-25", json!("Ann"))] {
        let mut client = Client::new(revision, form(false));
        let question = client.call("form");
        assert_eq!(question["method"], "elicitation/create");
        let fields = &question["params"]["requestedSchema"]["properties"];
        assert_eq!(fields["name"]["default"], default, "{revision}");
        assert_eq!(fields["sure"]["default"], true, "{revision}");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": {} } });
        let result = client.send(answer).remove(0);
        assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("Ann"), "{result}");
    }
}

/// Several choices came with 2025-11-25; without them the question would be another one.
// covers: EL-6
#[test]
fn a_question_that_the_revision_cannot_express_is_not_asked() {
    let result = Client::new("2025-06-18", form(true)).call("form");
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("cannot express"), "{result}");
    assert_eq!(Client::new("2025-11-25", form(true)).call("form")["method"], "elicitation/create");
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
    let result = Client::new("2025-11-25", needs(ClientCapability::Roots)).call("needs");
    assert_eq!(result["result"]["content"][0]["text"], "it has");
    let refused = Client::new("2025-11-25", needs(ClientCapability::Sampling)).call("needs");
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"], json!({ "requiredCapabilities": { "sampling": {} } }));
}
