//! Lists in pages, suggestions, and what a server says that it has.

use mcp_server::types::{ErrorObject, Revision};
use mcp_server::{
    CompletionInput, HandlerError, NoArguments, RequestContext, Server, prompt, template, text_resource, tool,
};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::servers::{MODERN, removed, server};

fn five_of_all() -> Server {
    server(|server| {
        (0..5).fold(server.page_size(2), |server, number| {
            server
                .tool(tool(format!("tool{number}"), async |_, _: NoArguments| ()))
                .prompt(prompt(format!("prompt{number}"), async |_, _: NoArguments| "hello"))
                .resource(text_resource(format!("a:{number}"), "resource", ""))
                .template(template(format!("b:{number}/{{c}}"), "template", async |_, _| "read"))
        })
    })
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// All four lists come in pages; the pages hold everything once.
// covers: G-5..G-7
#[test]
fn lists_come_in_pages() {
    let server = five_of_all();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        for (method, member) in LISTS {
            let mut cursor = Value::Null;
            let mut sizes = Vec::new();
            let mut seen = Vec::new();
            loop {
                let page = client.result(method, json!({ "cursor": cursor }));
                let items = page[member].as_array().unwrap();
                sizes.push(items.len());
                seen.extend(items.iter().map(Value::to_string));
                match page.get("nextCursor") {
                    Some(next) => cursor = next.clone(),
                    None => break,
                }
            }
            assert_eq!(sizes, [2, 2, 1], "{method}");
            seen.dedup();
            assert_eq!(seen.len(), 5, "{method}");
        }
    }
}

/// Lists are the same on every connection, whatever was called on one of them.
// covers: Z-6, B-65
#[test]
fn connections_see_the_same_lists() {
    let server = five_of_all();
    for revision in Revision::ALL {
        let (mut one, mut other) = (ScriptedClient::new(&server, revision), ScriptedClient::new(&server, revision));
        one.call_tool("tool0", json!({}));
        one.result("prompts/get", json!({ "name": "prompt0" }));
        one.result("resources/read", json!({ "uri": "a:0" }));
        for (method, member) in LISTS {
            let (one, other) = (one.result(method, json!({})), other.result(method, json!({})));
            assert_eq!(one[member].as_array().unwrap().len(), 2, "{method} in {revision}");
            assert_eq!(one[member], other[member], "{method} in {revision}");
        }
    }
}

/// A cursor that is not ours is refused, and so is the empty one.
// covers: G-3, G-5
#[test]
fn foreign_cursors_are_refused() {
    let server = five_of_all();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        for (method, _) in LISTS {
            for cursor in [json!(""), json!("2"), json!("bm9ib2R5"), json!(2)] {
                client.error(method, json!({ "cursor": cursor }), -32602);
            }
        }
        // A cursor of one list means nothing to another.
        let tools = client.result("tools/list", json!({}));
        client.error("prompts/list", json!({ "cursor": tools["nextCursor"] }), -32602);
    }
}

