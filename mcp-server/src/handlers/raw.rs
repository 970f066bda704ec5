//! Tools, prompts and resources from definitions as JSON, with handlers that take and return JSON: what a gateway forwards.

use std::sync::Arc;

use mcp_types::{
    CacheScope, Era, ErrorObject, InputRequiredResult, OrderedMap, RawJson, RawObject, ResultType, apply_changes,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::handlers::contents::ContentsDefaults;
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

/// A definition with the JSON that it was read from, which may have members that no type has.
#[derive(Clone)]
pub(crate) struct RawDefinition {
    source: RawObject,
    /// The source with the changes of setters and prefixes, as lists have it.
    listed: RawJson,
}

impl RawDefinition {
    fn new(source: RawObject) -> Self {
        Self { listed: source.clone().into(), source }
    }

    /// Applies what has changed of the typed definition since it was read.
    pub(crate) fn update<D: DeserializeOwned + Serialize>(&mut self, definition: &D) {
        let changed = self.source.decode::<D>().and_then(|before| apply_changes(&self.source, &before, definition));
        // Definitions are plain data, which can always be serialized.
        if let Ok(changed) = changed {
            self.listed = changed.into();
        }
    }

    pub(crate) fn listed(&self) -> &RawJson {
        &self.listed
    }
}

/// Reads a definition; the error is for the builder to report.
fn read<D: DeserializeOwned>(definition: &RawObject) -> Result<D, String> {
    definition.decode().map_err(|error| format!("the definition is not valid: {error}"))
}

/// The name of a definition that is not valid, as far as it has one.
fn name_of(definition: &RawObject, member: &str) -> String {
    let members = definition.decode::<OrderedMap<RawJson>>().unwrap_or_default();
    members.get(member).and_then(|name| name.decode().ok()).unwrap_or_default()
}

/// Calls a raw handler with the parameters of the request.
fn call(handler: &ExtensionMethod, ctx: RequestContext) -> ResponseFuture {
    match params_of(&ctx) {
        Ok(params) => {
            let called = handler(ctx.clone(), params);
            Box::pin(async move { Ok(response(&ctx, called.await?)) })
        }
        Err(fault) => Box::pin(std::future::ready(Err(ErrorObject::invalid_params(fault.to_string())))),
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

/// A raw result, or the input requests of a modern server for a legacy client, which gets them as requests.
fn response(ctx: &RequestContext, result: RawObject) -> Response {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        result_type: Option<ResultType>,
    }
    if ctx.era() == Era::Legacy
        && result.decode::<Kind>().is_ok_and(|kind| kind.result_type == Some(ResultType::INPUT_REQUIRED))
        && let Ok(input) = result.decode::<InputRequiredResult>()
    {
        return Response::InputRequired(Box::new(input));
    }
    Response::Other(result)
}

/// The contents of a resource that some viewers cannot see are not cached for several users.
async fn read_restricted(reading: ResponseFuture) -> Result<Response, ErrorObject> {
    let response = reading.await?;
    let Response::Other(result) = &response else { return Ok(response) };
    let restricted = result.decode::<OrderedMap<RawJson>>().and_then(|mut members| {
        // Input requests are never cached.
        if members.contains("contents") {
            members.insert("cacheScope", RawJson::new(&CacheScope::PRIVATE)?);
        }
        RawObject::new(&members)
    });
    restricted.map(Response::Other).map_err(|error| ErrorObject::internal_error(error.to_string()))
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
    /// A definition that is not one of a tool is an error of [`ServerBuilder::build`](crate::ServerBuilder::build). A list
    /// with such a tool is a [`Response::Other`] for layers.
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
        match read(&definition) {
            Ok(read) => tool.definition = read,
            Err(fault) => (tool.definition.name, tool.fault) = (name_of(&definition, "name"), Some(fault)),
        }
        tool.handler = Arc::new(move |ctx: RequestContext, _: ArgumentErrors| call(&handler, ctx));
        #[cfg(feature = "validate")]
        {
            (tool.argument_checks, tool.checks_output) = (ArgumentChecks::ByType, false);
        }
        tool.raw = Some(RawDefinition::new(definition));
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
        match read(&definition) {
            Ok(read) => prompt.definition = read,
            Err(fault) => (prompt.definition.name, prompt.fault) = (name_of(&definition, "name"), Some(fault)),
        }
        prompt.handler = Arc::new(move |ctx: RequestContext, _: &OrderedMap<String>| call(&handler, ctx));
        prompt.raw = Some(RawDefinition::new(definition));
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
        match read(&definition) {
            Ok(read) => resource.definition = read,
            Err(fault) => (resource.definition.uri, resource.fault) = (name_of(&definition, "uri"), Some(fault)),
        }
        resource.handler = Arc::new(move |ctx: RequestContext, defaults: ContentsDefaults| -> ResponseFuture {
            let reading = call(&handler, ctx);
            if defaults.is_restricted { Box::pin(read_restricted(reading)) } else { reading }
        });
        resource.raw = Some(RawDefinition::new(definition));
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
        match read::<mcp_types::ResourceTemplate>(&definition) {
            Ok(read) => {
                let parsed = UriTemplate::parse(&read.uri_template);
                template.fault = parsed.as_ref().err().map(ToString::to_string);
                (template.definition, template.template) = (read, parsed.ok());
            }
            Err(fault) => {
                (template.definition.uri_template, template.fault) = (name_of(&definition, "uriTemplate"), Some(fault));
            }
        }
        template.handler =
            Arc::new(move |ctx: RequestContext, _: RequestedUri<'_>, defaults: ContentsDefaults| -> ResponseFuture {
                let reading = call(&handler, ctx);
                if defaults.is_restricted { Box::pin(read_restricted(reading)) } else { reading }
            });
        template.raw = Some(RawDefinition::new(definition));
        template
    }
}
