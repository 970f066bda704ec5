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
    /// decoding what lies deeper fails. Values above [`MAX_SUPPORTED_DEPTH`](Self::MAX_SUPPORTED_DEPTH) mean that
    /// maximum.
    pub max_depth: usize,
    /// How many messages a batch may hold.
    ///
    /// The default is 100. Each message costs some hundred bytes and, further up, an answer, so
    /// this is also how far one text is amplified.
    pub max_batch_size: usize,
    /// How many members `params`, `result` and `error` may have at their top level.
    ///
    /// The default is 1024, far above any message of the protocol. Each member costs about
    /// forty bytes of index, as little as six bytes of text pay for them.
    pub max_members: usize,
}

impl Limits {
    /// The greatest depth that can be allowed.
    pub const MAX_SUPPORTED_DEPTH: usize = MAX_DEPTH;

    /// Sets the maximum nesting [depth](field@Self::max_depth).
    #[must_use]
    pub fn max_depth(self, max_depth: usize) -> Self {
        Self { max_depth, ..self }
    }

    /// Sets the maximum [size of a batch](field@Self::max_batch_size).
    #[must_use]
    pub fn max_batch_size(self, max_batch_size: usize) -> Self {
        Self { max_batch_size, ..self }
    }

    /// Sets the maximum number of [members](field@Self::max_members).
    #[must_use]
    pub fn max_members(self, max_members: usize) -> Self {
        Self { max_members, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: 128, max_batch_size: 100, max_members: 1024 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setters_replace_one_limit_each() {
        let limits = Limits::default().max_depth(1).max_batch_size(2).max_members(3);
        assert_eq!((limits.max_depth, limits.max_batch_size, limits.max_members), (1, 2, 3));
    }
}
