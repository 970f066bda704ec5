//! Resources with a fixed URI, and resource templates.

use std::any::Any;
use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use mcp_types::{Annotations, CacheScope, ErrorObject, InputRequiredResult, ReadResourceResult, ResourceContents};

use crate::build::settings::milliseconds;
use crate::handlers::completion::{Completer, Completers};
use crate::handlers::definition::definition_setters;
use crate::handlers::raw::RawDefinition;
use crate::handlers::tool_result::{RoundResult, protocol_error};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;
use crate::uri_template::{UriTemplate, UriVariables};
use crate::visibility::predicate::{Predicate, visibility_setters};

/// The requested URI, and the variables that a template found in it.
pub(crate) struct RequestedUri<'a> {
    pub(crate) uri: &'a str,
    pub(crate) variables: UriVariables,
}

/// The types that a handler of a resource can return: text, bytes ([`Vec<u8>`]), [`ResourceContents`] with URIs of their
/// own, or a `Result`, `Option` or [`RoundResult`] of these. `None` means that there is no such resource.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be the contents of a resource")]
pub trait IntoContents {
    /// Converts the value into the contents of the resource at `uri`.
    ///
    /// # Errors
    ///
    /// Returns the protocol error to respond with, or `None` if there is no such resource.
    fn into_contents(self, uri: &str) -> Result<RoundResult<ReadResourceResult>, Option<ErrorObject>>;
}

type Contents = Result<RoundResult<ReadResourceResult>, Option<ErrorObject>>;

impl IntoContents for ReadResourceResult {
    fn into_contents(self, _: &str) -> Contents {
        // RS-4: a result has contents.
        if self.contents.is_empty() { Err(None) } else { Ok(RoundResult::Complete(self)) }
    }
}

impl IntoContents for InputRequiredResult {
    fn into_contents(self, _: &str) -> Contents {
        Ok(RoundResult::InputRequired(Box::new(self)))
    }
}

impl<T: IntoContents> IntoContents for RoundResult<T> {
    fn into_contents(self, uri: &str) -> Contents {
        match self {
            Self::Complete(value) => value.into_contents(uri),
            Self::InputRequired(input) => Ok(RoundResult::InputRequired(input)),
        }
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self, uri: &str) -> Contents {
        ReadResourceResult::new(self).into_contents(uri)
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(self, uri: &str) -> Contents {
        vec![self].into_contents(uri)
    }
}

impl IntoContents for String {
    fn into_contents(self, uri: &str) -> Contents {
        ResourceContents::text(uri, self).into_contents(uri)
    }
}

impl IntoContents for &'static str {
    fn into_contents(self, uri: &str) -> Contents {
        ResourceContents::text(uri, self).into_contents(uri)
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self, uri: &str) -> Contents {
        ResourceContents::blob(uri, self).into_contents(uri)
    }
}

impl<T: IntoContents> IntoContents for Option<T> {
    fn into_contents(self, uri: &str) -> Contents {
        self.ok_or(None)?.into_contents(uri)
    }
}

impl<T: IntoContents, E: fmt::Display + Any> IntoContents for Result<T, E> {
    fn into_contents(self, uri: &str) -> Contents {
        let internal = |error: E| {
            let protocol = protocol_error(&error);
            Some(protocol.unwrap_or_else(|| ErrorObject::internal_error(format!("cannot read {uri}: {error:#}"))))
        };
        self.map_err(internal)?.into_contents(uri)
    }
}

/// What the contents get unless the handler set it: cache TTL and scope, and the MIME type.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentsDefaults {
    ttl_ms: Option<i64>,
    scope: Option<CacheScope>,
    mime_type: Option<String>,
    /// Whether some viewers cannot see the contents, so that they must not be cached for several users.
    pub(crate) is_restricted: bool,
}

impl ContentsDefaults {
    fn of_restricted(&self, is_restricted: bool) -> Self {
        Self { is_restricted, ..self.clone() }
    }

