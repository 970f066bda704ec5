//! Middleware around one tool, prompt, resource or template.

use std::sync::Arc;

use mcp_types::{ErrorObject, GetPromptRequestParams, OrderedMap, ReadResourceRequestParams};

#[cfg(feature = "validate")]
use crate::handlers::arguments::arguments_of;
use crate::handlers::contents::{ContentsDefaults, with_defaults};
use crate::handlers::prompt::{Prompt, check_required};
use crate::handlers::resource::Resource;
use crate::handlers::template::{RequestedUri, Template};
use crate::handlers::tool::{ArgumentErrors, Tool};
#[cfg(feature = "validate")]
use crate::handlers::validate::{ArgumentChecks, Validators};
use crate::middleware::Middleware;
use crate::serve::context::RequestContext;
use crate::serve::dispatch::decode;
use crate::serve::endpoint::{Endpoint, EndpointFuture, ResponseFuture};

// Handlers take what dispatch has decoded. Middleware passes on the context alone, so that a handler with middleware decodes
// its part of the parameters again. It also checks the arguments, which dispatch does otherwise: middleware that refuses a
// caller, or counts calls, comes before.

impl Tool {
    /// Adds [middleware](crate::middleware) around the calls of this tool. What is added last sees a call first; middleware of
    /// the server sees it before. Arguments are decoded and validated inside of it.
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
        #[cfg(feature = "validate")]
        let validators = match Validators::of_arguments(&self) {
            Ok(validators) => validators,
            Err(fault) => {
                self.fault.get_or_insert(fault);
                Validators::default()
            }
        };
        // Dispatch has nothing left to check, and neither has the next middleware.
        #[cfg(feature = "validate")]
        {
            self.argument_checks = ArgumentChecks::ByType;
        }
        let handler = self.handler;
        let inner = Endpoint::new(move |ctx| {
            let errors = ctx.server().settings().argument_errors;
            #[cfg(feature = "validate")]
            if let Some(fault) = validators.check_arguments(arguments_of(ctx.params())) {
                return Box::pin(std::future::ready(errors.respond(fault)));
            }
            handler(ctx, errors)
        });
        let outer = middleware.wrap(inner);
        self.handler = Arc::new(move |ctx: RequestContext, _: ArgumentErrors| call(&outer, ctx));
        self
    }
}

impl Prompt {
    /// Adds [middleware](crate::middleware) around `prompts/get` of this prompt. What is added last sees a request first;
    /// middleware of the server sees it before. Arguments are checked and decoded inside of it.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        let (handler, required) = (self.handler, std::mem::take(&mut self.required));
        let inner = Endpoint::new(move |ctx| match decode(ctx.params()) {
            Ok(GetPromptRequestParams { arguments, .. }) => {
                let arguments = arguments.unwrap_or_default();
                match check_required(&required, &arguments) {
                    Ok(()) => handler(ctx, &arguments),
                    Err(error) => failed(error),
                }
            }
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
