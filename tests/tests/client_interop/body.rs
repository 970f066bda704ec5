//! What is checked with every server, whatever the transport and the revision.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mcp_client::types::{
    CallToolResult, LoggingLevel, PromptReference, ReadResourceResult, ResourceContents, Revision,
};
use mcp_client::{CloseReason, Error};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::listening::touch;
use crate::peer::{Refusal, in_era};
use crate::report::{OrSay as _, Outcome, Report, same};
use crate::scene::Scene;
use crate::server::Via;

/// Everything that a server offers, once, and the end.
pub(crate) async fn body(scene: &Scene, report: &mut Report) {
    report.check(scene, "server", server(scene)).await;
    report.check(scene, "tools", tools(scene)).await;
    report.check(scene, "add", add(scene)).await;
    report.check(scene, "fail", fail(scene)).await;
    report.check(scene, "unknown tool", unknown_tool(scene)).await;
    report.check(scene, "slow", slow(scene)).await;
    report.check(scene, "wait", wait(scene)).await;
    report.check(scene, "timeout", timed_out(scene)).await;
    report.check(scene, "add after wait", add(scene)).await;
    report.check(scene, "many", many(scene)).await;
    report.check(scene, "resources", resources(scene)).await;
    report.check(scene, "unknown resource", unknown_resource(scene)).await;
    report.check(scene, "prompts", prompts(scene)).await;
    report.check(scene, "completion", completion(scene)).await;
    report.check(scene, "log", log(scene)).await;
    // What some servers ask on the stream of the session is lost before that is open; this waits until it is.
    report.check(scene, "touch", touch(scene)).await;
    report.check(scene, "ask", ask(scene)).await;
    report.check(scene, "sample", sample(scene)).await;
    report.check(scene, "roots", roots(scene)).await;
    report.check(scene, "drop", drop_stream(scene)).await;
    report.check(scene, "ping", ping(scene)).await;
    report.check(scene, "close", close(scene)).await;
}

/// Calls a tool without arguments that succeeds; returns its text.
pub(crate) async fn call(scene: &Scene, tool: &str) -> Outcome<String> {
    let result = scene.client.call_tool(tool).arguments(&json!({})).await.or_say(tool)?;
    same(result.is_error.unwrap_or(false), false).or_say(&text(&result))?;
    Ok(text(&result))
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|content| content.as_text()).collect()
}

async fn server(scene: &Scene) -> Outcome {
    let facts = scene.client.server();
    same(facts.info.or_say("no info")?.name.as_str(), "interop")?;
    let offers = facts.capabilities.or_say("no capabilities")?;
    same(offers.tools.is_some() && offers.prompts.is_some() && offers.resources.is_some(), true)?;
    let detected = scene.client.detected_revision().or_say("no detected revision")?;
    same(detected.revision, scene.revision)?;
    // Sessions are for legacy clients over Streamable HTTP alone.
    same(scene.client.session_id().is_some(), scene.has_session())
}

async fn tools(scene: &Scene) -> Outcome {
    let tools = scene.client.tools().all().await.or_say("list")?;
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    same(names, vec!["add", "ask", "drop", "fail", "log", "roots", "sample", "slow", "touch", "wait"])?;
    let add = tools.iter().find(|tool| tool.name == "add").or_say("no add")?;
    // Our own server does not tell older clients what their revision does not have.
    if scene.revision >= Revision::V2025_06_18 {
        same(add.output_schema.is_some(), true)?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Sum {
    sum: f64,
}

async fn add(scene: &Scene) -> Outcome {
    let arguments = json!({ "a": 2, "b": 3 });
    let result = scene.client.call_tool("add").arguments(&arguments).await.or_say("call")?;
    same(text(&result).parse::<f64>().or_say("text")?, 5.0)?;
    if scene.revision >= Revision::V2025_06_18 {
        let Sum { sum } =
            scene.client.call_tool("add").arguments(&arguments).structured().await.or_say("structured")?;
        same(sum, 5.0)?;
    }
    Ok(())
}

async fn fail(scene: &Scene) -> Outcome {
    let result = scene.client.call_tool("fail").arguments(&json!({})).await.or_say("call")?;
    same((text(&result).as_str(), result.is_error), ("as asked", Some(true)))?;
    match scene.client.call_tool("fail").arguments(&json!({})).structured::<Sum>().await {
        Err(Error::ToolFailed(why)) => same(why.as_str(), "as asked"),
        Err(error) => Err(format!("structured: {error}")),
        Ok(_) => Err("it did not fail".to_owned()),
    }
}

async fn unknown_tool(scene: &Scene) -> Outcome {
    let result = scene.client.call_tool("no-such-tool").arguments(&json!({})).await;
    let refused = result.map(|result| result.is_error == Some(true));
    refuses(refused, in_era(scene.peer.unknown_tool, scene.revision))
}

/// Whether the server refused like that; a result says by itself whether it is an error.
fn refuses(result: Result<bool, Error>, wanted: Refusal) -> Outcome {
    match (result, wanted) {
        (Ok(is_error), Refusal::IsError) => same(is_error, true),
        (Err(Error::Rejected(error)), Refusal::Code(code)) => same(error.code.get(), code),
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), _) => Err("no error".to_owned()),
    }
}

