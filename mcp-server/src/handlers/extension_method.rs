//! Methods of extensions.

use std::sync::Arc;

use mcp_types::{ErrorObject, RawObject};

use crate::serve::context::RequestContext;
use crate::serve::endpoint::BoxFuture;

/// The handler of a method of an extension.
pub(crate) type ExtensionMethod =
    Arc<dyn Fn(RequestContext, RawObject) -> BoxFuture<Result<RawObject, ErrorObject>> + Send + Sync>;

pub(crate) fn boxed<F, Fut>(handler: F) -> ExtensionMethod
where
    F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
{
    Arc::new(move |ctx, params| Box::pin(handler(ctx, params)))
}
