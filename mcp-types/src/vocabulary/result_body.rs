//! What the protocol layer adds to results.

use serde::Serialize;

use crate::{CacheScope, InputRequests, Restrict, ResultMeta, ResultType};

/// A result of a request; implemented by all generated ones.
///
/// A handler fills in what it has to say. The rest, which only some revisions have, is added on the way out: this trait
/// is where. What a result cannot hold is `None`.
pub trait ResultBody: Serialize + Restrict {
    /// Whether the result ends its request.
    fn result_type_mut(&mut self) -> Option<&mut Option<ResultType>> {
        None
    }

    /// What [`result_type_mut`](Self::result_type_mut) is where the handler left it empty.
    // M-7
    fn default_result_type(&self) -> ResultType {
        ResultType::COMPLETE
    }

    /// Whether the result asks for input without a question and without a state, which no schema forbids.
    //
    fn is_empty_input_required(&self) -> bool {
        false
    }

    /// The questions that the result asks.
    fn input_requests_ref(&self) -> Option<&InputRequests> {
        None
    }

    /// The metadata of the result.
    fn meta_mut(&mut self) -> Option<&mut Option<ResultMeta>> {
        None
    }

    /// How long and by whom the result may be kept.
    fn cache_mut(&mut self) -> Option<CacheHints<'_>> {
        None
    }
}

/// The cache hints of a result.
#[derive(Debug)]
#[non_exhaustive]
pub struct CacheHints<'a> {
    /// How long the result stays fresh, in milliseconds.
    pub ttl_ms: &'a mut Option<i64>,
    /// Who may share it.
    pub scope: &'a mut Option<CacheScope>,
}