async fn slow(scene: &Scene) -> Outcome {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let call = scene.client.call_tool("slow").arguments(&json!({ "steps": 3 })).on_progress(move |progress| {
        seen.lock()
            .expect("nobody panics")
            .push((progress.progress.as_f64(), progress.total.map(|total| total.as_f64())));
    });
    let result = call.await.or_say("call")?;
    same(text(&result).as_str(), "done")?;
    let steps = steps.lock().expect("nobody panics").clone();
    same(steps, [1.0, 2.0, 3.0].map(|step| (step, Some(3.0))).to_vec())
}

/// A call whose future is dropped is cancelled at the server, too.
async fn wait(scene: &Scene) -> Outcome {
    given_up(scene, async |patience| {
        let call = scene.client.call_tool("wait").arguments(&json!({}));
        match timeout(patience, call.into_future()).await {
            Err(_) => Ok(()),
            Ok(ended) => Err(format!("it ended by itself: {ended:?}")),
        }
    })
    .await
}

/// So is one that takes too long.
async fn timed_out(scene: &Scene) -> Outcome {
    given_up(scene, async |patience| {
        match scene.client.call_tool("wait").arguments(&json!({})).idle_timeout(patience).await {
            Err(Error::TimedOut) => Ok(()),
            ended => Err(format!("{ended:?}")),
        }
    })
    .await
}

