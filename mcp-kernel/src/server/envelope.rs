//! The `_meta` of a request, as far as the kernel uses it.

use mcp_types::jsonrpc::{Payload, Request};
use mcp_types::meta::{TraceContext, key};
use mcp_types::{LoggingLevel, ProgressToken, RequestMeta};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::admission::{Refusal, invalid_meta};
use crate::handled_message::trace_context;
use crate::limits::Limits;

/// The `_meta` of a request. What is rarely used, or the same for most requests of a client, is not decoded.
#[derive(Default)]
pub(super) struct RequestEnvelope<'a> {
    pub(super) progress_token: Option<ProgressToken>,
    pub(super) protocol_version: Option<&'a RawValue>,
    pub(super) client_capabilities: Option<&'a RawValue>,
    pub(super) client_info: Option<&'a RawValue>,
    pub(super) log_level: Option<LoggingLevel>,
    traceparent: Option<&'a RawValue>,
    tracestate: Option<&'a RawValue>,
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
        let malformed = || malformed_meta(Some(params));
        let Some(members) = params.meta_members().map_err(|_| malformed())? else { return Ok(None) };
        let mut envelope = Self::default();
        for (name, value) in members {
            // The same as absent.
            if value.get() == "null" {
                continue;
            }
            let raw = match name {
                key::PROTOCOL_VERSION => &mut envelope.protocol_version,
                key::CLIENT_CAPABILITIES => &mut envelope.client_capabilities,
                key::CLIENT_INFO => &mut envelope.client_info,
                key::TRACEPARENT => &mut envelope.traceparent,
                key::TRACESTATE => &mut envelope.tracestate,
                key::BAGGAGE => &mut envelope.baggage,
                key::PROGRESS_TOKEN => {
                    envelope.progress_token = Some(decode(value).ok_or_else(malformed)?);
                    continue;
                }
                key::LOG_LEVEL => {
                    envelope.log_level = Some(decode(value).ok_or_else(malformed)?);
                    continue;
                }
                _ => continue,
            };
            *raw = Some(value);
        }
        Ok(Some(envelope))
    }

    /// The trace context, without what is malformed.
    pub(super) fn trace_context(&self) -> Option<Box<TraceContext>> {
        if self.traceparent.is_none() && self.tracestate.is_none() && self.baggage.is_none() {
            return None;
        }
        Some(Box::new(trace_context(self.traceparent, self.tracestate, self.baggage)))
    }
}

fn decode<T: DeserializeOwned>(value: &RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

/// Returns the refusal of a request with invalid `_meta`. It is decoded again as a whole, so that the error names the first
/// invalid member.
pub(super) fn malformed_meta(params: Option<&Payload<'_>>) -> Refusal {
    let fault = params.and_then(|params| params.decode_meta::<RequestMeta>().err());
    fault.map_or_else(|| invalid_meta(&"it is not valid"), |fault| invalid_meta(&fault))
}
