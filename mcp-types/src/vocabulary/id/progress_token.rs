//! Progress tokens.

use crate::RequestId;
use crate::vocabulary::id::id_type;

id_type! {
    /// The token of the progress notifications of a request: a string or an integer.
    ///
    /// The sender of the request chooses it. `1` and `"1"` are different tokens. Many implementations use the request
    /// id as the token, but peers must not rely on that.
    ///
    /// `Display` quotes strings. Clones are cheap.
    ///
    /// Since 2024-11-05.
    pub struct ProgressToken
}

impl From<&RequestId> for ProgressToken {
    fn from(id: &RequestId) -> Self {
        Self(id.as_id().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_may_serve_as_token() {
        assert_eq!(ProgressToken::from(&RequestId::from("a")), ProgressToken::from("a"));
        assert_eq!(ProgressToken::from(&RequestId::from(1)), ProgressToken::from(1));
    }
}