/// Makes a call that is given up after a while; the server hears of it.
async fn given_up(scene: &Scene, call: impl AsyncFn(Duration) -> Outcome) -> Outcome {
    let before = scene.complaints.cancelled();
    // A call may be given up before the server has begun with it, and then it may never do so.
    for patience in [100, 300, 1000, 3000] {
        call(Duration::from_millis(patience)).await?;
        for _ in 0..200 {
            if scene.complaints.cancelled() > before {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
    Err(format!("the server was not told: {:?}", scene.complaints.all()))
}

/// Answers find their calls, however many are open.
async fn many(scene: &Scene) -> Outcome {
    let calls = (0..32).map(|number| async move {
        let result = scene.client.call_tool("add").arguments(&json!({ "a": number, "b": 0.5 })).await.or_say("call")?;
        same(text(&result).parse::<f64>().or_say("text")?, f64::from(number) + 0.5)
    });
    join_all(calls).await.into_iter().collect()
}

async fn resources(scene: &Scene) -> Outcome {
    let resources = scene.client.resources().all().await.or_say("list")?;
    let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
    same(uris, vec!["test://hello", "test://counter"])?;
    let templates = scene.client.resource_templates().all().await.or_say("templates")?;
    let templates: Vec<&str> = templates.iter().map(|template| template.uri_template.as_str()).collect();
    same(templates, vec!["test://echo/{text}"])?;
    same(read(scene, "test://hello").await?.as_str(), "hello")?;
    same(read(scene, "test://echo/a%20b").await?.as_str(), "a b")
}

/// Reads a resource that is a text.
pub(crate) async fn read(scene: &Scene, uri: &str) -> Outcome<String> {
    let ReadResourceResult { contents, .. } = scene.client.read_resource(uri).skip_cache().await.or_say(uri)?;
    match &contents[..] {
        [ResourceContents::Text(contents)] => Ok(contents.text.clone()),
        _ => Err(format!("{contents:?}")),
    }
}

async fn unknown_resource(scene: &Scene) -> Outcome {
    let result = scene.client.read_resource("test://no/such/resource").await;
    refuses(result.map(|_| false), in_era(scene.peer.unknown_resource, scene.revision))
}

async fn prompts(scene: &Scene) -> Outcome {
    let first = scene.client.list_prompts(None).await.or_say("first page")?;
    same((first.prompts.len(), first.next_cursor.is_some()), (2, true))?;
    let second = scene.client.list_prompts(first.next_cursor).await.or_say("second page")?;
    same((second.prompts.len(), second.next_cursor), (1, None))?;
    let prompts = scene.client.prompts().all().await.or_say("list")?;
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    same(names, vec!["greet", "plain", "third"])?;
    let greeting = scene.client.get_prompt("greet").argument("name", "Ann").await.or_say("greet")?;
    same(greeting.messages.first().and_then(|message| message.content.as_text()), Some("Hello, Ann!"))?;
    let plain = scene.client.get_prompt("plain").await.or_say("plain")?;
    same(plain.messages.first().and_then(|message| message.content.as_text()), Some("plain"))
}

async fn completion(scene: &Scene) -> Outcome {
    let completing = scene.client.complete(PromptReference::new("greet"), "name", "al").await;
    same(completing.or_say("complete")?.completion.values, vec!["alice".to_owned(), "albert".to_owned()])
}

async fn log(scene: &Scene) -> Outcome {
    scene.client.set_log_level(LoggingLevel::Info).await.or_say("level")?;
    same(call(scene, "log").await?.as_str(), "logged")?;
    // Over HTTP+SSE and pipes the message came first; elsewhere it may take another way.
    while scene.heard.logs().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    same(scene.heard.logs(), vec!["\"hello log\"".to_owned()])
}

/// What the user leaves out is filled in with its default.
async fn ask(scene: &Scene) -> Outcome {
    if scene.revision < Revision::V2025_06_18 {
        // There was no elicitation yet: it was not declared, and a server that asks anyway gets an error.
        return match scene.client.call_tool("ask").arguments(&json!({})).await {
            Ok(result) => same(result.is_error, Some(true)).or_say(&text(&result)),
            Err(Error::Rejected(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
    }
    same(call(scene, "ask").await?.as_str(), "accepted Ann 30")?;
    scene.heard.declines.store(true, Ordering::Relaxed);
    same(call(scene, "ask").await?.as_str(), "declined")
}

async fn sample(scene: &Scene) -> Outcome {
    same(call(scene, "sample").await?.as_str(), "sampled")
}

async fn roots(scene: &Scene) -> Outcome {
    same(call(scene, "roots").await?.as_str(), "file:///one file:///two")
}

/// The stream of a call is come back to, and the result comes after all.
async fn drop_stream(scene: &Scene) -> Outcome {
    let before = scene.requests.count();
    same(call(scene, "drop").await?.as_str(), "resumed")?;
    if scene.via == Via::Stdio {
        return Ok(());
    }
    let is_dropped = scene.has_session() && scene.peer.can_drop && scene.revision >= Revision::V2025_11_25;
    same(scene.requests.count() - before, if is_dropped { 2 } else { 1 })
}

async fn ping(scene: &Scene) -> Outcome {
    match (scene.client.ping().await, scene.is_modern()) {
        (Ok(_), false) | (Err(Error::Command(_)), true) => Ok(()),
        (answer, _) => Err(format!("{answer:?}")),
    }
}

async fn close(scene: &Scene) -> Outcome {
    let before = scene.requests.count();
    same(scene.client.close().await, CloseReason::ByClient)?;
    match scene.client.call_tool("add").arguments(&json!({})).await {
        Err(Error::Closed(CloseReason::ByClient)) => {}
        answer => return Err(format!("{answer:?}")),
    }
    if scene.via != Via::Stdio {
        // S4.59: the session is ended by a DELETE.
        return same(scene.requests.count() - before, usize::from(scene.has_session()));
    }
    let process = scene.complaints.processes().pop().or_say("there was no process")?;
    let lives = Command::new("kill").args(["-0", &process]).output().await.or_say("kill")?;
    same(lives.status.success(), false)
}
