//! What the official suite demands of servers that ask by their results, scenario by scenario, without a socket.
//!
//! Each test has the name of a scenario, `input-required-result-*`, and drives the server that the suite is pointed at.

use mcp_server::Server;
use mcp_server::types::Revision;
use mcp_testkit::ScriptedClient;
use mcp_tests::fixture;
use serde_json::{Value, json};

const PREFIX: &str = "test_input_required_result_";

/// A modern client, which opens a connection of its own for each request: rounds share nothing but the server.
struct Client {
    server: Server,
    capabilities: Value,
}

impl Client {
    fn new() -> Self {
        Self::declaring(json!({ "elicitation": {}, "sampling": {}, "roots": {} }))
    }

    fn declaring(capabilities: Value) -> Self {
        Self { server: fixture::server().expect("the fixture"), capabilities }
    }

    /// Sends a request; the one message that comes back is its answer.
    fn send(&self, method: &str, params: Value) -> Value {
        let mut client = ScriptedClient::with_capabilities(&self.server, Revision::LATEST, self.capabilities.clone());
        let answer = client.call(method, params);
        client.assert_quiet();
        assert!(client.connection.is_idle(), "something is left");
        answer
    }

    fn result(&self, method: &str, params: Value) -> Value {
        let mut answer = self.send(method, params);
        assert_eq!(answer.get("error"), None, "{answer}");
        answer["result"].take()
    }

    /// The first round of a tool.
    fn call(&self, tool: &str) -> Value {
        self.result("tools/call", call(tool))
    }

    /// The round after one that asked, with answers.
    fn retry(&self, tool: &str, asked: &Value, responses: Value) -> Value {
        self.result("tools/call", retry(call(tool), asked, responses))
    }
}

fn call(tool: &str) -> Value {
    json!({ "name": format!("{PREFIX}{tool}"), "arguments": {} })
}

/// The state is echoed if there was one.
fn retry(mut params: Value, asked: &Value, responses: Value) -> Value {
    params["inputResponses"] = responses;
    if let Some(state) = asked.get("requestState") {
        params["requestState"] = state.clone();
    }
    params
}

/// The questions of a round, by key.
fn questions(result: &Value) -> Vec<(String, String)> {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let questions = result["inputRequests"].as_object().expect("questions");
    let method = |question: &Value| question["method"].as_str().expect("a method").to_owned();
    questions.iter().map(|(key, question)| (key.clone(), method(question))).collect()
}

/// The key of the first question, which has to be of a method.
fn first_key(result: &Value, method: &str) -> String {
    let (key, asked) = questions(result).swap_remove(0);
    assert_eq!(asked, method);
    key
}

/// The text of a result that is final.
fn text(result: &Value) -> &str {
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_ne!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().filter(|text| !text.is_empty()).expect("content")
}

