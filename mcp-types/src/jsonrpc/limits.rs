//! Limits of the parser.

use crate::json::scan::MAX_DEPTH;

/// Limits for the cost of parsing one line or body.
///
/// Its size is limited by the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum nesting depth of objects and arrays, including the message itself.
    ///
    /// Defaults to 128, the recursion limit of `serde_json`. Higher values cost nothing in the parser, which does not
    /// recurse, but deeper values cannot be decoded. Values above [`MAX_SUPPORTED_DEPTH`](Self::MAX_SUPPORTED_DEPTH)
    /// are reduced to it.
    pub max_depth: usize,
    /// Maximum number of messages in a batch.
    ///
    /// Defaults to 100. Each message costs a few hundred bytes and a response.
    pub max_batch_size: usize,
    /// Maximum number of members of `params`, `result` and `error`, not counting nested members.
    ///
    /// Defaults to 1024. Each member, which takes at least six bytes of text, costs about forty bytes of index.
    pub max_members: usize,
}

impl Limits {
    /// The largest supported value of [`max_depth`](field@Self::max_depth).
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
