//! Access to the members of results that the protocol layer sets.

use serde::Serialize;

use crate::{CacheScope, InputRequests, Restrict, ResultMeta, ResultType};

/// A result of a request; implemented by all generated result types.
///
/// It gives the protocol layer access to the members that handlers leave empty. Members that a type does not have are
/// `None`.
pub trait ResultBody: Serialize + Restrict {
    /// Returns the `resultType`.
    fn result_type_mut(&mut self) -> Option<&mut Option<ResultType>> {
        None
    }

    /// Returns the value of an empty `resultType`.
    // M-7
    fn default_result_type(&self) -> ResultType {
        ResultType::COMPLETE
    }

    /// Returns whether the result is `input_required` without input requests and state, which the schemas do not forbid.
    //
    fn is_empty_input_required(&self) -> bool {
        false
    }

    /// Returns the input requests.
    fn input_requests_ref(&self) -> Option<&InputRequests> {
        None
    }

    /// Returns the metadata.
    fn meta_mut(&mut self) -> Option<&mut Option<ResultMeta>> {
        None
    }

    /// Returns the cache hints.
    fn cache_mut(&mut self) -> Option<CacheHints<'_>> {
        None
    }
}

/// The cache hints of a result.
#[derive(Debug)]
#[non_exhaustive]
pub struct CacheHints<'a> {
    /// The time for which the result is fresh, in milliseconds.
    pub ttl_ms: &'a mut Option<i64>,
    /// The scope in which caches may share the result.
    pub scope: &'a mut Option<CacheScope>,
}
