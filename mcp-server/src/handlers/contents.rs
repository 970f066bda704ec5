//! The contents of resources.

use mcp_types::{
    CacheScope, ErrorObject, InputRequiredResult, JsonObject, RawJson, RawObject, ReadResourceResult, ResourceContents,
};
use serde::Serialize;

use crate::handlers::error::{BoxError, HandlerError, unsupported};
use crate::handlers::error_text;
use crate::handlers::extract::Refusal;
use crate::handlers::tool_result::{Json, RoundResult};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::ResponseFuture;
use crate::serve::response::Response;

/// The types that a handler of a resource can return: text, bytes ([`Vec<u8>`]), [`Json`], [`ResourceContents`] with URIs of their
/// own, or a `Result`, `Option` or [`RoundResult`] of these. `None` means that there is no such resource.
///
/// The error of a `Result` is any error type, as with tools ([`IntoToolResult`](crate::IntoToolResult)). It becomes an internal
/// error unless a protocol error is found in it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the contents of a resource",
    note = "return text, bytes (`Vec<u8>`), `Json<T>`, `ResourceContents`, or an `Option` or `Result` of one of these",
    note = "the error of a `Result` is text, or a type that implements `std::error::Error + Send + Sync`"
)]
pub trait IntoContents {
    /// Returns why a handler with this result cannot be registered, if there is a reason.
    #[doc(hidden)]
    #[must_use]
    fn registration_fault() -> Option<&'static str> {
        None
    }

    /// Returns the MIME type of the contents, if it follows from the type.
    #[must_use]
    fn default_mime_type() -> Option<&'static str> {
        None
    }

    /// Converts the value into the contents of the resource at `uri`; `None` means that there is no such resource.
    ///
    /// # Errors
    ///
    /// Returns the error of the handler.
    fn into_contents(self, uri: &str) -> Result<Option<RoundResult<ReadResourceResult>>, HandlerError>;
}

type Contents = Result<Option<RoundResult<ReadResourceResult>>, HandlerError>;

impl IntoContents for ReadResourceResult {
    fn into_contents(self, _: &str) -> Contents {
        // RS-4: a result has contents.
        Ok((!self.contents.is_empty()).then_some(RoundResult::Complete(self)))
    }
}

impl IntoContents for InputRequiredResult {
    fn into_contents(self, _: &str) -> Contents {
        Ok(Some(RoundResult::InputRequired(Box::new(self))))
    }
}

impl<T: IntoContents> IntoContents for RoundResult<T> {
    fn registration_fault() -> Option<&'static str> {
        T::registration_fault()
    }

    fn default_mime_type() -> Option<&'static str> {
        T::default_mime_type()
    }

    fn into_contents(self, uri: &str) -> Contents {
        match self {
            Self::Complete(value) => value.into_contents(uri),
            Self::InputRequired(input) => Ok(Some(RoundResult::InputRequired(input))),
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

impl<T: Serialize> IntoContents for Json<T> {
    fn default_mime_type() -> Option<&'static str> {
        Some("application/json")
    }

    fn into_contents(self, uri: &str) -> Contents {
        serde_json::to_string(&self.0)?.into_contents(uri)
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self, uri: &str) -> Contents {
        ResourceContents::blob(uri, self).into_contents(uri)
    }
}

impl<T: IntoContents> IntoContents for Option<T> {
    fn registration_fault() -> Option<&'static str> {
        T::registration_fault()
    }

    fn default_mime_type() -> Option<&'static str> {
        T::default_mime_type()
    }

    fn into_contents(self, uri: &str) -> Contents {
        self.map_or(Ok(None), |value| value.into_contents(uri))
    }
}

impl<T: IntoContents, E: Into<BoxError> + 'static> IntoContents for Result<T, E> {
    fn registration_fault() -> Option<&'static str> {
        unsupported::<E>().or_else(T::registration_fault)
    }

    fn default_mime_type() -> Option<&'static str> {
        T::default_mime_type()
    }

    fn into_contents(self, uri: &str) -> Contents {
        self.map_err(HandlerError::new)?.into_contents(uri)
    }
}

