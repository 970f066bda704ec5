//! Task ids.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use mcp_types::base64::url_safe;

/// The id of a task: 256 bits from the operating system's random source, on the wire as 43 characters of URL-safe Base64.
///
/// The id of a task of an anonymous caller gives access to it, so [`Debug`](fmt::Debug) shows only its beginning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId([u8; 32]);

/// The error of creating an id when the operating system's random source fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system's random source failed")]
#[non_exhaustive]
pub struct NoRandomness;

/// The error of parsing a task id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task id has 43 characters of URL-safe Base64")]
#[non_exhaustive]
pub struct InvalidTaskId;

impl TaskId {
    /// Creates a random id.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system's random source fails.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self(bytes))
    }

    /// Creates an id from its bytes, which must be unpredictable.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, InvalidTaskId> {
        // Not decoded before its length is known, as a client may send any text.
        if text.len() != ID_CHARS {
            return Err(InvalidTaskId);
        }
        let bytes = url_safe::decode(text).map_err(|_| InvalidTaskId)?;
        bytes.try_into().map(Self).map_err(|_| InvalidTaskId)
    }
}

/// The length of 32 bytes in unpadded Base64.
const ID_CHARS: usize = 43;

impl Hash for TaskId {
    /// Hashes a quarter of the id, as its bytes are random.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&url_safe::encode(&self.0))
    }
}

impl fmt::Debug for TaskId {
    /// Shows only the beginning, as the whole id may give access to the task.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, ..] = self.0;
        write!(f, "TaskId({a:02x}{b:02x}{c:02x}..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An id can be parsed from its text, and from no other text.
    // covers: B-84
    #[test]
    fn ids_survive() {
        let id = TaskId::random().unwrap();
        let text = id.to_string();
        assert_eq!((text.len(), text.parse()), (43, Ok(id)));
        assert_ne!(TaskId::random().unwrap(), id);
        for wrong in ["", "a", &text[1..], &format!("{text}A"), &format!("{}=", &text[1..]), &"ü".repeat(43)] {
            assert_eq!(wrong.parse::<TaskId>(), Err(InvalidTaskId), "{wrong}");
        }
        // The last character has two unused bits.
        let last = format!("{}B", &text[..42]);
        assert_eq!(last.parse::<TaskId>(), Err(InvalidTaskId));
        assert!(format!("{id:?}").len() < 24, "logs do not contain the whole id");
    }
}
