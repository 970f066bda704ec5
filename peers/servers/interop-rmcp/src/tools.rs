//! The tools, and asking the client in both eras.

#![expect(deprecated, reason = "what is legacy is to be tested as well")]

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, ElicitRequest, ElicitRequestParams, InputRequest, InputRequests, InputRequiredResult,
    ListRootsRequest, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
    SamplingMessage, Tool, object,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::handler::Handler;

/// The key of the only question in a round.
const QUESTION: &str = "question";

pub(crate) fn list() -> Vec<Tool> {
    let nothing = json!({ "type": "object", "properties": {} });
    let tool = |name, schema: &Value| Tool::new_with_raw(name, None, Arc::new(object(schema.clone())));
    let terms = json!({
        "type": "object",
        "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
        "required": ["a", "b"],
    });
    let sum = json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
    let steps = json!({ "type": "object", "properties": { "steps": { "type": "integer" } }, "required": ["steps"] });
    let others = ["fail", "wait", "ask", "sample", "roots", "log", "touch", "drop"];
    let mut tools = vec![tool("add", &terms).with_raw_output_schema(Arc::new(object(sum))), tool("slow", &steps)];
    tools.extend(others.map(|name| tool(name, &nothing)));
    tools
}

pub(crate) async fn call(
    handler: &Handler,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    match request.name.as_ref() {
        "add" => add(&request),
        "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("as asked")]).into()),
        "slow" => slow(&request, &context).await,
        "wait" => wait(&context).await,
        "ask" => ask(&request, &context).await,
        "sample" => sample(&request, &context).await,
        "roots" => roots(&request, &context).await,
        "log" => log(&context).await,
        "touch" => Ok(text(handler.touch(&context).await.to_string())),
        // `rmcp` does not let tools close their stream.
        "drop" => Ok(text("resumed")),
        _ => Err(ErrorData::invalid_params("no such tool", None)),
    }
}

fn add(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let sum: f64 = ["a", "b"].into_iter().map(|name| argument(request, name, Value::as_f64)).sum::<Result<_, _>>()?;
    let mut result = CallToolResult::structured(json!({ "sum": sum }));
    result.content = vec![ContentBlock::text(sum.to_string())];
    Ok(result.into())
}

async fn slow(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let steps = argument(request, "steps", Value::as_u64)?;
    for step in 1..=steps {
        sleep(Duration::from_millis(20)).await;
        if let Some(token) = context.meta.get_progress_token() {
            let params = ProgressNotificationParam::new(token, step as f64).with_total(steps as f64);
            // Whoever hung up does not want to know.
            let _ = context.peer.notify_progress(params).await;
        }
    }
    Ok(text("done"))
}

#[expect(clippy::print_stderr, reason = "the test looks for it there")]
async fn wait(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let is_cancelled = tokio::select! {
        () = sleep(Duration::from_secs(60)) => false,
        () = context.ct.cancelled() => true,
    };
    if is_cancelled {
        eprintln!("cancelled");
    }
    Ok(text("waited"))
}

async fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "age": { "type": "integer", "default": 30 } },
        "required": ["name"],
    });
    let form = ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Who are you?".to_owned(),
        requested_schema: serde_json::from_value(schema).map_err(internal)?,
    });
    answered(request, context, InputRequest::Elicitation(form), |answer| match answer["action"].as_str() {
        Some("accept") => {
            let age = answer["content"].get("age").map_or_else(|| "missing".to_owned(), Value::to_string);
            format!("accepted {} {age}", answer["content"]["name"].as_str().unwrap_or_default())
        }
        Some("decline") => "declined".to_owned(),
        _ => "cancelled".to_owned(),
    })
    .await
}

async fn sample(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text("Say something.")], 100);
    answered(request, context, InputRequest::CreateMessage(CreateMessageRequest::new(params)), |answer| {
        answer["content"]["text"].as_str().unwrap_or_default().to_owned()
    })
    .await
}

async fn roots(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    answered(request, context, InputRequest::ListRoots(ListRootsRequest::default()), |answer| {
        let roots = answer["roots"].as_array().into_iter().flatten();
        roots.filter_map(|root| root["uri"].as_str()).collect::<Vec<_>>().join(" ")
    })
    .await
}

async fn log(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    // Modern clients ask for messages with each request; `rmcp` leaves that to its user.
    if !is_modern(context) || matches!(context.meta.log_level(), Some(LoggingLevel::Debug | LoggingLevel::Info)) {
        let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!("hello log"));
        context.peer.notify_logging_message(params).await.map_err(internal)?;
    }
    Ok(text("logged"))
}

pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Asks the client, if it has not answered yet: in a round if it is modern, by a request if it is legacy. Returns what
/// `tell` makes of the answer.
async fn answered(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    question: InputRequest,
    tell: impl FnOnce(&Value) -> String,
) -> Result<CallToolResponse, ErrorData> {
    let responses = request.input_responses.as_ref();
    if let Some(answer) = responses.and_then(|responses| responses.get(QUESTION)) {
        return Ok(text(tell(answer)));
    }
    if is_modern(context) {
        let requests = InputRequests::from([(QUESTION.to_owned(), question)]);
        return Ok(InputRequiredResult::from_input_requests(requests).into());
    }
    let answer = send(context, question).await.map_err(internal)?;
    Ok(text(tell(&answer.map_err(internal)?)))
}

/// Sends a request to a legacy client.
#[expect(clippy::wildcard_enum_match_arm, reason = "there may be more, but the tools ask for nothing else")]
async fn send(
    context: &RequestContext<RoleServer>,
    question: InputRequest,
) -> Result<serde_json::Result<Value>, ServiceError> {
    Ok(match question {
        InputRequest::Elicitation(form) => serde_json::to_value(context.peer.create_elicitation(form.params).await?),
        InputRequest::CreateMessage(sampling) => {
            serde_json::to_value(context.peer.create_message(sampling.params).await?)
        }
        _ => serde_json::to_value(context.peer.list_roots().await?),
    })
}

fn argument<T>(
    request: &CallToolRequestParams,
    name: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, ErrorData> {
    let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name)).and_then(read);
    value.ok_or_else(|| ErrorData::invalid_params(format!("the {name} is missing"), None))
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
