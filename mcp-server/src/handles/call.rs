//! Calls of tools with handles among their arguments.

use std::error::Error as _;
use std::sync::Arc;

use mcp_types::ErrorObject;

use crate::handlers::tool::{ArgumentErrors, Tool};
use crate::handles::decoding::{self, FindHandles, FoundHandles};
use crate::handles::error::HandleError;
use crate::serve::context::RequestContext;
use crate::serve::dispatch::arguments_of;
use crate::serve::endpoint::ResponseFuture;

/// Opens the handles in the arguments of a call, and then calls the handler.
pub(crate) fn call(tool: Arc<Tool>, find: FindHandles, ctx: RequestContext, errors: ArgumentErrors) -> ResponseFuture {
    Box::pin(async move {
        let this = ctx.clone();
        let arguments = arguments_of(this.params());
        let mut opened = Vec::new();
        loop {
            let (found, before) = find(arguments, opened);
            opened = before;
            let FoundHandles::Valid(found) = found else {
                if opened.is_empty() {
                    return decoding::without_opening(|| (tool.handler)(ctx, arguments, errors)).await;
                }
                break;
            };
            let mut is_valid = true;
            for handle in found {
                let handle = handle.open(&this).await.map_err(|error| unavailable(&error))?;
                is_valid &= handle.is_valid();
                opened.push(handle);
            }
            if is_valid {
                break;
            }
        }
        decoding::with_opened(opened, || (tool.handler)(ctx, arguments, errors)).await
    })
}

/// The error of a call whose handles cannot be opened, though they may be valid.
fn unavailable(error: &HandleError) -> ErrorObject {
    let cause = error.source().map(tracing::field::display);
    tracing::error!(target: "mcp", %error, cause, "the handles of a call cannot be opened");
    ErrorObject::internal_error(error.to_string())
}
