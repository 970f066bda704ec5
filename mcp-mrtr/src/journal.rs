//! What a handler must find again in the next round.

use mcp_types::{InputRequest, OrderedMap, RawJson, RawObject};
use serde::{Deserialize, Serialize};

use crate::binding::Hasher;
use crate::round::Skew;

/// The version of what is written below; another one is not read.
const VERSION: u8 = 1;

/// The answers of earlier rounds and the results of steps that are done.
///
/// It travels to the client and back inside the sealed state, so it holds nothing but what is needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    #[serde(rename = "v")]
    version: u8,
    /// Questions that the client was asked, with their shapes.
    #[serde(rename = "q", default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(crate) asked: OrderedMap<Shape>,
    #[serde(rename = "a", default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(crate) answers: OrderedMap<Answer>,
    #[serde(rename = "s", default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(crate) steps: OrderedMap<RawJson>,
    /// What the application wants to find again.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<RawJson>,
}

/// An answer, and what it is the answer to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    #[serde(rename = "q")]
    pub(crate) shape: Shape,
    #[serde(rename = "a")]
    pub(crate) value: RawObject,
}

/// Tells one question from another: an answer to a different one is not an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape(String);

impl Shape {
    pub(crate) fn of(question: &InputRequest) -> Self {
        let mut hasher = Hasher::default();
        // What cannot be written is never asked, so nothing is told apart by it.
        hasher.part(&serde_json::to_vec(question).unwrap_or_default());
        let digest = hasher.finish();
        Self(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            version: VERSION,
            asked: OrderedMap::new(),
            answers: OrderedMap::new(),
            steps: OrderedMap::new(),
            state: None,
        }
    }
}

impl Journal {
    /// Writes the journal, to be sealed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // Maps with text for names, and JSON, can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a journal that was opened.
    ///
    /// # Errors
    ///
    /// Fails if another version of this crate wrote it in another way.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Skew> {
        let text = str::from_utf8(bytes).map_err(|_| Skew::UnknownJournal)?;
        let journal: Self = RawObject::parse(text).and_then(|text| text.decode()).map_err(|_| Skew::UnknownJournal)?;
        if journal.version == VERSION { Ok(journal) } else { Err(Skew::UnknownJournal) }
    }

    /// What the application put in, in the round before.
    #[must_use]
    pub fn state(&self) -> Option<&RawJson> {
        self.state.as_ref()
    }

    /// Has the application find something again in the next round.
    pub fn set_state(&mut self, state: RawJson) {
        self.state = Some(state);
    }
}
