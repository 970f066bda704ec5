//! Tools and a prompt that ask the client by their result, as the modern era does it.
//!
//! A handler runs once for each round: it looks at the answers that the request brings, and asks for what is missing.

use mcp_server::types::{
    CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitRequestFormParams, ElicitResult, ErrorObject,
    InputRequest, InputRequests, InputRequiredResult, ListRootsRequest, ListRootsResult, SamplingMessage,
};
use mcp_server::{
    AskError, ClientCapability, Elicited, HandlerError, NoArguments, Outcome, RequestContext, ServerBuilder, form,
    prompt, tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::asking::text_of;
use crate::seal::{seal, unseal};

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    let name = |what: &str| format!("test_input_required_result_{what}");
    server
        .tool(tool(name("elicitation"), elicitation).description("Asks for a name"))
        .tool(tool(name("sampling"), sampling).description("Asks the model of the client"))
        .tool(tool(name("list_roots"), list_roots).description("Asks for the roots of the client"))
        .tool(tool(name("request_state"), request_state).description("Asks, and has the client keep a state"))
        .tool(tool(name("multiple_inputs"), multiple_inputs).description("Asks three things at once"))
        .tool(tool(name("multi_round"), multi_round).description("Asks twice, one after the other"))
        .tool(tool(name("tampered_state"), tampered_state).description("Refuses a state that was changed"))
        .tool(tool(name("capabilities"), capabilities).description("Asks only what the client can answer"))
        .tool(tool("test_streaming_elicitation", elicitation).description("Asks without a request of its own"))
        .prompt(prompt(name("prompt"), prompt_with_context).description("Asks for what it is about"))
}

/// The text of a tool, or questions. Everything that goes wrong is the client's to know.
type Round = Result<Outcome<String>, HandlerError>;

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    /// Your favorite color
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to go on
    ok: bool,
}

async fn elicitation(ctx: RequestContext, _: NoArguments) -> Round {
    match elicited(&ctx, "user_name")? {
        None => ask([("user_name", form_of::<Name>(&ctx, "What is your name?")?)]),
        Some(Elicited::Accepted(Name { name })) => text(format!("Hello, {name}!")),
        Some(Elicited::Declined | Elicited::Cancelled) => text("Hello, whoever you are!"),
    }
}

async fn sampling(ctx: RequestContext, _: NoArguments) -> Round {
    match answer::<CreateMessageResult>(&ctx, "capital")? {
        None => ask([("capital", model(&ctx, "What is the capital of France?")?)]),
        Some(answer) => text(format!("LLM response: {}", text_of(&answer))),
    }
}

async fn list_roots(ctx: RequestContext, _: NoArguments) -> Round {
    match answer::<ListRootsResult>(&ctx, "client_roots")? {
        None => ask([("client_roots", roots(&ctx)?)]),
        Some(answer) => text(format!("Client roots: {}", uris(&answer))),
    }
}

async fn request_state(ctx: RequestContext, _: NoArguments) -> Round {
    let state = unseal(&ctx, "request_state")?;
    match (state, elicited(&ctx, "confirm")?) {
        (Some(state), Some(answer)) => text(format!("{state}: {}", confirmed(&answer))),
        _ => {
            let question = form_of::<Confirmation>(&ctx, "Please confirm")?;
            ask_and_keep([("confirm", question)], seal(&ctx, "request_state", "state-ok"))
        }
    }
}

async fn multiple_inputs(ctx: RequestContext, _: NoArguments) -> Round {
    let state = unseal(&ctx, "multiple_inputs")?;
    let answers = (
        elicited::<Name>(&ctx, "user_name")?,
        answer::<CreateMessageResult>(&ctx, "greeting")?,
        answer::<ListRootsResult>(&ctx, "client_roots")?,
    );
    if let (Some(_), (Some(user), Some(greeting), Some(roots))) = (state, answers) {
        let name = user.accepted().map_or_else(|why| why.to_string(), |user| user.name);
        return text(format!("{name}; {}; {}", text_of(&greeting), uris(&roots)));
    }
    let questions = [
        ("user_name", form_of::<Name>(&ctx, "What is your name?")?),
        ("greeting", model(&ctx, "Generate a greeting")?),
        ("client_roots", roots(&ctx)?),
    ];
    ask_and_keep(questions, seal(&ctx, "multiple_inputs", "asked"))
}

/// The state carries the first answer to the last round.
async fn multi_round(ctx: RequestContext, _: NoArguments) -> Round {
    const PURPOSE: &str = "multi_round";
    let state = unseal(&ctx, PURPOSE)?;
    if let (Some(name), Some(color)) =
        (state.and_then(|state| state.strip_prefix("round-2 ")), elicited::<Color>(&ctx, "step2")?)
    {
        let color = color.accepted().map_or_else(|why| why.to_string(), |answer| answer.color);
        return text(format!("{name}; {color}"));
    }
    if let (Some("round-1"), Some(name)) = (state, elicited::<Name>(&ctx, "step1")?) {
        let name = name.accepted().map_or_else(|why| why.to_string(), |answer| answer.name);
        let question = form_of::<Color>(&ctx, "Step 2: What is your favorite color?")?;
        return ask_and_keep([("step2", question)], seal(&ctx, PURPOSE, &format!("round-2 {name}")));
    }
    let question = form_of::<Name>(&ctx, "Step 1: What is your name?")?;
    ask_and_keep([("step1", question)], seal(&ctx, PURPOSE, "round-1"))
}

