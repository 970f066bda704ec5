//! Tools, prompts and resources from definitions as JSON, with handlers that take and return JSON: what a gateway forwards.

use std::sync::Arc;

use mcp_types::{Era, ErrorObject, InputRequiredResult, OrderedMap, RawJson, RawObject, ResultType};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::handlers::contents::{ContentsDefaults, with_defaults};
use crate::handlers::extension_method::{self, ExtensionMethod};
use crate::handlers::prompt::{Prompt, prompt};
use crate::handlers::resource::{Resource, resource};
use crate::handlers::schema::NoArguments;
use crate::handlers::template::{RequestedUri, Template, template};
use crate::handlers::tool::{ArgumentErrors, Tool, raw_tool};
#[cfg(feature = "validate")]
use crate::handlers::validate::ArgumentChecks;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;
use crate::uri_template::UriTemplate;

/// Reads a definition. Of one that is not valid, reads `name`, which is what the builder reports the returned fault with.
fn read<D: DeserializeOwned>(
    raw: &RawObject,
    definition: &mut D,
    (member, name): (&str, impl FnOnce(&mut D) -> &mut String),
) -> Option<String> {
    match raw.decode() {
        Ok(read) => {
            *definition = read;
            None
        }
        Err(error) => {
            let members = raw.decode::<OrderedMap<RawJson>>().unwrap_or_default();
            *name(definition) = members.get(member).and_then(|name| name.decode().ok()).unwrap_or_default();
            Some(format!("the definition is not valid: {error}"))
        }
    }
}

/// Calls a raw handler with the parameters of the request.
fn call<R: DeserializeOwned>(
    handler: &ExtensionMethod,
    ctx: RequestContext,
    complete: fn(R) -> Response,
) -> impl Future<Output = Result<Response, ErrorObject>> + Send + use<R> {
    let called = params_of(&ctx).map(|params| handler(ctx, params));
    async move {
        let called = called.map_err(|fault| ErrorObject::invalid_params(fault.to_string()))?;
        response(called.await?, complete)
    }
}

/// The parameters of a request. If a legacy client was sent the input requests of an earlier result, they have its responses
/// where a modern client puts them.
fn params_of(ctx: &RequestContext) -> Result<RawObject, serde_json::Error> {
    let params = RawObject::parse(ctx.params().as_str())?;
    if ctx.era() == Era::Modern || !ctx.is_retry() {
        return Ok(params);
    }
    let mut members = params.decode::<OrderedMap<RawJson>>()?;
    members.insert("inputResponses", RawJson::new(ctx.input_responses())?);
    if let Some(state) = ctx.request_state() {
        members.insert("requestState", RawJson::new(state)?);
    }
    RawObject::new(&members)
}

/// The typed form of a raw result, with which layers and checks work as with those of other handlers. What is not a result of
/// the method stays as it is.
fn response<R: DeserializeOwned>(result: RawObject, complete: fn(R) -> Response) -> Result<Response, ErrorObject> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        result_type: Option<ResultType>,
    }
    let kind = result.decode::<Kind>().ok().and_then(|kind| kind.result_type);
    if kind == Some(ResultType::INPUT_REQUIRED) {
        // As raw JSON they would be sent to clients that cannot fulfil them.
        let input = result.decode::<InputRequiredResult>().map_err(|fault| {
            tracing::error!(target: "mcp", %fault, "the input requests of a raw result are not valid");
            ErrorObject::internal_error("the input requests are not valid")
        })?;
        return Ok(Response::InputRequired(Box::new(input)));
    }
    if kind.is_none_or(|kind| kind == ResultType::COMPLETE)
        && let Ok(typed) = result.decode::<R>()
    {
        return Ok(complete(typed));
    }
    Ok(Response::Other(result))
}

