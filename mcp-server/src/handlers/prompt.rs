//! Prompts.

use std::future::ready;
use std::sync::Arc;

use mcp_types::{
    ErrorObject, GetPromptResult, InputRequiredResult, OrderedMap, PromptArgument, PromptMessage, RawObject,
};
use serde::Deserialize;

use crate::auth::required_scopes::{RequiredScopes, scope_setters};
use crate::handlers::completion::{Completer, Completers};
use crate::handlers::definition::definition_setters;
use crate::handlers::error::{BoxError, HandlerError, unsupported};
use crate::handlers::error_text;
use crate::handlers::extract::{HandlerFunction, PromptKind, Refusal, Requirements, Signature};
use crate::handlers::function::{Arguments, ContextFunction};
use crate::handlers::schema::{self, ArgumentsSchema};
use crate::handlers::text_values;
use crate::handlers::tool_result::RoundResult;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;
use crate::visibility::predicate::{Predicate, visibility_setters};

/// A prompt; created by [`prompt`] or [`Prompt::from_raw`].
#[derive(Clone)]
#[must_use = "a prompt that is not added to a server does nothing"]
pub struct Prompt {
    pub(crate) definition: mcp_types::Prompt,
    pub(crate) handler: Handler,
    pub(crate) completers: Completers,
    pub(crate) fault: Option<String>,
    pub(crate) visible: Option<Predicate>,
    pub(crate) scopes: RequiredScopes,
    /// The arguments that must be there before the handler, and middleware around it, is called.
    pub(crate) required: Vec<String>,
    pub(crate) requirements: Requirements,
}

pub(crate) type Handler = Arc<dyn Fn(RequestContext, &OrderedMap<String>) -> ResponseFuture + Send + Sync>;

/// The types that a handler of a prompt can return: messages, one message, text as a message of the user, a [`RoundResult`] of
/// these for handlers that may request input, or a `Result` of these.
///
/// The error of a `Result` is any error type, as with tools ([`IntoToolResult`](crate::IntoToolResult)). It becomes an internal
/// error unless a protocol error is found in it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a prompt",
    note = "return text, a `PromptMessage` or several, a `GetPromptResult`, or a `Result` of one of these",
    note = "the error of a `Result` is text, or a type that implements `std::error::Error + Send + Sync`"
)]
pub trait IntoPromptResult {
    /// Returns why a handler with this result cannot be registered, if there is a reason.
    #[doc(hidden)]
    #[must_use]
    fn registration_fault() -> Option<&'static str> {
        None
    }

    /// Converts the value into the result of `prompts/get`.
    ///
    /// # Errors
    ///
    /// Returns the error of the handler.
    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError>;
}

impl IntoPromptResult for GetPromptResult {
    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        Ok(RoundResult::Complete(self))
    }
}

impl IntoPromptResult for InputRequiredResult {
    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        Ok(RoundResult::InputRequired(Box::new(self)))
    }
}

impl<T: IntoPromptResult> IntoPromptResult for RoundResult<T> {
    fn registration_fault() -> Option<&'static str> {
        T::registration_fault()
    }

    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        match self {
            Self::Complete(value) => value.into_prompt_result(),
            Self::InputRequired(input) => Ok(RoundResult::InputRequired(input)),
        }
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        GetPromptResult::new(self).into_prompt_result()
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        vec![self].into_prompt_result()
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl IntoPromptResult for &'static str {
    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl<T: IntoPromptResult, E: Into<BoxError> + 'static> IntoPromptResult for Result<T, E> {
    fn registration_fault() -> Option<&'static str> {
        unsupported::<E>().or_else(T::registration_fault)
    }

    fn into_prompt_result(self) -> Result<RoundResult<GetPromptResult>, HandlerError> {
        self.map_err(HandlerError::new)?.into_prompt_result()
    }
}

