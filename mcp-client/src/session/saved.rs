//! Sessions that outlive their client.

use std::fmt;

use mcp_types::{Implementation, Revision, ServerCapabilities};
use serde::{Deserialize, Serialize};

use crate::detected_revision::{read_revision, write_revision};
use crate::transport::CredentialFingerprint;

/// A legacy session over HTTP, which [`ClientBuilder::resume_session`](crate::ClientBuilder::resume_session) continues
/// without a handshake, such as after a restart of the application.
///
/// Keep it secret: the session id lets others act as this client.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedSession {
    /// The session id.
    pub id: String,
    /// The negotiated revision.
    #[serde(serialize_with = "write_revision", deserialize_with = "read_revision")]
    pub revision: Revision,
    /// The capabilities of the server.
    pub capabilities: Option<ServerCapabilities>,
    /// The name and version of the server.
    pub info: Option<Implementation>,
    /// The instructions of the server.
    pub instructions: Option<String>,
    /// The credentials that the session was initialized with, if they are known. With other credentials the session counts
    /// as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<CredentialFingerprint>,
}

impl fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The session id is a secret.
        f.debug_struct("SavedSession")
            .field("revision", &self.revision)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
