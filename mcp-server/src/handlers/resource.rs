//! Resources: with a fixed address, or many with a template for theirs.

use std::any::Any;
use std::fmt;
use std::future::ready;
use std::sync::Arc;

use mcp_types::{Annotations, CacheScope, ErrorObject, InputRequiredResult, ReadResourceResult, ResourceContents};

use crate::handlers::completion::{Completer, Completers};
use crate::handlers::definition::definition_setters;
use crate::handlers::tool_result::{Outcome, protocol_error};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;
use crate::uri_template::{UriTemplate, UriVariables};

/// What is read: the address that was asked for, and what a template found in it.
pub(crate) struct RequestedUri<'a> {
    pub(crate) uri: &'a str,
    pub(crate) variables: UriVariables,
}

/// What can be returned by a reader: text, bytes ([`Vec<u8>`]), contents with addresses of their own, or a `Result`,
/// `Option` or [`Outcome`] of these. `None` means that there is no such resource.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be the contents of a resource")]
pub trait IntoContents {
    /// Turns the value into the contents of the resource at `uri`.
    ///
    /// # Errors
    ///
    /// Fails with the protocol error that the client is to get instead, or with nothing if there is no such resource.
    fn into_contents(self, uri: &str) -> Result<Outcome<ReadResourceResult>, Option<ErrorObject>>;
}

type Contents = Result<Outcome<ReadResourceResult>, Option<ErrorObject>>;

impl IntoContents for ReadResourceResult {
    fn into_contents(self, _: &str) -> Contents {
        // RS-4: nothing is not a content.
        if self.contents.is_empty() { Err(None) } else { Ok(Outcome::Complete(self)) }
    }
}

impl IntoContents for InputRequiredResult {
    fn into_contents(self, _: &str) -> Contents {
        Ok(Outcome::InputRequired(Box::new(self)))
    }
}