/// Creates a prompt from an async function. Its arguments are the members of `A`. The protocol sends them as text; numbers,
/// booleans and unit enums are parsed. Clients get suggestions for enums. The doc comment of `A` describes the prompt, unless
/// [`description`](Prompt::description) does.
///
/// # Examples
///
/// ```
/// use mcp_server::prompt;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// The programming language of the code
///     language: String,
/// }
///
/// let review = prompt("review", async |_, Review { language }| format!("Review this {language} code."));
/// let review = review.description("Asks for a code review");
/// ```
// PR-2
pub fn prompt<A, F, Fut, R>(name: impl Into<String>, handler: F) -> Prompt
where
    A: Arguments,
    F: ContextFunction<A, Fut, R>,
    Fut: Send + 'static,
    R: IntoPromptResult + 'static,
{
    let handler = Arc::new(move |ctx: RequestContext, arguments: &OrderedMap<String>| -> ResponseFuture {
        match text_values::decode(arguments.iter().map(|(name, value)| (name, value.as_str()))) {
            Ok(arguments) => finished(handler.start(ctx.clone(), arguments), ctx),
            // PR-5
            Err(fault) => Box::pin(ready(Err(invalid_arguments(&fault)))),
        }
    });
    Prompt::typed::<R>(name, schema::of_arguments::<A>(), handler)
}

/// Creates a prompt from an async function whose parameters are, in any order and number up to eight, a struct of arguments
/// and values that are taken from the request; see [`tool_fn`](crate::tool_fn).
///
/// # Examples
///
/// ```
/// use mcp_server::extract::State;
/// use mcp_server::prompt_fn;
///
/// struct Style(String);
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review { language: String }
///
/// async fn review(Review { language }: Review, State(style): State<Style>) -> String {
///     format!("Review this {language} code by {}.", style.0)
/// }
///
/// let review = prompt_fn("review", review).description("Asks for a code review");
/// ```
pub fn prompt_fn<Params, F>(name: impl Into<String>, function: F) -> Prompt
where
    F: HandlerFunction<PromptKind, Params>,
    F::Output: IntoPromptResult + 'static,
{
    let mut signature = Signature::of::<PromptKind, Params, F>();
    let function = Arc::new(function);
    let handler = Arc::new(move |ctx: RequestContext, arguments: &OrderedMap<String>| -> ResponseFuture {
        let made = F::call(Arc::clone(&function), ctx.clone(), arguments.clone());
        Box::pin(async move {
            match made.await {
                Ok(value) => respond(&ctx, value),
                Err(Refusal::Arguments(fault)) => Err(invalid_arguments(&fault)),
                Err(Refusal::Failed(error)) => Err(error_text::of_handler(&ctx, &error)),
            }
        })
    });
    let mut prompt = Prompt::typed::<F::Output>(name, signature.schema(), handler);
    prompt.fault = prompt.fault.or(signature.fault);
    prompt.requirements = signature.requirements;
    prompt
}

fn invalid_arguments(fault: &dyn std::fmt::Display) -> ErrorObject {
    ErrorObject::invalid_params(format!("invalid arguments: {fault}"))
}

fn finished<R: IntoPromptResult>(
    made: impl Future<Output = R> + Send + 'static,
    ctx: RequestContext,
) -> ResponseFuture {
    Box::pin(async move { respond(&ctx, made.await) })
}

/// Converts what a handler returned into the response.
fn respond<R: IntoPromptResult>(ctx: &RequestContext, returned: R) -> Result<Response, ErrorObject> {
    let outcome = returned.into_prompt_result().map_err(|error| error_text::of_handler(ctx, &error))?;
    Ok(Response::of(outcome, Response::Prompt))
}

/// The arguments of a prompt: the members of a struct in its order, in which user interfaces show them.
fn arguments_of(schema: &RawObject) -> Result<Vec<PromptArgument>, String> {
    #[derive(Deserialize)]
    struct Shape {
        #[serde(default)]
        properties: OrderedMap<Member>,
        #[serde(default)]
        required: Vec<String>,
        #[serde(rename = "type")]
        kind: Option<String>,
    }
    #[derive(Deserialize)]
    struct Member {
        title: Option<String>,
        description: Option<String>,
    }
    let shape: Shape = schema.decode().map_err(|error| error.to_string())?;
    if shape.kind.as_deref() != Some("object") {
        return Err("the arguments of a prompt must be a struct; use `NoArguments` for none".to_owned());
    }
    let argument = |(name, member): (&str, &Member)| {
        let mut argument = PromptArgument::new(name);
        argument.title.clone_from(&member.title);
        argument.description.clone_from(&member.description);
        argument.required = Some(shape.required.iter().any(|required| required == name));
        argument
    };
    Ok(shape.properties.iter().map(argument).collect())
}