/// A cursor stays good while other entries come and go; without its entry it has to be asked for anew.
// covers: G-5
#[test]
fn cursors_survive_changes_elsewhere() {
    let server = five_of_all();
    let mut client = ScriptedClient::new(&server, MODERN);
    let first = client.result("tools/list", json!({}));
    let cursor = json!({ "cursor": first["nextCursor"] });
    assert!(removed(&server, "tool0"));
    let second = client.result("tools/list", cursor.clone());
    assert_eq!(second["tools"][0]["name"], "tool2");
    assert!(removed(&server, "tool1"));
    client.error("tools/list", cursor, -32602);
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its shape matters")]
struct Place {
    country: String,
    city: String,
    street: Option<String>,
}

fn atlas() -> Server {
    let cities = async |_: RequestContext, typed: CompletionInput| -> Vec<String> {
        let all: &[&str] = match typed.arguments.get("country").map(String::as_str) {
            Some("France") => &["Paris", "Pau"],
            _ => &["Paris", "Prague", "Pisa"],
        };
        all.iter().filter(|city| city.starts_with(&typed.value)).map(|&city| city.to_owned()).collect()
    };
    let numbers = async |_: RequestContext, typed: CompletionInput| {
        (0..150).map(|n| format!("{}{n}", typed.value)).collect::<Vec<_>>()
    };
    let visit = prompt("visit", async |_, _: Place| "Visit").complete("city", cities);
    let houses = template("house://{street}/{number}", "houses", async |_, _| "a house").complete("number", numbers);
    server(|server| server.prompt(visit).template(houses))
}

fn complete(client: &mut ScriptedClient, params: Value) -> Value {
    client.result("completion/complete", params)["completion"].take()
}

/// Values are suggested for an argument, with what is known of the others.
//
#[test]
fn arguments_are_completed() {
    let server = atlas();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let typed = |value: &str| json!({ "ref": { "type": "ref/prompt", "name": "visit" }, "argument": { "name": "city", "value": value } });
        let found = complete(&mut client, typed("P"));
        assert_eq!(found, json!({ "values": ["Paris", "Prague", "Pisa"], "total": 3, "hasMore": false }));
        let mut known = typed("P");
        known["context"] = json!({ "arguments": { "country": "France" } });
        assert_eq!(complete(&mut client, known)["values"], json!(["Paris", "Pau"]), "{revision}");
        // An argument without suggestions is no mistake.
        let mut other = typed("R");
        other["argument"]["name"] = json!("street");
        assert_eq!(complete(&mut client, other)["values"], json!([]));
    }
}

/// No more than a hundred values at once, and the client hears that there are more.
//
#[test]
fn suggestions_are_limited() {
    let mut client = ScriptedClient::new(&atlas(), MODERN);
    let reference = json!({ "type": "ref/resource", "uri": "house://{street}/{number}" });
    let found = complete(&mut client, json!({ "ref": reference, "argument": { "name": "number", "value": "1" } }));
    assert_eq!(found["values"].as_array().unwrap().len(), 100);
    assert_eq!((&found["total"], &found["hasMore"]), (&json!(150), &json!(true)));
}

/// What does not exist cannot be completed; without the capability nothing can.
//
#[test]
fn unknown_references_are_refused() {
    let server = atlas();
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let argument = json!({ "name": "city", "value": "" });
        for reference in [
            json!({ "type": "ref/prompt", "name": "leave" }),
            json!({ "type": "ref/resource", "uri": "house://x/1" }),
            json!({ "type": "ref/planet", "name": "mars" }),
        ] {
            client.error("completion/complete", json!({ "ref": reference, "argument": argument }), -32602);
        }
        let visit = json!({ "type": "ref/prompt", "name": "visit" });
        let unknown = json!({ "ref": visit, "argument": { "name": "planet", "value": "" } });
        client.error("completion/complete", unknown, -32602);
        client.error("completion/complete", json!({ "ref": visit }), -32602);
        let mut without = ScriptedClient::new(&five_of_all(), revision);
        without.error("completion/complete", json!({ "ref": visit, "argument": argument }), -32601);
    }
}

fn capabilities(server: &Server, revision: Revision) -> Value {
    if revision == MODERN {
        ScriptedClient::new(server, revision).result("server/discover", json!({}))["capabilities"].take()
    } else {
        let connection = mcp_server::Connection::long_lived(server);
        ScriptedClient::on_connection(connection, revision, json!({})).initialize()["result"]["capabilities"].take()
    }
}

