//! A server whose handlers ask in every way that there is, and tell what they got to know.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join3;
use mcp_server::mrtr::{Key, KeyRing, MemoryReplayGuard};
use mcp_server::{
    ElicitContent, HandlerError, NoArguments, RequestContext, RoundResult, Server, prompt, resource, tool,
};
use mcp_types::{
    CallToolResult, CreateMessageRequestParams, ElicitRequestFormParams, ElicitRequestUrlParams, ElicitResult,
    InputRequest, InputRequiredResult, ListRootsRequest, ListRootsResult, RequestedSchema, SamplingContent,
    SamplingMessage,
};
use serde_json::{from_value, json};

/// What the handlers leave behind for whoever watches them, and what they look at.
#[derive(Clone, Default)]
pub(super) struct Watch {
    /// Steps that were taken, each with the id of its request.
    steps: Arc<Mutex<Vec<(String, &'static str)>>>,
    /// Whether the handler that changes its mind asks the other question.
    pub(super) other: Arc<AtomicBool>,
}

impl Watch {
    pub(super) fn take(&self) -> Vec<(String, &'static str)> {
        std::mem::take(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn step(&self, ctx: &RequestContext, name: &'static str) -> Result<String, HandlerError> {
        let taken = async || {
            let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.push((ctx.id().to_string(), name));
            Ok::<_, HandlerError>(name.to_owned())
        };
        ctx.once(name, taken).await
    }
}

/// A form with something to get wrong: a text of one to five letters, a whole number up to 150 that is 7 if it is left
/// out, and a choice that may be left out.
fn form(message: &str) -> ElicitRequestFormParams {
    let fields = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 5 },
            "age": { "type": "integer", "minimum": 0, "maximum": 150, "default": 7 },
            "sure": { "type": "boolean" },
        },
        "required": ["name"],
    });
    ElicitRequestFormParams::new(message, from_value::<RequestedSchema>(fields).expect("a form"))
}

fn message() -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user(SamplingContent::text("hi"))], 5)
}

async fn fill_in(ctx: &RequestContext, key: &str, question: &str) -> Result<ElicitContent, HandlerError> {
    Ok(ctx.elicit_form(key, form(question)).await?.accepted()?)
}

pub(super) fn server(watch: &Watch, with_replay_guard: bool) -> Server {
    let ring = KeyRing::new(Key::new(1, [7; 32]));
    let (pair, order, change) = (watch.clone(), watch.clone(), watch.clone());
    let server = Server::builder("rounds", "1.0")
        .key_ring(ring)
        .tool(tool("form", async |ctx: RequestContext, _: NoArguments| {
            Ok::<_, HandlerError>(json!({ "form": fill_in(&ctx, "form", "Who?").await? }).to_string())
        }))
        .tool(tool("url", async |ctx: RequestContext, _: NoArguments| {
            let mut page = ElicitRequestUrlParams::new("Pay", "https://example.org/pay");
            page.elicitation_id = Some("1".to_owned());
            ctx.elicit_url("url", page).await?.accepted()?;
            Ok::<_, HandlerError>(json!({ "url": true }).to_string())
        }))
        .tool(tool("sample", async |ctx: RequestContext, _: NoArguments| {
            Ok::<_, HandlerError>(json!({ "text": ctx.sample("text", message()).await? }).to_string())
        }))
        .tool(tool("roots", async |ctx: RequestContext, _: NoArguments| {
            Ok::<_, HandlerError>(json!({ "roots": ctx.list_roots("roots").await? }).to_string())
        }))
        .tool(tool("pair", move |ctx: RequestContext, _: NoArguments| two_at_once(pair.clone(), ctx)))
        .tool(tool("order", move |ctx: RequestContext, _: NoArguments| one_by_one(order.clone(), ctx)))
        .tool(tool("explicit", async |ctx: RequestContext, _: NoArguments| explicit(&ctx)))
        .tool(tool("change", move |ctx: RequestContext, _: NoArguments| changed(change.clone(), ctx)))
        .prompt(prompt("form", async |ctx: RequestContext, _: NoArguments| {
            Ok::<_, HandlerError>(json!({ "form": fill_in(&ctx, "form", "Who?").await? }).to_string())
        }))
        .resource(resource("a:b", "form", async |ctx: RequestContext| {
            Ok::<_, HandlerError>(json!({ "form": fill_in(&ctx, "form", "Who?").await? }).to_string())
        }));
    let server = if with_replay_guard { server.replay_guard(MemoryReplayGuard::new(1000)) } else { server };
    server.build().expect("a server")
}

/// Two questions and a step in the same moment, and one more question after that.
async fn two_at_once(watch: Watch, ctx: RequestContext) -> Result<String, HandlerError> {
    let asked = (fill_in(&ctx, "form", "Who?"), ctx.sample("text", message()), watch.step(&ctx, "beside"));
    let (form, text, _) = join3(asked.0, asked.1, asked.2).await;
    let (form, text) = (form?, text?);
    let roots = ctx.list_roots("roots").await?;
    watch.step(&ctx, "after").await?;
    Ok(json!({ "form": form, "text": text, "roots": roots }).to_string())
}

/// Three questions one after the other, of which the second depends on the answer to the first, with steps between.
async fn one_by_one(watch: Watch, ctx: RequestContext) -> Result<String, HandlerError> {
    let first = fill_in(&ctx, "first", "Who?").await?;
    let one = watch.step(&ctx, "one").await?;
    let name = serde_json::to_string(&first)?;
    let second = fill_in(&ctx, "second", &format!("Who after {name}?")).await?;
    let two = watch.step(&ctx, "two").await?;
    let third = fill_in(&ctx, "third", "And then?").await?;
    assert_eq!((&*one, &*two), ("one", "two"), "a step has its own result in every round");
    Ok(json!({ "first": first, "second": second, "third": third }).to_string())
}

/// Returns its questions, and looks at the answers itself.
fn explicit(ctx: &RequestContext) -> Result<RoundResult<CallToolResult>, HandlerError> {
    let (page, roots) = (ctx.input_response_as::<ElicitResult>("url")?, ctx.input_response_as("roots")?);
    let (Some(page), Some::<ListRootsResult>(roots)) = (page, roots) else {
        let mut question = ElicitRequestUrlParams::new("Pay", "https://example.org/pay");
        question.elicitation_id = Some("1".to_owned());
        let asked: [(&str, InputRequest); 2] =
            [("url", question.into()), ("roots", ListRootsRequest::default().into())];
        return Ok(InputRequiredResult::default().input_requests(asked).request_state("explicit").into());
    };
    let report = json!({ "url": page.action.as_str() == "accept", "roots": roots.roots });
    Ok(RoundResult::Complete(CallToolResult::text(report.to_string())))
}

/// Asks one of two questions under the same key.
async fn changed(watch: Watch, ctx: RequestContext) -> Result<String, HandlerError> {
    let which = if watch.other.load(Ordering::Relaxed) { "Delete all?" } else { "Delete one?" };
    Ok(json!({ "form": fill_in(&ctx, "form", which).await?, "asked": which }).to_string())
}
