//! Local handles: never reused, never sent.

/// A request of the peer, as long as it is worked on.
///
/// It is not the id on the wire, which the peer may use again once the request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(u64);

impl RequestKey {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// A request to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u64);

impl CallId {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }
}
