//! Calls of tools with handles among their arguments.

use std::error::Error as _;
use std::sync::Arc;

use mcp_types::ErrorObject;

use crate::handlers::tool::{ArgumentErrors, Tool};
use crate::handles::decoding::{self, FoundHandles};
use crate::serve::context::RequestContext;
use crate::serve::dispatch::arguments_of;
use crate::serve::endpoint::ResponseFuture;

/// Opens the handles in the arguments of a call, and then calls the handler.
pub(crate) fn call(
    tool: Arc<Tool>,
    find: fn(&str) -> FoundHandles,
    ctx: RequestContext,
    errors: ArgumentErrors,
) -> ResponseFuture {
    Box::pin(async move {
        let this = ctx.clone();
        let arguments = arguments_of(this.params());
        let FoundHandles::Valid(found) = find(arguments) else {
            return decoding::without_opening(|| (tool.handler)(ctx, arguments, errors)).await;
        };
        let mut opened = Vec::with_capacity(found.len());
        for handle in found {
            let handle = handle.open(&this).await.map_err(|error| {
                let cause = error.source().map(tracing::field::display);
                tracing::error!(target: "mcp", %error, cause, "the handles of a call cannot be opened");
                ErrorObject::internal_error(error.to_string())
            })?;
            opened.push(handle);
        }
        decoding::with_opened(opened, || (tool.handler)(ctx, arguments, errors)).await
    })
}
