//! Protocol versions: what peers name, and what this crate knows.

use std::fmt;

use crate::codec::open_set::open_set;

open_set! {
    /// A protocol version as a peer names it.
    ///
    /// Versions are dates, so their order as text is their order in time. A peer may name one that
    /// nobody here knows; it still has a place in that order and an [`era`](Self::era).
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
    /// The revision that this version names, if this crate knows it.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.as_str().parse().ok()
    }

    /// The era that the version belongs to, or would belong to: legacy if it sorts before 2026-07-28.
    ///
    /// That holds for names that are not dates as well, such as `v999`, which is modern.
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

/// The name of a revision that this crate does not know.
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

/// A revision of the protocol that this crate implements, oldest first.
///
/// [`ProtocolVersion`] is what travels; a `Revision` is what remains once a version turned out to be a known one.
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

    /// The newest revision that opens with a handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The revision's name on the wire.
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

    /// The era of the revision.
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

/// The two ways in which peers talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "code that serves both eras must not forget one")]
pub enum Era {
    /// Up to 2025-11-25: a handshake, then a session that both sides remember.
    Legacy,
    /// Since 2026-07-28: every request stands alone.
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
