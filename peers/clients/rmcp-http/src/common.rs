//! What holds in every revision.

use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde::Serialize;
use serde_json::{Value, json};

use crate::host::Heard;
use crate::report::{Checked, equal, expect, until};
use crate::session::{Session, refused, text_of};

const FIXTURE: &str = include_str!("../../../../tests/interop/fixture.json");
const SIMPLE: &str = "This is a simple text response for testing.";

/// Runs all of it; `era` is `legacy` or `modern`.
pub(crate) async fn check(session: &Session<'_>, era: &str) {
    lists(session, era).await;
    tools(session).await;
    prompts(session).await;
    resources(session, era).await;
    session
        .check("completion", async {
            let values = session.client.complete_prompt_simple("test_prompt_with_arguments", "arg1", "test").await?;
            expect(values.len() <= 100, "more than 100 values")
        })
        .await;
    progress(session).await;
}

async fn lists(session: &Session<'_>, era: &str) {
    let client = &session.client;
    let fixture: Value = serde_json::from_str(FIXTURE).unwrap_or_default();
    let named = |kind: &str| [&fixture[kind]["both"], &fixture[kind][era]].into_iter().flat_map(strings).collect();
    session
        .check("tools/list", async {
            let tools = client.list_all_tools().await?;
            contains(tools.iter().map(|tool| tool.name.as_ref()), named("tools"))?;
            expect(tools.iter().all(|tool| tool.description.is_some()), "a tool has no description")
        })
        .await;
    session
        .check("prompts/list", async {
            let prompts = client.list_all_prompts().await?;
            contains(prompts.iter().map(|prompt| prompt.name.as_str()), named("prompts"))
        })
        .await;
    session
        .check("resources/list", async {
            let resources = client.list_all_resources().await?;
            contains(resources.iter().map(|resource| resource.uri.as_str()), strings(&fixture["resources"]))
        })
        .await;
    session
        .check("resources/templates/list", async {
            let templates = client.list_all_resource_templates().await?;
            contains(templates.iter().map(|one| one.uri_template.as_str()), strings(&fixture["templates"]))
        })
        .await;
}

fn strings(values: &Value) -> Vec<&str> {
    values.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn contains<'a>(listed: impl Iterator<Item = &'a str>, expected: Vec<&str>) -> Checked {
    let listed: Vec<_> = listed.collect();
    expect(!expected.is_empty(), "nothing is expected")?;
    let missing: Vec<_> = expected.into_iter().filter(|name| !listed.contains(name)).collect();
    expect(missing.is_empty(), format!("not listed: {missing:?}"))
}

async fn tools(session: &Session<'_>) {
    session
        .check("tool/test_simple_text", async {
            equal(session.text("test_simple_text", Value::Null).await?, SIMPLE.to_owned(), "text")
        })
        .await;
    session
        .check("tool/test_simple_text-empty-arguments", async {
            equal(session.text("test_simple_text", json!({})).await?, SIMPLE.to_owned(), "text")
        })
        .await;
    let mut kinds = vec![
        ("test_image_content", json!(["image"])),
        ("test_embedded_resource", json!(["resource"])),
        ("test_multiple_content_types", json!(["text", "image", "resource"])),
    ];
    if session.revision != "2024-11-05" {
        kinds.push(("test_audio_content", json!(["audio"])));
    }
    for (tool, expected) in kinds {
        let name = format!("tool/{tool}");
        session
            .check(&name, async { equal(types(&session.call(tool, Value::Null).await?.content)?, expected, "kinds") })
            .await;
    }
    session
        .check("tool/test_error_handling", async {
            let result = session.result("test_error_handling", Value::Null).await?;
            expect(result.is_error == Some(true) && !text_of(&result).is_empty(), "expected an error and a text")
        })
        .await;
    session
        .check("tool/json_schema_2020_12_tool", async {
            let address = json!({ "street": "a", "city": "b" });
            let arguments = json!({ "name": "interop", "address": address, "contactMethod": "phone", "phone": "1" });
            expect(!session.text("json_schema_2020_12_tool", arguments).await?.is_empty(), "no text")
        })
        .await;
    session
        .check("tool/unknown", async { refused(session.result("no_such_tool", Value::Null).await, -32602).map(drop) })
        .await;
    session
        .check("tool/concurrent-calls", async {
            let slow = session.text("test_slow", json!({ "seconds": 1 }));
            let quick = futures::future::try_join_all((0..5).map(|_| session.text("test_simple_text", Value::Null)));
            tokio::pin!(slow, quick);
            tokio::select! {
                _ = &mut slow => expect(false, "the slow call was answered first")?,
                texts = &mut quick => equal(texts?.len(), 5, "answers")?,
            }
            slow.await.map(drop)
        })
        .await;
}