    pub(crate) fn complete(&self, result: &mut ReadResourceResult) {
        // C-2: a handler may set anything, but a TTL on the wire is not negative.
        result.ttl_ms = result.ttl_ms.or(self.ttl_ms).map(|ttl| ttl.max(0));
        if result.cache_scope.is_none() {
            result.cache_scope.clone_from(&self.scope);
        }
        if self.is_restricted {
            result.cache_scope = Some(CacheScope::PRIVATE);
        }
        for contents in &mut result.contents {
            let mime_type = match contents {
                ResourceContents::Text(text) => &mut text.mime_type,
                ResourceContents::Blob(blob) => &mut blob.mime_type,
                _ => continue,
            };
            if mime_type.is_none() {
                mime_type.clone_from(&self.mime_type);
            }
        }
    }
}

/// Converts what a handler returned into the result of the request.
fn read_response<R: IntoContents>(
    ctx: &RequestContext,
    uri: &str,
    defaults: &ContentsDefaults,
    read: R,
) -> Result<Response, ErrorObject> {
    let not_found =
        |error: Option<ErrorObject>| error.unwrap_or_else(|| ErrorObject::resource_not_found(ctx.revision(), uri));
    let mut result = read.into_contents(uri).map_err(not_found)?;
    if let RoundResult::Complete(result) = &mut result {
        defaults.complete(result);
    }
    Ok(Response::of(result, Response::Contents))
}

/// A resource with a fixed URI; created by [`resource`], [`text_resource`], [`blob_resource`] or
/// [`Resource::from_raw`].
#[derive(Clone)]
#[must_use = "a resource that is not added to a server does nothing"]
pub struct Resource {
    pub(crate) definition: mcp_types::Resource,
    pub(crate) handler: Arc<dyn Fn(RequestContext, ContentsDefaults) -> ResponseFuture + Send + Sync>,
    pub(crate) defaults: ContentsDefaults,
    pub(crate) fault: Option<String>,
    pub(crate) visible: Option<Predicate>,
    /// The definition as JSON, if the resource was created from it.
    pub(crate) raw: Option<RawDefinition>,
}

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
    F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoContents + 'static,
{
    let uri = uri.into();
    let address: Arc<str> = uri.as_str().into();
    let handler = Arc::new(move |ctx: RequestContext, defaults: ContentsDefaults| -> ResponseFuture {
        let (reading, uri) = (read(ctx.clone()), Arc::clone(&address));
        Box::pin(async move { read_response(&ctx, &uri, &defaults, reading.await) })
    });
    let definition = mcp_types::Resource::new(name, uri);
    Resource { definition, handler, defaults: ContentsDefaults::default(), fault: None, visible: None, raw: None }
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
    pub(crate) fn read(&self, ctx: RequestContext) -> ResponseFuture {
        (self.handler)(ctx, self.defaults.of_restricted(self.visible.is_some()))
    }

    /// Sets the size of the contents in bytes, for the list of resources.
    pub fn size(mut self, bytes: i64) -> Self {
        self.definition.size = Some(bytes);
        self
    }
}