/// What a server declares follows from what it has.
// covers: S0.3, PR-1, Q-1, RS-1, TL-1, Y-1
#[test]
fn capabilities_follow_from_what_is_there() {
    for revision in Revision::ALL {
        let bare = server(|server| server);
        assert_eq!(capabilities(&bare, revision), json!({ "logging": {} }));
        let silent = server(|server| server.without_logging());
        assert_eq!(capabilities(&silent, revision), json!({}));
        let declared = capabilities(&atlas(), revision);
        assert_eq!(declared["prompts"], json!({ "listChanged": true }));
        assert_eq!(declared["resources"], json!({ "listChanged": true }));
        assert_eq!(declared.get("tools"), None);
        assert_eq!(declared.get("completions").is_some(), revision >= Revision::V2025_03_26, "{revision}");
        let promised = server(|server| server.offers_tools().offers_prompts().resource_subscriptions());
        let declared = capabilities(&promised, revision);
        assert_eq!(declared["tools"], json!({ "listChanged": true }));
        assert_eq!(declared["prompts"], json!({ "listChanged": true }));
        assert_eq!(declared["resources"], json!({ "listChanged": true, "subscribe": true }));
        // E-13: what is not declared is not there.
        for method in ["tools/list", "prompts/list", "resources/read"] {
            ScriptedClient::new(&bare, revision).error(method, json!({}), -32601);
            assert!(
                ScriptedClient::new(&promised, revision).call(method, json!({ "uri": "a:b" }))["error"]["code"]
                    != -32601
            );
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    /// Without any mercy.
    Strict,
}

/// Asks for a review.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its shape matters")]
struct Review {
    tone: Tone,
    other: Option<Tone>,
    language: String,
}

fn completion_of(prompt: &str, argument: &str, value: &str) -> Value {
    json!({ "ref": { "type": "ref/prompt", "name": prompt }, "argument": { "name": argument, "value": value } })
}

/// The variants of an enum are suggested unless the application does better.
// covers: AUT-11
#[test]
fn aut_11_enums_complete_by_themselves() {
    let better = async |_: RequestContext, _: CompletionInput| vec!["better".to_owned()];
    let server = server(|server| {
        let review = |name: &str| prompt(name, async |_, _: Review| "Review.");
        server.prompt(review("review")).prompt(review("own").complete("tone", better))
    });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        for (argument, typed, values) in [
            ("tone", "", json!(["kind", "strict"])),
            ("tone", "S", json!(["strict"])),
            ("other", "k", json!(["kind"])),
            ("other", "x", json!([])),
            ("language", "", json!([])),
        ] {
            assert_eq!(complete(&mut client, completion_of("review", argument, typed))["values"], values, "{argument}");
        }
        assert_eq!(complete(&mut client, completion_of("own", "tone", "k"))["values"], json!(["better"]));
        assert_eq!(complete(&mut client, completion_of("own", "other", "k"))["values"], json!(["kind"]));
        // The doc comment of the arguments describes the prompt.
        let listed = client.result("prompts/list", json!({}));
        assert_eq!(listed["prompts"][0]["description"], "Asks for a review.");
    }
}

/// A prompt with an enum can be added to a server that declared no completions; there it has none.
// covers: AUT-11
#[test]
fn aut_11_enums_do_not_need_the_capability() {
    let server = server(|server| server.offers_prompts());
    server.update(|registry| registry.add_prompt(prompt("review", async |_, _: Review| "Review."))).unwrap();
    let mut client = ScriptedClient::new(&server, MODERN);
    assert_eq!(client.result("prompts/list", json!({}))["prompts"][0]["name"], "review");
    client.error("completion/complete", completion_of("review", "tone", ""), -32601);
}

// covers: AUT-11
#[test]
fn aut_11_completers_may_fail() {
    let broken = async |_: RequestContext, typed: CompletionInput| {
        if typed.value.is_empty() { Err("the index is gone") } else { Ok(vec![typed.value]) }
    };
    let refuses = async |_: RequestContext, _: CompletionInput| -> Result<Vec<String>, HandlerError> {
        Err(ErrorObject::invalid_params("not yours").into())
    };
    let server = server(|server| {
        let review = prompt("review", async |_, _: Review| "Review.");
        server.prompt(review.complete("language", broken).complete("tone", refuses))
    });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(complete(&mut client, completion_of("review", "language", "R"))["values"], json!(["R"]));
        let error = client.error("completion/complete", completion_of("review", "language", ""), -32603);
        assert_eq!(error["message"], "the index is gone");
        let error = client.error("completion/complete", completion_of("review", "tone", ""), -32602);
        assert_eq!(error["message"], "not yours");
    }
}
