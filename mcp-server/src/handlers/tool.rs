//! Tools.

use std::future::ready;
use std::sync::Arc;

use mcp_types::{CallToolResult, ErrorObject, RawObject, ToolAnnotations};

use crate::auth::required_scopes::{RequiredScopes, scope_setters};
use crate::handlers::arguments::{self, FindHandles, arguments_of};
use crate::handlers::definition::definition_setters;
use crate::handlers::error_text;
use crate::handlers::extract::{ArgumentHandles, HandlerFunction, Refusal, Requirements, Signature, ToolKind};
use crate::handlers::function::{Arguments, ContextFunction};
use crate::handlers::tool_result::IntoToolResult;
#[cfg(feature = "validate")]
use crate::handlers::validate::ArgumentChecks;
#[cfg(feature = "mrtr")]
use crate::handles::schema::{SchemaRecorder, ToolHandles};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;
use crate::visibility::predicate::{Predicate, visibility_setters};

/// A tool; created by [`tool`], [`raw_tool`] or [`Tool::from_raw`].
#[derive(Clone)]
#[must_use = "a tool that is not added to a server does nothing"]
pub struct Tool {
    pub(crate) definition: mcp_types::Tool,
    pub(crate) handler: Handler,
    /// Why the tool cannot be registered, for the builder to report.
    pub(crate) fault: Option<String>,
    pub(crate) visible: Option<Predicate>,
    pub(crate) scopes: RequiredScopes,
    #[cfg(feature = "validate")]
    pub(crate) argument_checks: ArgumentChecks,
    /// Whether results have to be validated against their schema.
    #[cfg(feature = "validate")]
    pub(crate) checks_output: bool,
    pub(crate) requirements: Requirements,
    /// The handles among its arguments and in its results.
    #[cfg(feature = "mrtr")]
    pub(crate) handles: ToolHandles,
    /// Absent for most tools.
    #[cfg(feature = "mrtr")]
    pub(crate) task: Option<Box<crate::tasks::options::TaskOptions>>,
    /// Whether a runtime of tasks decides about the calls.
    #[cfg(feature = "mrtr")]
    pub(crate) has_task_runtime: bool,
}

/// Parses the arguments of the request itself, so that they are parsed once, into the type of the tool.
pub(crate) type Handler = Arc<dyn Fn(RequestContext, ArgumentErrors) -> ResponseFuture + Send + Sync>;

/// How invalid arguments of a tool are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentErrors {
    /// As the result of the call, with `isError`, which the model can read and correct.
    #[default]
    AsResult,
    /// As a protocol error with code -32602.
    AsError,
}

impl ArgumentErrors {
    pub(crate) fn respond(self, fault: String) -> Result<Response, ErrorObject> {
        let text = format!("invalid arguments: {fault}");
        match self {
            Self::AsResult => Ok(Response::ToolCall(CallToolResult::error(text))),
            Self::AsError => Err(ErrorObject::invalid_params(text)),
        }
    }
}