impl Tool {
    /// Creates a tool from its whole definition and a function that serves `tools/call`: what a gateway needs to forward the
    /// tool of another server without loss.
    ///
    /// Members of the definition that this crate does not know are listed as they are; known ones are removed where the
    /// client's revision does not have them. The function gets the parameters of the request and returns the result, both as
    /// they are sent. A legacy client gets input requests in a result as requests, and the function is called again with its
    /// responses in the parameters. The result is restricted to the client's revision in the same way, and what only the protocol layer
    /// knows (`resultType`, cache hints) is added or removed. Neither arguments nor results are validated.
    ///
    /// A definition that is not one of a tool is an error of [`ServerBuilder::build`](crate::ServerBuilder::build). Layers
    /// get lists and results as those of other tools, with unknown members in `extra`; a result that is not one of the method is
    /// a [`Response::Other`].
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::types::{ErrorObject, RawObject};
    /// use mcp_server::{RequestContext, Server, Tool};
    ///
    /// /// Sends a request to another server.
    /// async fn forward(_: RequestContext, params: RawObject) -> Result<RawObject, ErrorObject> {
    /// #   let _ = params;
    /// #   let result = r#"{"content":[]}"#;
    ///     // ..
    ///     RawObject::parse(result).map_err(|error| ErrorObject::internal_error(error.to_string()))
    /// }
    ///
    /// let definition = RawObject::parse(r#"{"name":"search","inputSchema":{"type":"object"},"x-rank":1}"#)?;
    /// let server = Server::builder("gateway", "1.0").tool(Tool::from_raw(definition, forward)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_raw<F, Fut>(definition: RawObject, handler: F) -> Self
    where
        F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
    {
        let handler = extension_method::boxed(handler);
        let mut tool = raw_tool(String::new(), RawObject::empty(), async |_, _| "");
        tool.fault = read(&definition, &mut tool.definition, ("name", |tool| &mut tool.name));
        tool.handler = Arc::new(move |ctx: RequestContext, _: ArgumentErrors| -> ResponseFuture {
            Box::pin(call(&handler, ctx, Response::ToolCall))
        });
        #[cfg(feature = "validate")]
        {
            (tool.argument_checks, tool.checks_output) = (ArgumentChecks::ByType, false);
        }
        tool
    }
}

impl Prompt {
    /// Creates a prompt from its whole definition and a function that serves `prompts/get`; otherwise the same as
    /// [`Tool::from_raw`].
    pub fn from_raw<F, Fut>(definition: RawObject, handler: F) -> Self
    where
        F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
    {
        let handler = extension_method::boxed(handler);
        let mut prompt = prompt(String::new(), async |_, _: NoArguments| "");
        prompt.fault = read(&definition, &mut prompt.definition, ("name", |prompt| &mut prompt.name));
        prompt.handler = Arc::new(move |ctx: RequestContext, _: &OrderedMap<String>| -> ResponseFuture {
            Box::pin(call(&handler, ctx, Response::Prompt))
        });
        prompt
    }
}

impl Resource {
    /// Creates a resource from its whole definition and a function that serves `resources/read`; otherwise the same as
    /// [`Tool::from_raw`].
    pub fn from_raw<F, Fut>(definition: RawObject, handler: F) -> Self
    where
        F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
    {
        let handler = extension_method::boxed(handler);
        let mut resource = resource(String::new(), String::new(), async |_| "");
        resource.fault = read(&definition, &mut resource.definition, ("uri", |resource| &mut resource.uri));
        resource.handler = Arc::new(move |ctx: RequestContext, defaults: ContentsDefaults| {
            with_defaults(call(&handler, ctx, Response::Contents), defaults)
        });
        resource
    }
}

impl Template {
    /// Creates a resource template from its whole definition and a function that serves `resources/read`; otherwise the same
    /// as [`Tool::from_raw`].
    pub fn from_raw<F, Fut>(definition: RawObject, handler: F) -> Self
    where
        F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
    {
        let handler = extension_method::boxed(handler);
        let mut template = template(String::new(), String::new(), async |_, _| "");
        let fault = read(&definition, &mut template.definition, ("uriTemplate", |template| &mut template.uri_template));
        let parsed = UriTemplate::parse(&template.definition.uri_template);
        template.fault = fault.or_else(|| parsed.as_ref().err().map(ToString::to_string));
        template.template = parsed.ok();
        template.handler = Arc::new(move |ctx: RequestContext, _: RequestedUri<'_>, defaults: ContentsDefaults| {
            with_defaults(call(&handler, ctx, Response::Contents), defaults)
        });
        template
    }
}
