//! A session that outlives its client.

use std::fmt;

use mcp_types::{Implementation, ProtocolVersion, Revision, ServerCapabilities};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::transport::CredentialFingerprint;

/// What is needed to go on with a legacy session over HTTP without a handshake: after a restart of the client, after
/// the network was away, or in another part of an application.
///
/// Whoever has it can speak in the name of the client: it is to be kept like a password.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedSession {
    /// The session.
    pub id: String,
    /// The revision that was agreed on.
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub revision: Revision,
    /// What the server offers.
    pub capabilities: Option<ServerCapabilities>,
    /// Who it says it is.
    pub info: Option<Implementation>,
    /// How it is best used.
    pub instructions: Option<String>,
    /// The credentials that it was begun with, as far as they are known. With others it is not resumed: the session counts
    /// as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<CredentialFingerprint>,
}

impl fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All but the session itself, which is not for logs.
        f.debug_struct("SavedSession")
            .field("revision", &self.revision)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

fn write<S: Serializer>(revision: &Revision, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(revision.as_str())
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Revision, D::Error> {
    let version = ProtocolVersion::deserialize(deserializer)?;
    version.revision().ok_or_else(|| serde::de::Error::custom("a revision that is not known"))
}