/// Creates a tool from an async function. Its arguments are any type with a schema, its result any type that implements
/// [`IntoToolResult`]. The doc comment of the arguments describes the tool, unless [`description`](Tool::description) does.
///
/// [`tool_fn`] is for functions with other parameters.
///
/// # Examples
///
/// ```
/// use mcp_server::{Json, tool};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: f64, b: f64 }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Sum { sum: f64 }
///
/// let add = tool("add", async |_ctx, Add { a, b }: Add| Json(Sum { sum: a + b })).description("Adds two numbers");
///
/// // A function with captured values is a closure around an async block, which gets its own copy.
/// let factor = std::sync::Arc::new(2.0);
/// let scale = tool("scale", move |_ctx, Add { a, b }: Add| {
///     let factor = factor.clone();
///     async move { ((a + b) * *factor).to_string() }
/// });
/// ```
///
/// Arguments are validated by deserializing them into their type. Further constraints of the schema, such as
/// `#[schemars(range(max = 8))]`, `length` or `regex`, are enforced with the feature `validate`: arguments of a tool that has
/// any must fit the whole schema. Without the feature they are hints for the model.
pub fn tool<A, F, Fut, R>(name: impl Into<String>, handler: F) -> Tool
where
    A: Arguments,
    F: ContextFunction<A, Fut, R>,
    Fut: Send + 'static,
    R: IntoToolResult + 'static,
{
    let handler = Arc::new(handler);
    Tool::typed::<R>(name, Signature::of_arguments::<A>, |find| match find {
        None => Arc::new(move |ctx: RequestContext, errors: ArgumentErrors| match arguments::decode(&ctx) {
            Ok(arguments) => finished(handler.start(ctx.clone(), arguments), ctx),
            Err(fault) => Box::pin(ready(errors.respond(fault))),
        }),
        Some(_) => Arc::new(move |ctx: RequestContext, errors: ArgumentErrors| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let decoded = match arguments::decode_with_handles(find, &ctx).await {
                    Ok(decoded) => decoded,
                    Err(error) => return error_text::of_tool(&ctx, &error),
                };
                match decoded.map(|arguments| handler.start(ctx.clone(), arguments)) {
                    Ok(call) => respond(&ctx, call.await),
                    Err(fault) => errors.respond(fault),
                }
            })
        }),
    })
}

/// Creates a tool from an async function whose parameters are, in any order and number up to eight, a struct of arguments and
/// values that are taken from the request: [`RequestContext`], [`State`](crate::extract::State),
/// [`Principal`](crate::Principal), [`Extension`](crate::extract::Extension), and any type that implements
/// [`FromContext`](crate::extract::FromContext).
///
/// At most one parameter is a struct of arguments; without one, the tool takes none. A state that the function takes and that
/// the server lacks is an error of [`ServerBuilder::build`](crate::ServerBuilder::build). If a value cannot be taken from the
/// request, the handler is not called; see [`FromContext`](crate::extract::FromContext).
///
/// # Examples
///
/// ```
/// use mcp_server::extract::State;
/// use mcp_server::{Principal, Server, tool_fn};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// struct Greetings { formal: String }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Greet { name: String }
///
/// async fn greet(State(greetings): State<Greetings>, user: Option<Principal>, Greet { name }: Greet) -> String {
///     let from = user.map_or("a stranger".to_owned(), |user| user.subject.to_string());
///     format!("{}, {name}, from {from}", greetings.formal)
/// }
///
/// let greetings = Greetings { formal: "Good day".to_owned() };
/// let server = Server::builder("greeter", "1.0").state(greetings).tool(tool_fn("greet", greet)).build()?;
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
pub fn tool_fn<Params, F>(name: impl Into<String>, function: F) -> Tool
where
    F: HandlerFunction<ToolKind, Params>,
    F::Output: IntoToolResult + 'static,
{
    let function = Arc::new(function);
    Tool::typed::<F::Output>(name, Signature::of::<ToolKind, Params, F>, |find| {
        Arc::new(move |ctx: RequestContext, errors: ArgumentErrors| {
            let call = F::call(Arc::clone(&function), ctx.clone(), ArgumentHandles(find));
            Box::pin(async move {
                match call.await {
                    Ok(value) => respond(&ctx, value),
                    Err(Refusal::Arguments(fault)) => errors.respond(fault),
                    Err(Refusal::Failed(error)) => error_text::of_tool(&ctx, &error),
                }
            })
        })
    })
}

