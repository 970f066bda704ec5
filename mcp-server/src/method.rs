//! Methods beyond the protocol's own.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use mcp_types::{ErrorObject, RawObject};

use crate::context::RequestContext;

/// What answers a method of an extension.
pub(crate) type Custom =
    Arc<dyn Fn(RequestContext, RawObject) -> BoxFuture<'static, Result<RawObject, ErrorObject>> + Send + Sync>;

pub(crate) fn custom<F, Fut>(handler: F) -> Custom
where
    F: Fn(RequestContext, RawObject) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<RawObject, ErrorObject>> + Send + 'static,
{
    Arc::new(move |ctx, params| handler(ctx, params).boxed())
}
