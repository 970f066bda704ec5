//! Recovery from errors that a call can fix without its caller.

use mcp_kernel::CallError;
use mcp_types::{Era, ErrorCode, Method, Revision, UnsupportedProtocolVersionData};

use crate::call::tool_refresh::refresh_tools;
use crate::client::Client;
use crate::context::CallExtensions;
use crate::transport::TransportKind;

/// The recoveries of a call: each kind is tried once.
#[derive(Default)]
pub(crate) struct Recovery {
    renewed_session: bool,
    switched_version: bool,
    refreshed_tools: bool,
}

impl Recovery {
    /// Tries to fix the cause of an error of a call that was sent in `revision`. Returns whether to send the call again.
    pub(crate) async fn recover(
        &mut self,
        client: &Client,
        extensions: &CallExtensions,
        method: &Method,
        revision: Revision,
        error: &CallError,
    ) -> bool {
        let shared = &client.shared;
        match error {
            // The server has not executed the call, and the kernel initializes a new session.
            CallError::SessionLost => is_first(&mut self.renewed_session),
            CallError::Rejected(error) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                if !is_first(&mut self.switched_version) {
                    return false;
                }
                let offered = error.data.as_ref().and_then(|data| data.decode::<UnsupportedProtocolVersionData>().ok());
                let is_switched = offered
                    .is_some_and(|offered| shared.with(|core, now| core.switch_version(now, &offered.supported)));
                // Another call may have switched the version already.
                is_switched || next_revision(client).await.is_some_and(|next| next != revision)
            }
            CallError::Rejected(error)
                if error.code == ErrorCode::HEADER_MISMATCH
                    && *method == Method::TOOLS_CALL
                    && revision.era() == Era::Modern
                    && shared.settings.kind == TransportKind::RequestPerCall =>
            {
                // H-80: the headers follow from a schema that may be out of date.
                is_first(&mut self.refreshed_tools) && refresh_tools(client, extensions).await
            }
            // DU-27: an outage or a missing token says nothing about the era.
            CallError::Status { status: 401 | 403 | 500.., .. } => false,
            // DU-41: the detected revision may be wrong, so the server is probed again.
            CallError::Rejected(_) | CallError::Status { .. } | CallError::InvalidResponse => {
                shared.with(|core, now| core.probe_again(now));
                next_revision(client).await.is_some_and(|next| next.era() != revision.era())
            }
            CallError::Cancelled | CallError::TimedOut | CallError::Disconnected | _ => false,
        }
    }
}

fn is_first(was_tried: &mut bool) -> bool {
    !std::mem::replace(was_tried, true)
}

/// Waits for the connection; returns the revision of the next call.
async fn next_revision(client: &Client) -> Option<Revision> {
    client.ready().await.ok()?;
    client.revision()
}
