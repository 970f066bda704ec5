//! What a peer may ask of the parser.

use crate::json::scan::MAX_DEPTH;

/// Bounds the work and the memory that one incoming text can cost.
///
/// The size of the text is the transport's to bound: it is in memory before a parser sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many objects and arrays may be open at once, the message itself included.
    ///
    /// The default is 128, so that whatever passes can also be read by `serde_json`, which gives
    /// up at that depth. Higher values cost nothing in the parser, which does not recurse, but
    /// decoding what lies deeper fails. Values above [`MAX_DEPTH`](Self::MAX_DEPTH) mean that
    /// maximum.
    pub depth: usize,
    /// How many messages a batch may hold.
    ///
    /// The default is 100. Each message costs some hundred bytes and, further up, an answer, so
    /// this is also how far one text is amplified.
    pub batch: usize,
    /// How many members `params`, `result` and `error` may have at their top level.
    ///
    /// The default is 1024, far above any message of the protocol. Each member costs about
    /// forty bytes of index, as little as six bytes of text pay for them.
    pub members: usize,
}

impl Limits {
    /// The greatest depth that can be allowed.
    pub const MAX_DEPTH: usize = MAX_DEPTH;

    /// Replaces [`depth`](Self::depth).
    #[must_use]
    pub fn with_depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// Replaces [`batch`](Self::batch).
    #[must_use]
    pub fn with_batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// Replaces [`members`](Self::members).
    #[must_use]
    pub fn with_members(self, members: usize) -> Self {
        Self { members, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 128, batch: 100, members: 1024 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setters_replace_one_limit_each() {
        let limits = Limits::default().with_depth(1).with_batch(2).with_members(3);
        assert_eq!((limits.depth, limits.batch, limits.members), (1, 2, 3));
    }
}
