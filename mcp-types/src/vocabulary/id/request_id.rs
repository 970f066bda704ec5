//! The ids of requests.

use crate::vocabulary::id::{Id, id_type};

id_type! {
    /// The name of a request, by which its answer finds the way back.
    ///
    /// It is a string or an integer and keeps that kind: `1` is not `"1"`. It is never `null` and never a fraction;
    /// where an id may be missing, the type is an `Option`.
    ///
    /// `Display` quotes text. Clones are cheap.
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