impl Prompt {
    /// A prompt whose arguments follow from a type.
    fn typed<R: IntoPromptResult>(
        name: impl Into<String>,
        schema: Result<ArgumentsSchema, serde_json::Error>,
        handler: Handler,
    ) -> Self {
        let mut definition = mcp_types::Prompt::new(name);
        let schema = schema.map_err(|error| error.to_string());
        let mut choices = Vec::new();
        let arguments = schema.and_then(|ArgumentsSchema { schema, description, .. }| {
            definition.description = description;
            choices = schema::choices(&schema);
            arguments_of(&schema)
        });
        let fault = arguments.as_ref().err().cloned();
        let fault = fault.or_else(|| R::registration_fault().map(str::to_owned));
        let mut completers = Completers::default();
        for (argument, choices) in choices {
            completers.insert_choices(&argument, choices);
        }
        let arguments = arguments.unwrap_or_default();
        let required = arguments.iter().filter(|argument| argument.required == Some(true));
        let required = required.map(|argument| argument.name.clone()).collect();
        definition.arguments = (!arguments.is_empty()).then_some(arguments);
        let requirements = Requirements::default();
        Self {
            definition,
            handler,
            completers,
            fault,
            requirements,
            visible: None,
            scopes: RequiredScopes::new(),
            required,
        }
    }

    /// Adds a completer, which suggests values for an argument. Arguments that are enums have one already, which suggests
    /// their variants; this one replaces it.
    pub fn complete(mut self, argument: &str, completer: impl Completer) -> Self {
        if !self.definition.arguments.iter().flatten().any(|known| known.name == argument) {
            self.fault.get_or_insert_with(|| format!("there is no argument `{argument}` to complete"));
        }
        if let Some(fault) = completer.registration_fault() {
            self.fault.get_or_insert_with(|| fault.to_owned());
        }
        self.completers.insert(argument, completer);
        self
    }

    /// Returns the name of the prompt.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }
}

/// Checks that arguments are there.
// PR-5
pub(crate) fn check_required(required: &[String], given: &OrderedMap<String>) -> Result<(), ErrorObject> {
    match required.iter().find(|name| !given.contains(name)) {
        Some(missing) => Err(ErrorObject::invalid_params(format!("missing argument `{missing}`"))),
        None => Ok(()),
    }
}

visibility_setters!(Prompt);
scope_setters!(Prompt);
definition_setters!(Prompt: "Sets the description of the prompt.");

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;

    #[test]
    fn a_prompt_may_request_input_first() {
        let made = RoundResult::Complete("hi").into_prompt_result().unwrap();
        let RoundResult::Complete(result) = made else { panic!("expected messages, found {made:?}") };
        assert_eq!(result.messages[0].content.as_text(), Some("hi"));
        let asks = || InputRequiredResult::default().request_state("round 1");
        let asked = RoundResult::<String>::from(asks()).into_prompt_result();
        assert_eq!(asked.unwrap(), RoundResult::InputRequired(Box::new(asks())));
    }

    #[test]
    fn arguments_are_in_the_order_of_the_struct() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Arguments {
            topic: String,
            length: Option<u32>,
            #[serde(rename = "as")]
            style: String,
        }
        let prompt = prompt("write", async |_, _: Arguments| "Write.");
        let arguments = prompt.definition.arguments.unwrap();
        let arguments: Vec<_> = arguments.iter().map(|it| (it.name.as_str(), it.required)).collect();
        assert_eq!(arguments, [("topic", Some(true)), ("length", Some(false)), ("as", Some(true))]);
    }
}
