//! What a call mends by itself.

use mcp_kernel::CallError;
use mcp_types::{Era, ErrorCode, Method, Revision, UnsupportedProtocolVersionData};

use crate::call::tool_refresh::relist;
use crate::client::Client;
use crate::transport::TransportKind;

/// What was tried to mend a call: each kind of mending is tried once. A server is found to be of the other era once.
#[derive(Default)]
pub(crate) struct Attempt {
    in_new_session: bool,
    with_other_version: bool,
    with_other_headers: bool,
}

impl Attempt {
    /// Whether what went wrong with a call that was made in `revision` is mended, so that it can be made again.
    pub(crate) async fn mend(
        &mut self,
        client: &Client,
        method: &Method,
        revision: Revision,
        error: &CallError,
    ) -> bool {
        let shared = &client.shared;
        match error {
            // The server has not seen the call, and a new session is on its way.
            CallError::SessionLost => is_first(&mut self.in_new_session),
            CallError::Rejected(error) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                if !is_first(&mut self.with_other_version) {
                    return false;
                }
                let offered = error.data.as_ref().and_then(|data| data.decode::<UnsupportedProtocolVersionData>().ok());
                let is_switched = offered
                    .is_some_and(|offered| shared.with(|core, now| core.switch_version(now, &offered.supported)));
                // Another call may have met the same before.
                is_switched || next_revision(client).await.is_some_and(|next| next != revision)
            }
            CallError::Rejected(error)
                if error.code == ErrorCode::HEADER_MISMATCH
                    && *method == Method::TOOLS_CALL
                    && revision.era() == Era::Modern
                    && shared.settings.kind == TransportKind::Requests =>
            {
                // H-80: the headers follow from a schema that may be out of date.
                is_first(&mut self.with_other_headers) && relist(client).await
            }
            // DU-27: an outage or a missing token says nothing about the era.
            CallError::Status { status: 401 | 403 | 500.., .. } => false,
            // DU-41: what was known about the server may not be so any more; this call or another finds out.
            CallError::Rejected(_) | CallError::Status { .. } | CallError::InvalidAnswer => {
                shared.with(|core, now| core.reconsider(now));
                next_revision(client).await.is_some_and(|next| next.era() != revision.era())
            }
            CallError::Cancelled | CallError::TimedOut | CallError::Disconnected | _ => false,
        }
    }
}

fn is_first(was_tried: &mut bool) -> bool {
    !std::mem::replace(was_tried, true)
}

/// What the next call will be made in.
async fn next_revision(client: &Client) -> Option<Revision> {
    client.ready().await.ok()?;
    client.revision()
}
