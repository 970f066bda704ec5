//! The arguments of tool calls.

use mcp_types::jsonrpc::{Limits, PayloadBuf};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::handlers::error::HandlerError;
#[cfg(feature = "mrtr")]
pub(crate) use crate::handles::decoding::FindHandles;
use crate::serve::context::RequestContext;

/// Finds the handles in arguments. Without the feature `mrtr` there are none.
#[cfg(not(feature = "mrtr"))]
pub(crate) type FindHandles = std::convert::Infallible;

/// The arguments of a request as text. They may be absent.
pub(crate) fn arguments_of(params: &PayloadBuf) -> &str {
    text_of(params.get("arguments"))
}

/// The text of arguments, which may be absent.
pub(crate) fn text_of(arguments: Option<&RawValue>) -> &str {
    arguments.map(RawValue::get).filter(|text| *text != "null").unwrap_or("{}")
}

/// Decodes the arguments of a call. The error names the member that is invalid.
pub(crate) fn decode<A: DeserializeOwned>(ctx: &RequestContext) -> Result<A, String> {
    let arguments = arguments_of(ctx.params());
    serde_json::from_str(arguments).map_err(|fault| describe_invalid_member::<A>(arguments, &fault))
}

/// Decodes the arguments of a call, after the handles in them were opened.
pub(crate) async fn decode_with_handles<A: DeserializeOwned>(
    find: Option<FindHandles>,
    ctx: &RequestContext,
) -> Result<Result<A, String>, HandlerError> {
    match find {
        None => Ok(decode(ctx)),
        #[cfg(feature = "mrtr")]
        Some(find) => Ok(crate::handles::call::open_handles(find, ctx, || decode(ctx)).await?),
        #[cfg(not(feature = "mrtr"))]
        Some(never) => match never {},
    }
}

/// Finds the handles in arguments of a type.
#[cfg_attr(not(feature = "mrtr"), expect(clippy::extra_unused_type_parameters, reason = "there are no handles"))]
pub(crate) fn find_handles<A: DeserializeOwned>() -> Option<FindHandles> {
    #[cfg(feature = "mrtr")]
    return Some(crate::handles::decoding::find_all::<A>);
    #[cfg(not(feature = "mrtr"))]
    None
}

/// Names the member that is invalid, by parsing the arguments a second time.
fn describe_invalid_member<A: DeserializeOwned>(arguments: &str, fault: &serde_json::Error) -> String {
    let named = PayloadBuf::parse(arguments, &Limits::default()).and_then(|payload| payload.decode::<A>().map(drop));
    named.err().map_or_else(|| fault.to_string(), |named| named.to_string())
}
