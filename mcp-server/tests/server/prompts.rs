//! Prompts: typed arguments out of texts.

use mcp_server::types::{ErrorObject, PromptMessage, Revision};
use mcp_server::{NoArguments, Prompt, prompt};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::servers::{MODERN, server};

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// What to review.
    file: String,
    lines: Option<u32>,
    tone: Option<Tone>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    Frank,
}

fn review() -> Prompt {
    let make = async |_, Review { file, lines, tone }: Review| {
        format!("Review {file}, {} lines, {:?}", lines.unwrap_or(10), tone.unwrap_or(Tone::Frank))
    };
    prompt("review", make).title("Review").description("Reviews a file")
}

/// Arguments are the members of a struct, and travel as texts.
// covers: PR-1, PR-2
#[test]
fn prompts_are_typed() {
    let server = server(|server| server.prompt(review()));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let listed = client.result("prompts/list", json!({}));
        let known = &listed["prompts"][0];
        assert_eq!((&known["name"], &known["description"]), (&json!("review"), &json!("Reviews a file")));
        assert_eq!(
            known["arguments"][0],
            json!({ "name": "file", "description": "What to review.", "required": true })
        );
        assert_eq!(known["arguments"][1], json!({ "name": "lines", "required": false }));
        let arguments = json!({ "file": "a.rs", "lines": "3", "tone": "kind" });
        let made = client.result("prompts/get", json!({ "name": "review", "arguments": arguments }));
        assert_eq!(made["messages"][0]["role"], "user");
        assert_eq!(made["messages"][0]["content"]["text"], "Review a.rs, 3 lines, Kind");
        let made = client.result("prompts/get", json!({ "name": "review", "arguments": { "file": "a.rs" } }));
        assert_eq!(made["messages"][0]["content"]["text"], "Review a.rs, 10 lines, Frank");
    }
}

/// An unknown prompt, a missing argument and one that cannot be read are refused before the handler runs.
// covers: PR-5, PR-6
#[test]
fn wrong_prompts_are_refused() {
    let server = server(|server| server.prompt(review()));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let mut refusal = |params| client.error("prompts/get", params, -32602)["message"].as_str().unwrap().to_owned();
        assert_eq!(refusal(json!({ "name": "praise" })), "Unknown prompt: praise");
        assert_eq!(refusal(json!({ "name": "review" })), "missing argument `file`");
        assert_eq!(refusal(json!({ "name": "review", "arguments": {} })), "missing argument `file`");
        let wrong = refusal(json!({ "name": "review", "arguments": { "file": "a", "lines": "many" } }));
        assert!(wrong.starts_with("invalid arguments: ") && wrong.contains("`lines`"), "{wrong}");
        let wrong = refusal(json!({ "name": "review", "arguments": { "file": "a", "tone": "rude" } }));
        assert!(wrong.contains("`tone`"), "{wrong}");
        refusal(json!({ "name": "review", "arguments": { "file": 1 } }));
        refusal(json!({}));
    }
}

/// A prompt returns messages, and an error of the server is an internal one.
// covers: PR-5, PR-9
#[test]
fn prompts_return_what_they_like() {
    let server = server(|server| {
        server
            .prompt(prompt("talk", async |_, _: NoArguments| {
                vec![PromptMessage::user("hello"), PromptMessage::assistant("hi")]
            }))
            .prompt(prompt("broken", async |_, _: NoArguments| Err::<String, _>("disk full")))
            .prompt(prompt("refused", async |_, _: NoArguments| {
                Err::<String, _>(ErrorObject::invalid_params("not now"))
            }))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    let made = client.result("prompts/get", json!({ "name": "talk" }));
    assert_eq!(made["messages"][1]["role"], "assistant");
    assert_eq!(client.result("prompts/list", json!({}))["prompts"][0].get("arguments"), None);
    let broken = client.error("prompts/get", json!({ "name": "broken" }), -32603);
    assert_eq!(broken["message"], "disk full");
    client.error("prompts/get", json!({ "name": "refused" }), -32602);
}