/// Creates a tool with a given schema, whose function gets the arguments as raw JSON.
///
/// With the feature `validate`, they are validated against the schema before.
pub fn raw_tool<F, Fut, R>(name: impl Into<String>, input_schema: impl Into<RawObject>, handler: F) -> Tool
where
    F: ContextFunction<RawObject, Fut, R>,
    Fut: Send + 'static,
    R: IntoToolResult + 'static,
{
    let mut definition = mcp_types::Tool::new(name).input_schema(input_schema);
    definition.output_schema = R::output_schema();
    let handler = Arc::new(move |ctx: RequestContext, errors: ArgumentErrors| -> ResponseFuture {
        match RawObject::parse(arguments_of(ctx.params())) {
            Ok(arguments) => finished(handler.start(ctx.clone(), arguments), ctx),
            Err(fault) => Box::pin(ready(errors.respond(fault.to_string()))),
        }
    });
    let fault = R::registration_fault().map(str::to_owned);
    Tool {
        definition,
        handler,
        fault,
        #[cfg(feature = "validate")]
        argument_checks: ArgumentChecks::BySchema,
        #[cfg(feature = "validate")]
        checks_output: true,
        requirements: Requirements::default(),
        visible: None,
        scopes: RequiredScopes::new(),
        #[cfg(feature = "mrtr")]
        handles: ToolHandles::default(),
        #[cfg(feature = "mrtr")]
        task: None,
        #[cfg(feature = "mrtr")]
        has_task_runtime: false,
    }
}

fn finished<R: IntoToolResult>(call: impl Future<Output = R> + Send + 'static, ctx: RequestContext) -> ResponseFuture {
    Box::pin(async move { respond(&ctx, call.await) })
}

/// Converts what a handler returned into the response.
pub(super) fn respond<R: IntoToolResult>(ctx: &RequestContext, returned: R) -> Result<Response, ErrorObject> {
    match returned.into_tool_result() {
        Ok(outcome) => Ok(Response::of(outcome, Response::ToolCall)),
        Err(error) => error_text::of_tool(ctx, &error),
    }
}

impl Tool {
    /// A tool whose schemas follow from types. `make` creates its handler, given what finds the handles in its arguments, if
    /// they have any.
    pub(super) fn typed<R: IntoToolResult>(
        name: impl Into<String>,
        describe: impl FnOnce() -> Signature,
        make: impl FnOnce(Option<FindHandles>) -> Handler,
    ) -> Self {
        #[cfg(feature = "mrtr")]
        let recorder = SchemaRecorder::start();
        let mut signature = describe();
        let find = signature.find_handles.take();
        #[cfg(feature = "mrtr")]
        let find = find.filter(|_| recorder.has_handles());
        let handler = make(find);
        let input = signature.schema();
        let fault = input.as_ref().err().map(ToString::to_string).or(signature.fault);
        let fault = fault.or_else(|| R::registration_fault().map(str::to_owned));
        let input = input.unwrap_or_default();
        let mut definition = mcp_types::Tool::new(name).input_schema(input.schema);
        definition.description = input.description;
        definition.output_schema = R::output_schema();
        Self {
            definition,
            handler,
            fault,
            #[cfg(feature = "validate")]
            argument_checks: if input.has_constraints { ArgumentChecks::Constraints } else { ArgumentChecks::ByType },
            #[cfg(feature = "validate")]
            checks_output: false,
            requirements: signature.requirements,
            visible: None,
            scopes: RequiredScopes::new(),
            #[cfg(feature = "mrtr")]
            handles: recorder.finish(),
            #[cfg(feature = "mrtr")]
            task: None,
            #[cfg(feature = "mrtr")]
            has_task_runtime: false,
        }
    }

    /// Sets hints about the tool's behaviour.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Sets the schema of the structured content, if the return type of the handler does not have one.
    pub fn output_schema(mut self, schema: impl Into<RawObject>) -> Self {
        self.definition.output_schema = Some(schema.into());
        #[cfg(feature = "validate")]
        {
            self.checks_output = true;
        }
        self
    }

    /// Returns the name of the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Returns the definition as `tools/list` has it.
    #[must_use]
    pub fn definition(&self) -> &mcp_types::Tool {
        &self.definition
    }
}

visibility_setters!(Tool);
scope_setters!(Tool);
definition_setters!(Tool: "Sets the description: what the tool does and when to use it, for the model.");