/// What the contents get unless the handler set it: cache TTL and scope, and the MIME type.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentsDefaults {
    pub(super) ttl_ms: Option<i64>,
    pub(super) scope: Option<CacheScope>,
    pub(super) mime_type: Option<String>,
    /// Whether some viewers cannot see the contents, so that they must not be cached for several users.
    pub(crate) is_restricted: bool,
}

impl ContentsDefaults {
    pub(crate) fn of_restricted(&self, is_restricted: bool) -> Self {
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

    /// Completes what a raw handler or middleware returned.
    fn complete_response(&self, mut response: Response) -> Result<Response, ErrorObject> {
        if let Response::Contents(contents) = &mut response {
            self.complete(contents);
        } else if let Response::Other(result) = &mut response
            && self.is_restricted
        {
            // It is not known what is in there, so all of it is for one user.
            let restricted = result.decode::<JsonObject>().and_then(|mut members| {
                members.insert("cacheScope", RawJson::new(&CacheScope::PRIVATE)?);
                RawObject::new(&members)
            });
            *result = restricted.map_err(|error| ErrorObject::internal_error(error.to_string()))?;
        }
        Ok(response)
    }
}

/// Reads with a raw handler or middleware, whose contents get the defaults of the resource, too.
pub(super) fn with_defaults(
    reading: impl Future<Output = Result<Response, ErrorObject>> + Send + 'static,
    defaults: ContentsDefaults,
) -> ResponseFuture {
    Box::pin(async move { defaults.complete_response(reading.await?) })
}

/// Converts what a handler returned into the result of the request.
pub(super) fn read_response<R: IntoContents>(
    ctx: &RequestContext,
    uri: &str,
    defaults: &ContentsDefaults,
    read: R,
) -> Result<Response, ErrorObject> {
    let read = read.into_contents(uri).map_err(|error| error_text::of_handler(ctx, &error))?;
    let mut result = read.ok_or_else(|| ErrorObject::resource_not_found(ctx.revision(), uri))?;
    if let RoundResult::Complete(result) = &mut result {
        defaults.complete(result);
    }
    Ok(Response::of(result, Response::Contents))
}

/// The response of a function that may not have been called.
pub(super) fn read_or_refuse<R: IntoContents>(
    ctx: &RequestContext,
    uri: &str,
    defaults: &ContentsDefaults,
    called: Result<R, Refusal>,
) -> Result<Response, ErrorObject> {
    match called {
        Ok(read) => read_response(ctx, uri, defaults, read),
        Err(Refusal::Failed(error)) => Err(error_text::of_handler(ctx, &error)),
        // The variables of a template do not fit.
        Err(Refusal::Arguments(_)) => Err(ErrorObject::resource_not_found(ctx.revision(), uri)),
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
            pub fn annotations(mut self, annotations: mcp_types::Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Sets the cache TTL and scope of the contents. Defaults to those of
            /// [`ServerBuilder::cache`](crate::ServerBuilder::cache).
            pub fn cache(mut self, ttl: std::time::Duration, scope: mcp_types::CacheScope) -> Self {
                (self.defaults.ttl_ms, self.defaults.scope) = (Some($crate::build::settings::milliseconds(ttl)), Some(scope));
                self
            }
        }
    )*};
}

pub(super) use readable;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_may_ask_before_it_answers() {
        let read = RoundResult::Complete("text").into_contents("a:b");
        let Ok(Some(RoundResult::Complete(result))) = read else { panic!("expected contents, found {read:?}") };
        assert_eq!(result.contents, [ResourceContents::text("a:b", "text")]);
        assert_eq!(RoundResult::Complete(None::<String>).into_contents("a:b").unwrap(), None);
        let asks = || InputRequiredResult::default().request_state("round 1");
        let asked = RoundResult::<String>::from(asks()).into_contents("a:b");
        assert_eq!(asked.unwrap(), Some(RoundResult::InputRequired(Box::new(asks()))));
    }
}