async fn tampered_state(ctx: RequestContext, _: NoArguments) -> Round {
    let state = unseal(&ctx, "tampered_state")?;
    match (state, elicited(&ctx, "confirm")?) {
        (Some(_), Some(answer)) => text(confirmed(&answer)),
        _ => {
            let question = form_of::<Confirmation>(&ctx, "Please confirm")?;
            ask_and_keep([("confirm", question)], seal(&ctx, "tampered_state", "asked"))
        }
    }
}

async fn capabilities(ctx: RequestContext, _: NoArguments) -> Round {
    if !ctx.input_responses().is_empty() {
        let keys: Vec<&str> = ctx.input_responses().iter().map(|(key, _)| key).collect();
        return text(format!("Answered: {}", keys.join(", ")));
    }
    let questions = [
        ("user_name", form_of::<Name>(&ctx, "What is your name?")),
        ("greeting", model(&ctx, "Generate a greeting")),
        ("client_roots", roots(&ctx)),
    ];
    let possible: InputRequests =
        questions.into_iter().filter_map(|(key, question)| Some((key, question.ok()?))).collect();
    if possible.is_empty() { text("The client cannot be asked anything.") } else { ask(possible) }
}

async fn prompt_with_context(ctx: RequestContext, _: NoArguments) -> Round {
    #[derive(Deserialize, JsonSchema)]
    struct About {
        /// What the prompt is about
        context: String,
    }
    match elicited(&ctx, "user_context")? {
        None => ask([("user_context", form_of::<About>(&ctx, "What context should the prompt use?")?)]),
        Some(Elicited::Accepted(About { context })) => text(format!("Use this context: {context}")),
        Some(Elicited::Declined | Elicited::Cancelled) => text("Use no context."),
    }
}

fn text(text: impl Into<String>) -> Round {
    Ok(Outcome::Complete(text.into()))
}

fn ask(questions: impl Into<InputRequests>) -> Round {
    Ok(InputRequiredResult::default().input_requests(questions).into())
}

fn ask_and_keep(questions: impl Into<InputRequests>, state: String) -> Round {
    Ok(InputRequiredResult::default().input_requests(questions).request_state(state).into())
}

/// A question to the user; fails if the client cannot pass it on.
fn form_of<T: JsonSchema + DeserializeOwned>(ctx: &RequestContext, message: &str) -> Result<InputRequest, AskError> {
    ctx.require(ClientCapability::ElicitationForm)?;
    let schema = form::schema_of::<T>().map_err(|fault| AskError::InvalidQuestion(fault.to_string()))?;
    Ok(ElicitRequestFormParams::new(message, schema).into())
}

/// A question to the model of the client; fails if there is none.
fn model(ctx: &RequestContext, message: &str) -> Result<InputRequest, AskError> {
    ctx.require(ClientCapability::Sampling)?;
    Ok(CreateMessageRequestParams::new(vec![SamplingMessage::user(message)], 50).into())
}

/// A question for the roots of the client; fails if it has none.
fn roots(ctx: &RequestContext) -> Result<InputRequest, AskError> {
    ctx.require(ClientCapability::Roots)?;
    Ok(ListRootsRequest::default().into())
}

/// The answer of the round before, if there is one.
fn answer<T: DeserializeOwned>(ctx: &RequestContext, key: &str) -> Result<Option<T>, ErrorObject> {
    ctx.input_response_as(key).map_err(|fault| invalid(key, &fault))
}

/// What the user made of the form of the round before, if there was one.
fn elicited<T: JsonSchema + DeserializeOwned>(
    ctx: &RequestContext,
    key: &str,
) -> Result<Option<Elicited<T>>, ErrorObject> {
    let Some(ElicitResult { action, content, .. }) = answer(ctx, key)? else { return Ok(None) };
    Ok(Some(match action {
        ElicitAction::Decline => Elicited::Declined,
        ElicitAction::Cancel => Elicited::Cancelled,
        ElicitAction::Accept => {
            let schema = form::schema_of::<T>().map_err(|fault| ErrorObject::internal_error(fault.to_string()))?;
            let content = form::decode(&schema, content.unwrap_or_default());
            Elicited::Accepted(content.map_err(|fault| invalid(key, &fault))?)
        }
    }))
}

fn invalid(key: &str, fault: &dyn std::fmt::Display) -> ErrorObject {
    ErrorObject::invalid_params(format!("`inputResponses.{key}`: {fault}"))
}

fn confirmed(answer: &Elicited<Confirmation>) -> &'static str {
    if matches!(answer, Elicited::Accepted(Confirmation { ok: true })) { "confirmed" } else { "not confirmed" }
}

fn uris(roots: &ListRootsResult) -> String {
    roots.roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" ")
}
