//! Access to the members of results that the protocol layer sets.

use serde::Serialize;

use crate::{CacheScope, InputRequiredResult, Restrict, ResultMeta, ResultType};

/// A result of a request; implemented by all generated result types.
///
/// It gives the protocol layer access to the members that handlers leave empty.
pub trait ResultBody: Serialize + Restrict {
    /// Returns the members that the protocol layer sets.
    fn members_mut(&mut self) -> ResultMembers<'_>;

    /// Returns the value of an empty `resultType`.
    // M-7
    fn default_result_type(&self) -> ResultType {
        ResultType::COMPLETE
    }

    /// Returns the result if it requires input.
    fn as_input_required(&self) -> Option<&InputRequiredResult> {
        None
    }
}

/// The members of a result that the protocol layer sets. Those that the type does not have are `None`.
#[derive(Debug)]
#[non_exhaustive]
pub struct ResultMembers<'a> {
    /// The `resultType`.
    pub result_type: Option<&'a mut Option<ResultType>>,
    /// The metadata.
    pub meta: Option<&'a mut Option<Box<ResultMeta>>>,
    /// The time for which the result is fresh, in milliseconds, and the scope in which caches may share it.
    pub cache: Option<(&'a mut Option<i64>, &'a mut Option<CacheScope>)>,
}
