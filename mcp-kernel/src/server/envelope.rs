//! The `_meta` of a request, as far as the kernel uses it.

use mcp_types::jsonrpc::{Payload, Request};
use mcp_types::meta::TraceContext;
use mcp_types::{LoggingLevel, ProgressToken, ProtocolVersion, RequestMeta};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::admission::{Refusal, invalid_meta};
use crate::limits::Limits;

/// The `_meta` of a request. What is rarely used, or the same for most requests of a client, is not decoded.
#[derive(Deserialize)]
pub(super) struct RequestEnvelope<'a> {
    #[serde(rename = "progressToken")]
    pub(super) progress_token: Option<ProgressToken>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) protocol_version: Option<ProtocolVersion>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    pub(super) client_info: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    pub(super) log_level: Option<LoggingLevel>,
    #[serde(borrow)]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow)]
    tracestate: Option<&'a RawValue>,
    #[serde(borrow)]
    baggage: Option<&'a RawValue>,
}

impl<'a> RequestEnvelope<'a> {
    /// Reads the `_meta` of a request, within its limit.
    // Inlined, because it returns a large value that would be copied once more.
    #[inline(always)]
    pub(super) fn read(request: &Request<'a>, limits: &Limits) -> Result<Option<Self>, Refusal> {
        let Some(params) = &request.params else { return Ok(None) };
        let limit = limits.max_meta_bytes;
        if params.as_str().len() > limit && params.get("_meta").is_some_and(|meta| meta.get().len() > limit) {
            return Err(invalid_meta(&format_args!("more than {limit} bytes (`max_meta_bytes`)")));
        }
        params.decode_meta().map_err(|_| malformed_meta(Some(params)))
    }

    /// The trace context, without what is malformed.
    pub(super) fn trace_context(&self) -> Option<Box<TraceContext>> {
        if self.traceparent.is_none() && self.tracestate.is_none() && self.baggage.is_none() {
            return None;
        }
        let text = |raw: Option<&RawValue>| serde_json::from_str::<String>(raw?.get()).ok();
        let mut context = text(self.traceparent).and_then(TraceContext::new).unwrap_or_default();
        if let Some(tracestate) = text(self.tracestate) {
            context.set_tracestate(tracestate);
        }
        if let Some(baggage) = text(self.baggage) {
            context.set_baggage(baggage);
        }
        Some(Box::new(context))
    }
}

/// Returns the refusal of a request with invalid `_meta`. It is decoded again as a whole, so that the error names the first
/// invalid member.
pub(super) fn malformed_meta(params: Option<&Payload<'_>>) -> Refusal {
    let fault = params.and_then(|params| params.decode_meta::<RequestMeta>().err());
    fault.map_or_else(|| invalid_meta(&"it is not valid"), |fault| invalid_meta(&fault))
}
