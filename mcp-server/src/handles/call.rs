//! Calls of tools with handles among their arguments.

use crate::handlers::arguments::arguments_of;
use crate::handles::decoding::{self, FindHandles, FoundHandles};
use crate::handles::error::HandleError;
use crate::serve::context::RequestContext;

/// Opens the handles in the arguments of a call, and then deserializes the arguments with `decode`.
pub(crate) async fn open_handles<R>(
    find: FindHandles,
    ctx: &RequestContext,
    decode: impl FnOnce() -> R,
) -> Result<R, HandleError> {
    let arguments = arguments_of(ctx.params());
    let mut opened = Vec::new();
    loop {
        let (found, before) = find(arguments, opened);
        opened = before;
        let FoundHandles::Valid(found) = found else {
            if opened.is_empty() {
                return Ok(decoding::without_opening(decode));
            }
            break;
        };
        let mut is_valid = true;
        for handle in found {
            let handle = handle.open(ctx).await?;
            is_valid &= handle.is_valid();
            opened.push(handle);
        }
        if is_valid {
            break;
        }
    }
    Ok(decoding::with_opened(opened, decode))
}
