//! Requests that fail.

use std::error::Error;
use std::time::Duration;

use url::Url;

use crate::address::{UnsafeAddress, shown};

/// The error of a request that got no response which can be used.
///
/// It names the address without its query, and has nothing of the request's headers and body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address may not be requested.
    #[error("{address} is not requested: {reason}")]
    Refused {
        /// The address.
        address: String,
        /// The reason.
        reason: UnsafeAddress,
    },
    /// The text is no URL, or the request is invalid in another way.
    #[error("the request cannot be sent: {0}")]
    Invalid(String),
    /// The server cannot be reached, or the connection failed.
    #[error("{address} cannot be requested: {reason}")]
    Network {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The response was not complete in time.
    #[error("{address} did not respond completely within {timeout:?}")]
    Timeout {
        /// The address.
        address: String,
        /// The time that the request had.
        timeout: Duration,
    },
    /// The response is too large.
    #[error("the response of {address} exceeds {limit} bytes")]
    TooLarge {
        /// The address.
        address: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The response redirects to another origin, too often, or a request that must not be redirected.
    #[error("{address} redirects, which is followed only within its origin, a few times, and for GET")]
    Redirected {
        /// The address.
        address: String,
    },
}

impl FetchError {
    /// Whether the request may succeed later: the network failed, and not a rule.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Network { .. } | Self::Timeout { .. })
    }

    pub(super) fn from_reqwest(error: &reqwest::Error, url: &Url) -> Self {
        let mut reason = match () {
            () if error.is_connect() => "the server cannot be reached",
            () => "the connection failed",
        }
        .to_owned();
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(refused) = cause.downcast_ref::<UnsafeAddress>() {
                return Self::Refused { address: shown(url.as_str()), reason: *refused };
            }
            let text = cause.to_string();
            if !reason.ends_with(&text) {
                reason.push_str(": ");
                reason.push_str(&text);
            }
            source = cause.source();
        }
        Self::Network { address: shown(url.as_str()), reason }
    }
}
