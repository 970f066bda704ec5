//! Request ids.

use crate::vocabulary::id::{Id, id_type};

id_type! {
    /// The id of a request, which its response repeats: a string or an integer.
    ///
    /// `1` and `"1"` are different ids. Unlike in JSON-RPC, `null` and fractions are invalid.
    ///
    /// `Display` quotes strings. Clones are cheap.
    ///
    /// Since 2024-11-05.
    pub struct RequestId
}

impl RequestId {
    /// Returns the representation that ids and tokens share.
    pub(crate) fn as_id(&self) -> &Id {
        &self.0
    }
}
