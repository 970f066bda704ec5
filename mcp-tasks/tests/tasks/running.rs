//! What handlers see in a task.

use std::sync::Arc;
use std::time::Duration;

use mcp_server::types::{CallToolResult, ErrorObject, InputRequiredResult};
use mcp_server::{
    AuthInfo, HandlerError, Json, NoArguments, Principal, RequestContext, RoundResult, middleware, raw_tool, tool,
};
use mcp_tasks::TaskSupport;
use serde_json::json;
use tokio::time::sleep;

use crate::kit::{Counts, TestClient, server, text};
use crate::tools;

/// The context has the user, the client and the arguments of the call.
// covers: TK-38
#[tokio::test(start_paused = true)]
async fn the_context_is_that_of_the_call() {
    let who = tool("who", async |ctx: RequestContext, tools::Name { name }: tools::Name| {
        let auth = ctx.auth_info().expect("credentials");
        let client = ctx.client_info().map(|client| client.name.clone());
        let user = ctx.principal().map(|user| user.subject.to_string());
        let scopes: Vec<_> = auth.scopes().map(str::to_owned).collect();
        format!(
            "{name} {user:?} {client:?} {scopes:?} {} {}",
            ctx.is_task(),
            ctx.trace_context().traceparent().is_some()
        )
    })
    .task(TaskSupport::Required);
    let server = server([who]);
    let mut client = TestClient::modern(&server);
    let auth = AuthInfo::builder(Principal::new(Some("https://issuer.example"), "ann")).scopes(["books"]).build();
    client.scripted.caller = client.scripted.caller.auth_info(Arc::new(auth));
    let meta = json!({
        "io.modelcontextprotocol/clientInfo": { "name": "editor", "version": "1" },
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    let created =
        client.result("tools/call", json!({ "name": "who", "arguments": { "name": "x" }, "_meta": meta })).await;
    let task = created["taskId"].as_str().unwrap();
    let state = client.until(task, "completed").await;
    assert_eq!(text(&state["result"]), r#"x Some("ann") Some("editor") ["books"] true true"#);
}

/// Arguments are validated before there is a task, results are validated in it, and layers of the tool see it.
#[tokio::test(start_paused = true)]
async fn schemas_and_layers_hold_in_tasks() {
    let counts = Counts::default();
    let seen = counts.clone();
    let layer = middleware::from_fn(move |ctx: RequestContext, next: middleware::Next| {
        let seen = seen.clone();
        async move {
            seen.add("layer");
            next.run(ctx).await
        }
    });
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let schema = mcp_server::types::RawObject::new(&schema).unwrap();
    let checked = raw_tool("checked", schema.clone(), async |_, arguments: mcp_server::types::RawObject| {
        let n = arguments.decode::<serde_json::Value>().unwrap()["n"].as_i64().unwrap();
        let n = if n == 7 { json!("seven") } else { json!(n) };
        Json(json!({ "n": n }))
    });
    let checked = checked.output_schema(schema).task(TaskSupport::Allowed);
    let layered = tool("layered", async |_, _: NoArguments| "x").layer(layer).task(TaskSupport::Allowed);
    let server = server([checked, layered]);
    let mut client = TestClient::modern(&server);
    let refused = client.result("tools/call", json!({ "name": "checked", "arguments": { "n": "x" } })).await;
    assert_eq!(refused["isError"], true, "{refused}");
    for (n, status) in [(1, "completed"), (7, "failed")] {
        let created = client.result("tools/call", json!({ "name": "checked", "arguments": { "n": n } })).await;
        client.until(created["taskId"].as_str().unwrap(), status).await;
    }
    let task = client.start("layered").await;
    client.until(&task, "completed").await;
    assert_eq!(counts.of("layer"), 1);
}

/// A panic is a failure, and ends nothing else.
#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure() {
    let panics = tool("panics", async |_, _: NoArguments| -> &str { panic!("this is what the test wants") });
    let server = server([panics.task(TaskSupport::Allowed), tools::hello(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    let task = client.start("panics").await;
    assert_eq!(client.until(&task, "failed").await["error"]["code"], -32603);
    let task = client.start("hello").await;
    client.until(&task, "completed").await;
}

/// A handler that returns its input requests runs again with the responses and its state.
// covers: TK-21
#[tokio::test(start_paused = true)]
async fn requests_can_be_returned() {
    async fn ask(ctx: RequestContext, _: NoArguments) -> Result<RoundResult<CallToolResult>, HandlerError> {
        let round: Option<u32> = ctx.sealed_state().await?;
        let names: Vec<_> = ctx.input_responses().iter().map(|(key, _)| key.to_owned()).collect();
        if round == Some(2) {
            return Ok(RoundResult::Complete(CallToolResult::text(names.concat())));
        }
        let next = round.unwrap_or_default() + 1;
        let form = mcp_server::form::schema_of::<tools::Name>()?;
        let form = mcp_server::types::ElicitRequestFormParams::new("Name?", form);
        let mut result = InputRequiredResult::default();
        result.input_requests = Some([(format!("name{next}"), form.into())].into_iter().collect());
        result.request_state = Some(ctx.seal_state(&next)?);
        Ok(RoundResult::InputRequired(Box::new(result)))
    }
    let server = server([tool("ask", ask).task(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    let task = client.start("ask").await;
    for key in ["name1", "name2"] {
        loop {
            let state = client.until(&task, "input_required").await;
            if state["inputRequests"].get(key).is_some() {
                // Longer than a state may travel.
                sleep(Duration::from_secs(1000)).await;
                client.update(&task, json!({ key: crate::kit::accept(json!({ "name": "x" })) })).await;
                break;
            }
        }
    }
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "name2");
}

/// A request that the client cannot answer is an error of the handler, as in other calls.
#[tokio::test(start_paused = true)]
async fn questions_need_capabilities() {
    let roots = tool("roots", async |ctx: RequestContext, _: NoArguments| {
        let roots = ctx.list_roots("roots").await?;
        Ok::<_, HandlerError>(roots.len().to_string())
    })
    .task(TaskSupport::Allowed);
    let server = server([roots]);
    let extension = json!({ "extensions": { crate::kit::EXTENSION: {} } });
    let mut client = TestClient::new(&server, mcp_server::types::Revision::V2026_07_28, extension);
    let task = client.start("roots").await;
    assert_eq!(client.until(&task, "failed").await["error"]["code"], -32021);
    let mut client = TestClient::modern(&server);
    let task = client.start("roots").await;
    let state = client.until(&task, "input_required").await;
    assert_eq!(state["inputRequests"]["roots"]["method"], "roots/list");
    client.update(&task, json!({ "roots": { "roots": [{ "uri": "file:///a" }] } })).await;
    assert_eq!(text(&client.until(&task, "completed").await["result"]), "1");
}

/// Status messages are written at most once per second, and the last one is.
// covers: TK-33
#[tokio::test(start_paused = true)]
async fn progress_is_the_status_message() {
    let chatty = tool("chatty", async |ctx: RequestContext, _: NoArguments| {
        for number in 0..10_000 {
            ctx.progress(number);
            if number % 1000 == 0 {
                tokio::task::yield_now().await;
            }
        }
        sleep(Duration::from_secs(5)).await;
        Ok::<_, ErrorObject>("done")
    })
    .task(TaskSupport::Allowed);
    let server = server([chatty]);
    let mut client = TestClient::modern(&server);
    let task = client.start("chatty").await;
    sleep(Duration::from_secs(3)).await;
    assert_eq!(client.get(&task).await["statusMessage"], "9999");
    client.until(&task, "completed").await;
}
