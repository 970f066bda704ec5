//! Resources with a fixed URI.

use std::future::ready;
use std::sync::Arc;

use crate::auth::required_scopes::{RequiredScopes, scope_setters};
use crate::handlers::contents::{ContentsDefaults, IntoContents, read_or_refuse, read_response, readable};
use crate::handlers::definition::definition_setters;
use crate::handlers::extract::{HandlerFunction, Requirements, ResourceKind, Signature};
use crate::handlers::function::ReadFunction;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::visibility::predicate::{Predicate, visibility_setters};

/// A resource with a fixed URI; created by [`resource`], [`resource_fn`], [`text_resource`], [`blob_resource`] or
/// [`Resource::from_raw`].
#[derive(Clone)]
#[must_use = "a resource that is not added to a server does nothing"]
pub struct Resource {
    pub(crate) definition: mcp_types::Resource,
    pub(crate) handler: Handler,
    pub(crate) defaults: ContentsDefaults,
    /// Why the resource cannot be registered, for the builder to report.
    pub(crate) fault: Option<String>,
    pub(crate) requirements: Requirements,
    pub(crate) visible: Option<Predicate>,
    pub(crate) scopes: RequiredScopes,
}

type Handler = Arc<dyn Fn(RequestContext, ContentsDefaults) -> ResponseFuture + Send + Sync>;

/// Creates a resource from an async function that reads it.
///
/// # Examples
///
/// ```
/// use mcp_server::{RequestContext, resource};
///
/// let load = resource("system://load", "load", async |_: RequestContext| std::fs::read_to_string("/proc/loadavg"));
/// let load = load.description("The load average").mime_type("text/plain");
/// ```
pub fn resource<F, Fut, R>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Resource
where
    F: ReadFunction<Fut, R>,
    Fut: Send + 'static,
    R: IntoContents + 'static,
{
    let uri = uri.into();
    let address: Arc<str> = uri.as_str().into();
    let handler = Arc::new(move |ctx: RequestContext, defaults: ContentsDefaults| -> ResponseFuture {
        let (reading, uri) = (read.start(ctx.clone()), Arc::clone(&address));
        Box::pin(async move { read_response(&ctx, &uri, &defaults, reading.await) })
    });
    Resource::new::<R>(uri, name, handler)
}

/// Creates a resource from an async function whose parameters are, in any number up to eight, values that are taken from the
/// request; see [`tool_fn`](crate::tool_fn).
///
/// # Examples
///
/// ```
/// use mcp_server::extract::State;
/// use mcp_server::resource_fn;
///
/// struct Motto(String);
///
/// let motto = resource_fn("house://motto", "motto", async |State(motto): State<Motto>| motto.0.clone());
/// ```
pub fn resource_fn<Params, F>(uri: impl Into<String>, name: impl Into<String>, function: F) -> Resource
where
    F: HandlerFunction<ResourceKind, Params>,
    F::Output: IntoContents + 'static,
{
    let signature = Signature::of::<ResourceKind, Params, F>();
    let uri = uri.into();
    let address: Arc<str> = uri.as_str().into();
    let function = Arc::new(function);
    let handler = Arc::new(move |ctx: RequestContext, defaults: ContentsDefaults| -> ResponseFuture {
        let (reading, uri) = (F::call(Arc::clone(&function), ctx.clone(), ()), Arc::clone(&address));
        Box::pin(async move { read_or_refuse(&ctx, &uri, &defaults, reading.await) })
    });
    let mut resource = Resource::new::<F::Output>(uri, name, handler);
    resource.fault = resource.fault.or(signature.fault);
    resource.requirements = signature.requirements;
    resource
}

/// Creates a resource from a constant text.
pub fn text_resource(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Resource {
    let text: Arc<str> = text.into().into();
    resource(uri, name, move |_| ready(text.to_string())).mime_type("text/plain")
}

/// Creates a resource from constant bytes.
pub fn blob_resource(uri: impl Into<String>, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Resource {
    let bytes: Arc<[u8]> = bytes.into().into();
    resource(uri, name, move |_| ready(bytes.to_vec())).mime_type("application/octet-stream")
}

impl Resource {
    fn new<R: IntoContents>(uri: String, name: impl Into<String>, handler: Handler) -> Self {
        let resource = Self {
            definition: mcp_types::Resource::new(name, uri),
            handler,
            defaults: ContentsDefaults::default(),
            fault: R::registration_fault().map(str::to_owned),
            requirements: Requirements::default(),
            visible: None,
            scopes: RequiredScopes::new(),
        };
        match R::default_mime_type() {
            Some(mime_type) => resource.mime_type(mime_type),
            None => resource,
        }
    }

    pub(crate) fn read(&self, ctx: RequestContext) -> ResponseFuture {
        (self.handler)(ctx, self.defaults.of_restricted(self.visible.is_some() || !self.scopes.is_empty()))
    }

    /// Sets the size of the contents in bytes, for the list of resources.
    pub fn size(mut self, bytes: i64) -> Self {
        self.definition.size = Some(bytes);
        self
    }
}

readable!(Resource);
visibility_setters!(Resource);
scope_setters!(Resource);
definition_setters!(Resource: "Sets the description of the resource.");
