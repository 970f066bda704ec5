//! Local handles, which are never reused and never sent.

/// Identifies a request of the peer.
///
/// It differs from the request's id, which the peer may reuse after the request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(u64);

impl RequestKey {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// Identifies a request to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u64);

impl CallId {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }
}
