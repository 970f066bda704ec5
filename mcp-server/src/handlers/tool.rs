//! Tools.

use std::future::ready;
use std::sync::Arc;

use mcp_types::jsonrpc::{Limits, PayloadBuf};
use mcp_types::{CallToolResult, ErrorObject, RawObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::handlers::definition::definition_setters;
use crate::handlers::schema;
use crate::handlers::tool_result::IntoToolResult;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;

/// A tool; created by [`tool`] or [`raw_tool`].
#[derive(Clone)]
#[must_use = "a tool that is not added to a server does nothing"]
pub struct Tool {
    pub(crate) definition: mcp_types::Tool,
    pub(crate) handler: Handler,
    /// Why the tool cannot be registered, for the builder to report.
    pub(crate) fault: Option<String>,
    /// Whether arguments and results have to be validated against their schemas.
    pub(crate) is_raw: bool,
    /// The handles among its arguments and in its results.
    #[cfg(feature = "mrtr")]
    pub(crate) handles: crate::handles::schema::ToolHandles,
}

/// Takes the arguments as text, so that they are parsed once, into the type of the tool.
pub(crate) type Handler = Arc<dyn Fn(RequestContext, &str, ArgumentErrors) -> ResponseFuture + Send + Sync>;

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
/// [`IntoToolResult`].
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
/// Arguments are validated by deserialising them into their type. Further constraints of the schema, such as
/// `#[schemars(range(max = 8))]`, are hints for the model; the handler has to check them.
pub fn tool<A, F, Fut, R>(name: impl Into<String>, handler: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + 'static,
    F: Fn(RequestContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoToolResult + 'static,
{
    #[cfg(feature = "mrtr")]
    let mut recorder = crate::handles::schema::SchemaRecorder::start();
    let input = schema::of_arguments::<A>();
    #[cfg(feature = "mrtr")]
    recorder.arguments_end();
    let fault = input.as_ref().err().map(ToString::to_string);
    let mut definition = mcp_types::Tool::new(name).input_schema(input.unwrap_or_default());
    definition.output_schema = R::output_schema();
    let handler = Arc::new(move |ctx: RequestContext, arguments: &str, errors: ArgumentErrors| -> ResponseFuture {
        match serde_json::from_str(arguments) {
            Ok(arguments) => finished(handler(ctx, arguments)),
            Err(fault) => Box::pin(ready(errors.respond(describe_invalid_member::<A>(arguments, &fault)))),
        }
    });
    Tool {
        definition,
        handler,
        fault,
        is_raw: false,
        #[cfg(feature = "mrtr")]
        handles: recorder.finish::<A>(),
    }
}

/// Creates a tool with a given schema, whose function gets the arguments as raw JSON.
///
/// With the feature `validate`, they are validated against the schema before.
pub fn raw_tool<F, Fut, R>(name: impl Into<String>, input_schema: impl Into<RawObject>, handler: F) -> Tool
where
    F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoToolResult + 'static,
{
    let mut definition = mcp_types::Tool::new(name).input_schema(input_schema);
    definition.output_schema = R::output_schema();
    let handler = Arc::new(move |ctx: RequestContext, arguments: &str, errors: ArgumentErrors| -> ResponseFuture {
        match RawObject::parse(arguments) {
            Ok(arguments) => finished(handler(ctx, arguments)),
            Err(fault) => Box::pin(ready(errors.respond(fault.to_string()))),
        }
    });
    Tool {
        definition,
        handler,
        fault: None,
        is_raw: true,
        #[cfg(feature = "mrtr")]
        handles: Default::default(),
    }
}

fn finished<R: IntoToolResult>(call: impl Future<Output = R> + Send + 'static) -> ResponseFuture {
    Box::pin(async move { Ok(Response::of(call.await.into_tool_result()?, Response::ToolCall)) })
}

/// Names the member that is invalid, by parsing the arguments a second time.
fn describe_invalid_member<A: DeserializeOwned>(arguments: &str, fault: &serde_json::Error) -> String {
    let named = PayloadBuf::parse(arguments, &Limits::default()).and_then(|payload| payload.decode::<A>().map(drop));
    named.err().map_or_else(|| fault.to_string(), |named| named.to_string())
}

impl Tool {
    /// Sets hints about the tool's behaviour.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Sets the schema of the structured content, if the return type of the handler does not have one.
    pub fn output_schema(mut self, schema: impl Into<RawObject>) -> Self {
        self.definition.output_schema = Some(schema.into());
        self.is_raw = true;
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

definition_setters!(Tool: "Sets the description: what the tool does and when to use it, for the model.");
