//! The content of a sealed state.

use mcp_types::{InputRequest, OrderedMap, RawJson, RawObject};
use serde::{Deserialize, Serialize};

use crate::binding::Hasher;
use crate::round::ResumeError;

/// The version of what is written below; another one is not read.
const VERSION: u8 = 1;

/// The input responses of earlier rounds and the results of completed steps.
///
/// It travels to the client and back inside the sealed state, so it is kept small.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    #[serde(rename = "v")]
    version: u8,
    /// Digests of the input requests that the client received in the last round.
    #[serde(rename = "q", default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(crate) requested: OrderedMap<RequestDigest>,
    #[serde(rename = "a", default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(crate) responses: OrderedMap<RecordedResponse>,
    #[serde(rename = "s", default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(crate) steps: OrderedMap<RawJson>,
}

/// An input response, with the digest of its request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedResponse {
    #[serde(rename = "q")]
    pub(crate) request: RequestDigest,
    #[serde(rename = "a")]
    pub(crate) response: RawObject,
}

/// The digest of an input request: a response counts only for the request that it was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestDigest(String);

impl RequestDigest {
    /// Computes the digest of a request.
    #[must_use]
    pub fn of(request: &InputRequest) -> Self {
        let mut hasher = Hasher::default();
        // A request that cannot be serialized is never sent.
        hasher.part(&serde_json::to_vec(request).unwrap_or_default());
        let digest = hasher.finish();
        Self(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self { version: VERSION, requested: OrderedMap::new(), responses: OrderedMap::new(), steps: OrderedMap::new() }
    }
}

impl Journal {
    /// Returns the results of completed steps by their keys.
    pub fn steps(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.steps.iter()
    }

    /// Returns the input responses by the keys of their requests, with the digests of these.
    pub fn responses(&self) -> impl Iterator<Item = (&str, &RequestDigest, &RawObject)> {
        self.responses.iter().map(|(key, recorded)| (key, &recorded.request, &recorded.response))
    }

    /// Serializes the journal, to be sealed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Maps with string keys and raw JSON values can always be serialized.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses the journal of an opened state.
    ///
    /// # Errors
    ///
    /// Returns an error if an incompatible version of this crate wrote it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ResumeError> {
        let text = str::from_utf8(bytes).map_err(|_| ResumeError::UnknownJournal)?;
        let journal: Self =
            RawObject::parse(text).and_then(|text| text.decode()).map_err(|_| ResumeError::UnknownJournal)?;
        if journal.version == VERSION { Ok(journal) } else { Err(ResumeError::UnknownJournal) }
    }
}