impl<T: IntoContents> IntoContents for Outcome<T> {
    fn into_contents(self, uri: &str) -> Contents {
        match self {
            Self::Complete(value) => value.into_contents(uri),
            Self::InputRequired(questions) => Ok(Outcome::InputRequired(questions)),
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

/// How long, and by whom, what was read may be kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    ttl_ms: Option<i64>,
    scope: Option<CacheScope>,
    mime_type: Option<String>,
}

impl Cache {
    fn complete(&self, result: &mut Outcome<ReadResourceResult>) {
        let Outcome::Complete(result) = result else { return };
        // C-2: a reader may say anything, but a client must not be told less than nothing.
        result.ttl_ms = result.ttl_ms.or(self.ttl_ms).map(|ttl| ttl.max(0));
        if result.cache_scope.is_none() {
            result.cache_scope.clone_from(&self.scope);
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

/// Makes the answer of what a reader returned.
fn answer<R: IntoContents>(ctx: &RequestContext, uri: &str, cache: &Cache, read: R) -> Result<Response, ErrorObject> {
    let not_found =
        |error: Option<ErrorObject>| error.unwrap_or_else(|| ErrorObject::resource_not_found(ctx.revision(), uri));
    let mut result = read.into_contents(uri).map_err(not_found)?;
    cache.complete(&mut result);
    Ok(Response::of(result, Response::Contents))
}

/// A resource with a fixed address: made by [`resource`].
#[derive(Clone)]
#[must_use = "a resource that is not added to a server does nothing"]
pub struct Resource {
    pub(crate) definition: mcp_types::Resource,
    pub(crate) handler: Arc<dyn Fn(RequestContext, Cache) -> ResponseFuture + Send + Sync>,
    pub(crate) cache: Cache,
}

/// Makes a resource of an async function that reads it.
pub fn resource<F, Fut, R>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Resource
where
    F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoContents + 'static,
{
    let uri = uri.into();
    let address: Arc<str> = uri.as_str().into();
    let handler = Arc::new(move |ctx: RequestContext, cache: Cache| -> ResponseFuture {
        let (reading, uri) = (read(ctx.clone()), Arc::clone(&address));
        Box::pin(async move { answer(&ctx, &uri, &cache, reading.await) })
    });
    Resource { definition: mcp_types::Resource::new(name, uri), handler, cache: Cache::default() }
}

/// Makes a resource of a text that never changes.
pub fn text_resource(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Resource {
    let text: Arc<str> = text.into().into();
    resource(uri, name, move |_| ready(text.to_string())).mime_type("text/plain")
}

/// Makes a resource of bytes that never change.
pub fn blob_resource(uri: impl Into<String>, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Resource {
    let bytes: Arc<[u8]> = bytes.into().into();
    resource(uri, name, move |_| ready(bytes.to_vec())).mime_type("application/octet-stream")
}

impl Resource {
    pub(crate) fn read(&self, ctx: RequestContext) -> ResponseFuture {
        (self.handler)(ctx, self.cache.clone())
    }

    /// The size of the contents, in bytes.
    pub fn size(mut self, bytes: i64) -> Self {
        self.definition.size = Some(bytes);
        self
    }
}

type TemplateHandler = Arc<dyn Fn(RequestContext, RequestedUri<'_>, Cache) -> ResponseFuture + Send + Sync>;

/// Resources whose addresses follow a template: made by [`template`].
#[derive(Clone)]
#[must_use = "a template that is not added to a server does nothing"]
pub struct Template {
    pub(crate) definition: mcp_types::ResourceTemplate,
    pub(crate) template: Option<UriTemplate>,
    handler: TemplateHandler,
    cache: Cache,
    pub(crate) completers: Completers,
    pub(crate) fault: Option<String>,
}

/// Makes resources of an async function that reads any whose address matches a template (RFC 6570).
///
/// The function gets the variables that the template found in the address.
pub fn template<F, Fut, R>(uri_template: impl Into<String>, name: impl Into<String>, read: F) -> Template
where
    F: Fn(RequestContext, UriVariables) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoContents + 'static,
{
    let uri_template = uri_template.into();
    let parsed = UriTemplate::parse(&uri_template);
    let fault = parsed.as_ref().err().map(ToString::to_string);
    let handler = Arc::new(move |ctx: RequestContext, address: RequestedUri<'_>, cache: Cache| -> ResponseFuture {
        let uri = address.uri.to_owned();
        let reading = read(ctx.clone(), address.variables);
        Box::pin(async move { answer(&ctx, &uri, &cache, reading.await) })
    });
    Template {
        definition: mcp_types::ResourceTemplate::new(name, uri_template),
        template: parsed.ok(),
        handler,
        cache: Cache::default(),
        completers: Completers::default(),
        fault,
    }
}

impl Template {
    pub(crate) fn read(&self, ctx: RequestContext, address: RequestedUri<'_>) -> ResponseFuture {
        (self.handler)(ctx, address, self.cache.clone())
    }

    /// Suggests values for a variable while it is typed.
    pub fn complete(mut self, variable: &str, completer: impl Completer) -> Self {
        let is_known = self.template.as_ref().is_none_or(|template| template.variables().any(|name| name == variable));
        if !is_known {
            self.fault.get_or_insert_with(|| format!("there is no variable `{variable}` to complete"));
        }
        self.completers.insert(variable, completer);
        self
    }
}

/// What resources have, whatever their addresses.
macro_rules! readable {
    ($($kind:ident),*) => {$(
        impl $kind {
            /// The kind of contents, which they get unless the reader says otherwise.
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                let mime_type = mime_type.into();
                self.cache.mime_type = Some(mime_type.clone());
                self.definition.mime_type = Some(mime_type);
                self
            }

            /// Who it is for, how important it is, when it last changed.
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// How long what was read stays fresh, and who may share it. Default: what the server says.
            pub fn cache(mut self, ttl_ms: i64, scope: CacheScope) -> Self {
                (self.cache.ttl_ms, self.cache.scope) = (Some(ttl_ms.max(0)), Some(scope));
                self
            }
        }
    )*};
}

readable!(Resource, Template);
definition_setters!(Resource: "What the resource is.", Template: "What the resources are.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_may_ask_before_it_answers() {
        let read = Outcome::Complete("text").into_contents("a:b");
        let Ok(Outcome::Complete(result)) = read else { panic!("expected contents, found {read:?}") };
        assert_eq!(result.contents, [ResourceContents::text("a:b", "text")]);
        assert_eq!(Outcome::Complete(None::<String>).into_contents("a:b"), Err(None));
        let asks = || InputRequiredResult::default().request_state("round 1");
        let asked = Outcome::<String>::from(asks()).into_contents("a:b");
        assert_eq!(asked, Ok(Outcome::InputRequired(Box::new(asks()))));
    }
}