pub(crate) type TemplateHandler =
    Arc<dyn Fn(RequestContext, RequestedUri<'_>, ContentsDefaults) -> ResponseFuture + Send + Sync>;

/// A resource template: resources whose URIs match a URI template. Created by [`template`] or
/// [`Template::from_raw`].
#[derive(Clone)]
#[must_use = "a template that is not added to a server does nothing"]
pub struct Template {
    pub(crate) definition: mcp_types::ResourceTemplate,
    pub(crate) template: Option<UriTemplate>,
    pub(crate) handler: TemplateHandler,
    defaults: ContentsDefaults,
    pub(crate) completers: Completers,
    pub(crate) fault: Option<String>,
    pub(crate) visible: Option<Predicate>,
    /// The definition as JSON, if the template was created from it.
    pub(crate) raw: Option<RawDefinition>,
}

/// Creates a resource template from an async function that reads all resources whose URIs match a URI template (RFC 6570).
///
/// The function gets the values of the variables in the URI, percent-decoded. They come from the client: check them before
/// they become part of a path.
///
/// # Examples
///
/// ```
/// use mcp_server::{RequestContext, UriVariables, template};
///
/// let day = template("logs://{day}", "log", async |_: RequestContext, variables: UriVariables| {
///     let day: u32 = variables.get("day")?.parse().ok()?;
///     Some(format!("nothing happened on day {day}"))
/// });
/// ```
pub fn template<F, Fut, R>(uri_template: impl Into<String>, name: impl Into<String>, read: F) -> Template
where
    F: Fn(RequestContext, UriVariables) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoContents + 'static,
{
    let uri_template = uri_template.into();
    let parsed = UriTemplate::parse(&uri_template);
    let fault = parsed.as_ref().err().map(ToString::to_string);
    let handler =
        Arc::new(move |ctx: RequestContext, address: RequestedUri<'_>, defaults: ContentsDefaults| -> ResponseFuture {
            let uri = address.uri.to_owned();
            let reading = read(ctx.clone(), address.variables);
            Box::pin(async move { read_response(&ctx, &uri, &defaults, reading.await) })
        });
    Template {
        definition: mcp_types::ResourceTemplate::new(name, uri_template),
        template: parsed.ok(),
        handler,
        defaults: ContentsDefaults::default(),
        completers: Completers::default(),
        fault,
        visible: None,
        raw: None,
    }
}

impl Template {
    pub(crate) fn read(&self, ctx: RequestContext, address: RequestedUri<'_>) -> ResponseFuture {
        (self.handler)(ctx, address, self.defaults.of_restricted(self.visible.is_some()))
    }

    /// Returns the values of the variables, if a URI is one of the template.
    pub(crate) fn matches(&self, uri: &str) -> Option<UriVariables> {
        self.template.as_ref()?.matches(uri)
    }

    /// Adds a completer, which suggests values for a variable.
    pub fn complete(mut self, variable: &str, completer: impl Completer) -> Self {
        let is_known = self.template.as_ref().is_none_or(|template| template.variables().any(|name| name == variable));
        if !is_known {
            self.fault.get_or_insert_with(|| format!("there is no variable `{variable}` to complete"));
        }
        self.completers.insert(variable, completer);
        self
    }
}

/// The setters that resources and resource templates share.
macro_rules! readable {
    ($($kind:ident),*) => {$(
        impl $kind {
            /// Sets the MIME type, also of contents for which the handler sets none.
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                let mime_type = mime_type.into();
                self.defaults.mime_type = Some(mime_type.clone());
                self.definition.mime_type = Some(mime_type);
                self
            }

            /// Sets the annotations: audience, priority, last change.
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Sets the cache TTL and scope of the contents. Defaults to those of
            /// [`ServerBuilder::cache`](crate::ServerBuilder::cache).
            pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
                (self.defaults.ttl_ms, self.defaults.scope) = (Some(milliseconds(ttl)), Some(scope));
                self
            }
        }
    )*};
}

readable!(Resource, Template);
visibility_setters!(Resource, Template);
definition_setters!(Resource: "Sets the description of the resource.", Template: "Sets the description of the resources.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_may_ask_before_it_answers() {
        let read = RoundResult::Complete("text").into_contents("a:b");
        let Ok(RoundResult::Complete(result)) = read else { panic!("expected contents, found {read:?}") };
        assert_eq!(result.contents, [ResourceContents::text("a:b", "text")]);
        assert_eq!(RoundResult::Complete(None::<String>).into_contents("a:b"), Err(None));
        let asks = || InputRequiredResult::default().request_state("round 1");
        let asked = RoundResult::<String>::from(asks()).into_contents("a:b");
        assert_eq!(asked, Ok(RoundResult::InputRequired(Box::new(asks()))));
    }
}
