//! The tokens that tie progress to a request.

use crate::RequestId;
use crate::vocabulary::id::id_type;

id_type! {
    /// The name under which the progress of a request is reported.
    ///
    /// The requester chooses it and the answering side repeats it. It is a string or an integer and keeps that kind:
    /// `1` is not `"1"`. Many implementations use the request id as token, hence the conversion, but nothing may rely
    /// on it.
    ///
    /// `Display` quotes text. Clones are cheap.
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
