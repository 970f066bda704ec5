//! What an earlier connection to a server has found out.

use mcp_kernel::client::{self as kernel, ServerFacts};
use mcp_types::{ProtocolVersion, Revision};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The revision that was detected for a server, and the server's description. Store it to skip the probe for the next
/// connection to the same server.
///
/// ```
/// use mcp_client::{Client, DetectedRevision};
/// # fn load() -> Result<String, std::io::Error> {
/// #     Ok(r#"{"revision":"2026-07-28","server":{"instructions":"Be kind."}}"#.to_owned())
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let detected: DetectedRevision = serde_json::from_str(&load()?)?;
/// assert_eq!(detected.server.instructions.as_deref(), Some("Be kind."));
/// let client = Client::builder("example", "1.0").detected_revision(detected);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DetectedRevision {
    /// The revision.
    #[serde(serialize_with = "write_revision", deserialize_with = "read_revision")]
    pub revision: Revision,
    /// Whether to probe a legacy server again, because it may have become modern. A child process gets the probe and
    /// `initialize` at the same time. Defaults to `false`.
    #[serde(default)]
    pub probe_again: bool,
    /// The capabilities, name and instructions that the server had then, which [`Client::server`](crate::Client::server)
    /// returns until there are newer ones. They may be those of a user: do not use them for another one, unless they
    /// [are public](ServerFacts::is_public).
    #[serde(default)]
    pub server: ServerFacts,
}

impl DetectedRevision {
    /// Creates a detected revision that does not have to be probed again, of a server without a description.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self { revision, probe_again: false, server: ServerFacts::default() }
    }

    /// Sets [`probe_again`](Self::probe_again).
    #[must_use]
    pub fn probe_again(self, probe_again: bool) -> Self {
        Self { probe_again, ..self }
    }

    pub(crate) fn of_kernel(detected: kernel::DetectedRevision, server: ServerFacts) -> Self {
        Self { revision: detected.revision, probe_again: detected.probe_again, server }
    }

    pub(crate) fn to_kernel(&self) -> kernel::DetectedRevision {
        kernel::DetectedRevision::new(self.revision).probe_again(self.probe_again)
    }
}

pub(crate) fn write_revision<S: Serializer>(revision: &Revision, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(revision.as_str())
}

pub(crate) fn read_revision<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Revision, D::Error> {
    let version = ProtocolVersion::deserialize(deserializer)?;
    version.revision().ok_or_else(|| serde::de::Error::custom("unknown protocol revision"))
}