/// The `type` of each block, or of the content of each message.
fn types(blocks: &[impl Serialize]) -> serde_json::Result<Value> {
    let blocks = blocks.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let kind = |block: &Value| block.get("content").unwrap_or(block)["type"].clone();
    Ok(blocks.iter().map(kind).collect())
}

async fn prompts(session: &Session<'_>) {
    let every = [
        ("test_simple_prompt", json!({}), "text"),
        ("test_prompt_with_arguments", json!({ "arg1": "first-value", "arg2": "second-value" }), "second-value"),
        (
            "test_prompt_with_embedded_resource",
            json!({ "resourceUri": "test://example-resource" }),
            "test://example-resource",
        ),
        ("test_prompt_with_image", json!({}), "image/png"),
    ];
    for (name, arguments, part) in every {
        session
            .check(&format!("prompt/{name}"), async {
                let mut params = GetPromptRequestParams::new(name);
                params.arguments = serde_json::from_value(arguments)?;
                let text = serde_json::to_string(&session.client.get_prompt(params).await?.messages)?;
                expect(text.contains(part), format!("{part} is not in {text}"))
            })
            .await;
    }
    session
        .check("prompt/unknown", async {
            refused(session.client.get_prompt(GetPromptRequestParams::new("no_such_prompt")).await, -32602).map(drop)
        })
        .await;
}

async fn resources(session: &Session<'_>, era: &str) {
    let every = [
        ("static-text", "test://static-text", "text/plain"),
        ("static-binary", "test://static-binary", "image/png"),
        ("template", "test://template/interop-42/data", "interop-42"),
        ("watched", "test://watched-resource", "test://watched-resource"),
    ];
    for (name, uri, part) in every {
        session
            .check(&format!("resource/{name}"), async {
                let result = session.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
                let text = serde_json::to_string(&result.contents)?;
                expect(text.contains(uri) && text.contains(part), format!("{part} is not in {text}"))
            })
            .await;
    }
    session
        .check("resource/unknown", async {
            let params = ReadResourceRequestParams::new("test://no-such-resource");
            let code = if era == "modern" { -32602 } else { -32002 };
            refused(session.client.read_resource(params).await, code).map(drop)
        })
        .await;
}

/// The package asks for progress with every request.
async fn progress(session: &Session<'_>) {
    let told = || session.host.heard(Heard::Progress);
    session
        .check("progress/test_tool_with_progress", async {
            session.host.forget();
            session.call("test_tool_with_progress", Value::Null).await?;
            until(|| told().len() >= 3).await;
            let seen: Vec<_> = told().iter().map(|one| (one["progress"].as_f64(), one["total"].as_f64())).collect();
            equal(seen, [0.0, 50.0, 100.0].map(|at| (Some(at), Some(100.0))).to_vec(), "progress")
        })
        .await;
    session
        .check("progress/monotonic", async {
            session.host.forget();
            session.call("test_slow", json!({ "seconds": 0.5 })).await?;
            until(|| told().len() >= 3).await;
            let seen: Vec<_> = told().iter().filter_map(|one| one["progress"].as_f64()).collect();
            expect(seen.is_sorted_by(|a, b| a < b), format!("not increasing: {seen:?}"))
        })
        .await;
}
