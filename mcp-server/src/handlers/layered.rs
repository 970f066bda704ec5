//! Middleware around one tool, prompt, resource or template.

use std::sync::Arc;

use mcp_types::{ErrorObject, GetPromptRequestParams, OrderedMap, ReadResourceRequestParams};

use crate::handlers::contents::{ContentsDefaults, with_defaults};
use crate::handlers::prompt::Prompt;
use crate::handlers::resource::Resource;
use crate::handlers::template::{RequestedUri, Template};
use crate::handlers::tool::{ArgumentErrors, Tool};
use crate::middleware::Middleware;
use crate::serve::context::RequestContext;
use crate::serve::dispatch::decode;
use crate::serve::endpoint::{Endpoint, EndpointFuture, ResponseFuture};

// Handlers take what dispatch has decoded. Middleware passes on the context alone, so that a handler with middleware decodes
// its part of the parameters again.

impl Tool {
    /// Adds [middleware](crate::middleware) around the calls of this tool. What is added last sees a call first; middleware of
    /// the server sees it before.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_server::types::ErrorObject;
    /// use mcp_server::{NoArguments, middleware, tool};
    ///
    /// let members_only = middleware::from_fn(async |ctx, next| match ctx.principal() {
    ///     Some(_) => next.run(ctx).await,
    ///     None => Err(ErrorObject::invalid_request("log in first")),
    /// });
    /// let secret = tool("secret", async |_, _: NoArguments| "42").layer(members_only);
    /// ```
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        let handler = self.handler;
        let inner = Endpoint::new(move |ctx| {
            let errors = ctx.server().settings().argument_errors;
            handler(ctx, errors)
        });
        let outer = middleware.wrap(inner);
        self.handler = Arc::new(move |ctx: RequestContext, _: ArgumentErrors| call(&outer, ctx));
        self
    }
}

impl Prompt {
    /// Adds [middleware](crate::middleware) around `prompts/get` of this prompt. What is added last sees a request first;
    /// middleware of the server sees it before.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        let handler = self.handler;
        let inner = Endpoint::new(move |ctx| match decode(ctx.params()) {
            Ok(GetPromptRequestParams { arguments, .. }) => handler(ctx, &arguments.unwrap_or_default()),
            Err(error) => failed(error),
        });
        let outer = middleware.wrap(inner);
        self.handler = Arc::new(move |ctx: RequestContext, _: &OrderedMap<String>| call(&outer, ctx));
        self
    }
}

impl Resource {
    /// Adds [middleware](crate::middleware) around `resources/read` of this resource. What is added last sees a request
    /// first; middleware of the server sees it before.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        let handler = self.handler;
        let inner = Endpoint::new(move |ctx| handler(ctx, ContentsDefaults::default()));
        let outer = middleware.wrap(inner);
        self.handler = Arc::new(move |ctx: RequestContext, defaults: ContentsDefaults| {
            with_defaults(EndpointFuture::new(outer.clone(), ctx), defaults)
        });
        self
    }
}

impl Template {
    /// Adds [middleware](crate::middleware) around `resources/read` of the resources of this template. What is added last sees
    /// a request first; middleware of the server sees it before.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        let (handler, template) = (self.handler, self.template.clone());
        let inner = Endpoint::new(move |ctx| {
            let uri = match decode(ctx.params()) {
                Ok(ReadResourceRequestParams { uri, .. }) => uri,
                Err(error) => return failed(error),
            };
            // It matched before, or middleware would not have been called.
            match template.as_ref().and_then(|template| template.matches(&uri)) {
                Some(variables) => handler(ctx, RequestedUri { uri: &uri, variables }, ContentsDefaults::default()),
                None => failed(ErrorObject::resource_not_found(ctx.revision(), uri)),
            }
        });
        let outer = middleware.wrap(inner);
        self.handler = Arc::new(move |ctx: RequestContext, _: RequestedUri<'_>, defaults: ContentsDefaults| {
            with_defaults(EndpointFuture::new(outer.clone(), ctx), defaults)
        });
        self
    }
}

/// Calls the outermost middleware of an item. Its own round may end here.
fn call(outer: &Endpoint, ctx: RequestContext) -> ResponseFuture {
    Box::pin(EndpointFuture::new(outer.clone(), ctx))
}

fn failed(error: ErrorObject) -> ResponseFuture {
    Box::pin(std::future::ready(Err(error)))
}