fn accepts(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

fn sampled() -> Value {
    json!({ "role": "assistant", "model": "m", "stopReason": "endTurn", "content": { "type": "text", "text": "Paris" } })
}

fn roots() -> Value {
    json!({ "roots": [{ "uri": "file:///test/root", "name": "Test Root" }] })
}

// covers: R-1, EL-3
#[test]
fn basic_elicitation() {
    let client = Client::new();
    let asked = client.call("elicitation");
    assert_eq!(questions(&asked), [("user_name".to_owned(), "elicitation/create".to_owned())]);
    let question = &asked["inputRequests"]["user_name"]["params"];
    assert_eq!(question["requestedSchema"]["required"], json!(["name"]), "{question}");
    assert!(question["message"].is_string(), "{question}");
    let answers = json!({ "user_name": accepts(json!({ "name": "Alice" })) });
    let done = client.retry("elicitation", &asked, answers);
    assert!(text(&done).contains("Alice"), "{done}");
}

//
#[test]
fn basic_sampling() {
    let client = Client::new();
    let asked = client.call("sampling");
    let key = first_key(&asked, "sampling/createMessage");
    let done = client.retry("sampling", &asked, json!({ key: sampled() }));
    assert!(text(&done).contains("Paris"), "{done}");
}

//
#[test]
fn basic_list_roots() {
    let client = Client::new();
    let asked = client.call("list_roots");
    let key = first_key(&asked, "roots/list");
    let done = client.retry("list_roots", &asked, json!({ key: roots() }));
    assert!(text(&done).contains("file:///test/root"), "{done}");
}

#[test]
fn request_state() {
    let client = Client::new();
    let asked = client.call("request_state");
    assert!(asked["requestState"].is_string(), "{asked}");
    let key = first_key(&asked, "elicitation/create");
    let done = client.retry("request_state", &asked, json!({ key: accepts(json!({ "ok": true })) }));
    assert!(text(&done).contains("state-ok"), "{done}");
}

#[test]
fn multiple_input_requests() {
    let client = Client::new();
    let asked = client.call("multiple_inputs");
    assert!(asked["requestState"].is_string(), "{asked}");
    let questions = questions(&asked);
    let mut answers = json!({});
    for (key, method) in &questions {
        answers[key] = match method.as_str() {
            "elicitation/create" => accepts(json!({ "name": "Alice" })),
            "sampling/createMessage" => sampled(),
            "roots/list" => roots(),
            other => panic!("nobody knows {other}"),
        };
    }
    let mut methods: Vec<_> = questions.iter().map(|(_, method)| method.as_str()).collect();
    methods.sort_unstable();
    assert_eq!(methods, ["elicitation/create", "roots/list", "sampling/createMessage"]);
    let done = client.retry("multiple_inputs", &asked, answers);
    assert_eq!(text(&done), "Alice; Paris; file:///test/root");
}

#[test]
fn multi_round() {
    let client = Client::new();
    let first = client.call("multi_round");
    let key = first_key(&first, "elicitation/create");
    let second = client.retry("multi_round", &first, json!({ key: accepts(json!({ "name": "Alice" })) }));
    let key = first_key(&second, "elicitation/create");
    assert!(first["requestState"].is_string() && second["requestState"].is_string(), "{first} {second}");
    assert_ne!(first["requestState"], second["requestState"]);
    let done = client.retry("multi_round", &second, json!({ key: accepts(json!({ "color": "blue" })) }));
    assert_eq!(text(&done), "Alice; blue");
}

#[test]
fn missing_input_response() {
    let client = Client::new();
    let asked = client.call("elicitation");
    let again = client.retry("elicitation", &asked, json!({ "wrong_key": accepts(json!({ "name": "Alice" })) }));
    assert_eq!(questions(&again), questions(&asked));
}

#[test]
fn non_tool_request() {
    let client = Client::new();
    let params = json!({ "name": format!("{PREFIX}prompt") });
    let asked = client.result("prompts/get", params.clone());
    let key = first_key(&asked, "elicitation/create");
    let answers = json!({ key: accepts(json!({ "context": "a garden" })) });
    let done = client.result("prompts/get", retry(params, &asked, answers));
    assert_eq!(done["resultType"], "complete");
    assert!(done["messages"][0]["content"]["text"].as_str().expect("a text").contains("a garden"), "{done}");
}

/// Clients tell interim results from final ones by this member alone, so it is there, to the letter.
#[test]
fn result_type() {
    let client = Client::new();
    let asked = client.call("elicitation");
    assert_eq!(asked.get("resultType"), Some(&json!("input_required")));
    let done = client.retry("elicitation", &asked, json!({ "user_name": accepts(json!({ "name": "Alice" })) }));
    assert_eq!(done.get("resultType"), Some(&json!("complete")));
}

/// Only tools, prompts and resources may ask, and answers that come with the rest change nothing.
//
#[test]
fn unsupported_methods() {
    let client = Client::new();
    let methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"];
    for method in methods {
        let plain = client.result(method, json!({}));
        assert_eq!(plain["resultType"], "complete", "{method}");
        let answers = json!({ "inputResponses": { "user_name": accepts(json!({ "name": "Alice" })) } });
        assert_eq!(client.result(method, answers), plain, "{method}");
    }
}

#[test]
fn tampered_state() {
    let client = Client::new();
    let asked = client.call("tampered_state");
    let key = first_key(&asked, "elicitation/create");
    let answers = json!({ key: accepts(json!({ "ok": true })) });
    let mut tampered = asked.clone();
    tampered["requestState"] = format!("{}-TAMPERED", asked["requestState"].as_str().expect("a state")).into();
    let refused = client.send("tools/call", retry(call("tampered_state"), &tampered, answers.clone()));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let done = client.retry("tampered_state", &asked, answers);
    assert_eq!(text(&done), "confirmed");
}

#[test]
fn capability_check() {
    let able = |capabilities: Value| questions(&Client::declaring(capabilities).call("capabilities"));
    let methods = |asked: Vec<(String, String)>| asked.into_iter().map(|(_, method)| method).collect::<Vec<_>>();
    assert_eq!(methods(able(json!({ "sampling": {} }))), ["sampling/createMessage"]);
    assert_eq!(methods(able(json!({ "elicitation": {} }))), ["elicitation/create"]);
    assert_eq!(methods(able(json!({ "roots": {} }))), ["roots/list"]);
    // a tool that cannot do without says what is missing.
    let refused = Client::declaring(json!({ "sampling": {} })).send("tools/call", call("elicitation"));
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}

/// The answers come without a round before, so there is no state that would go with them.
#[test]
fn ignore_extra_params() {
    let answers = json!({
        "user_name": accepts(json!({ "name": "Alice" })),
        "unknown_one": accepts(json!({ "x": 1 })),
        "unknown_two": accepts(json!({ "y": true })),
    });
    let done = Client::new().retry("elicitation", &json!({}), answers);
    assert!(text(&done).contains("Alice"), "{done}");
}

#[test]
fn validate_input() {
    let client = Client::new();
    let asked = client.call("elicitation");
    for wrong in [
        json!({ "user_name": 12345 }),
        json!({ "user_name": null }),
        json!({ "user_name": "Alice" }),
        json!({ "user_name": { "action": "perhaps" } }),
        json!({ "user_name": accepts(json!({ "name": 12345 })) }),
        json!({ "user_name": accepts(json!({})) }),
        json!([]),
        json!("Alice"),
    ] {
        let refused = client.send("tools/call", retry(call("elicitation"), &asked, wrong.clone()));
        assert_eq!(refused["error"]["code"], -32602, "{wrong}: {refused}");
    }
    // A member that is null is one that is not there.
    let again = client.retry("elicitation", &asked, Value::Null);
    assert_eq!(questions(&again), questions(&asked));
}
