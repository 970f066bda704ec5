//! Protocol versions and revisions.

use std::fmt;

use crate::codec::open_set::open_set;

open_set! {
    /// A protocol version as sent by a peer, which may be unknown.
    ///
    /// Versions are dates and ordered as strings, so unknown versions have an order and an [`era`](Self::era), too.
    pub struct ProtocolVersion {
        /// 2024-11-05, the first published revision.
        V2024_11_05 = "2024-11-05",
        /// 2025-03-26: Streamable HTTP, batches, audio, tool annotations.
        V2025_03_26 = "2025-03-26",
        /// 2025-06-18: structured results, elicitation, resource links, titles.
        V2025_06_18 = "2025-06-18",
        /// 2025-11-25: URL elicitation, sampling with tools, icons, experimental tasks.
        V2025_11_25 = "2025-11-25",
        /// 2026-07-28: stateless requests, multi round-trip requests, listen streams.
        V2026_07_28 = "2026-07-28",
    }
}

impl ProtocolVersion {
    /// Returns the revision with this version, if it is known.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.as_str().parse().ok()
    }

    /// Returns the era of the version: legacy if it sorts before 2026-07-28, even if it is unknown or not a date.
    ///
    /// ```
    /// use mcp_types::{Era, ProtocolVersion};
    ///
    /// assert_eq!(ProtocolVersion::V2025_11_25.era(), Era::Legacy);
    /// assert_eq!(ProtocolVersion::from("2027-01-01").era(), Era::Modern);
    /// ```
    #[must_use]
    pub fn era(&self) -> Era {
        if self.as_str() < Revision::V2026_07_28.as_str() { Era::Legacy } else { Era::Modern }
    }
}

impl std::str::FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(UnknownRevision)
    }
}

/// The error of parsing an unknown revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRevision;

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol revision")
    }
}

impl std::error::Error for UnknownRevision {}

impl From<Revision> for ProtocolVersion {
    fn from(revision: Revision) -> Self {
        Self::from(revision.as_str())
    }
}

/// A known revision of the protocol, ordered from the oldest to the newest.
///
/// [`ProtocolVersion`] is its wire format, which may have unknown values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision with an `initialize` handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// Returns the protocol version as sent on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era of the revision.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
            Self::V2026_07_28 => Era::Modern,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An era of the protocol: its revisions with sessions, or those without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "code that serves both eras must not forget one")]
pub enum Era {
    /// Up to 2025-11-25: a session that begins with the `initialize` handshake.
    Legacy,
    /// Since 2026-07-28: every request is self-contained.
    Modern,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_and_open() {
        let draft = ProtocolVersion::from("2099-01-01");
        assert!(ProtocolVersion::V2026_07_28 < draft);
        assert_eq!(draft.revision(), None);
        assert_eq!(draft.era(), Era::Modern);
        assert_eq!(ProtocolVersion::from("v999").era(), Era::Modern);
        for revision in Revision::ALL {
            let version = ProtocolVersion::from(revision);
            assert_eq!(version.revision(), Some(revision));
            assert_eq!(version.era(), revision.era());
        }
        assert!(Revision::ALL.is_sorted());
    }
}
