//! Types of results.

use crate::codec::open_set::open_set;

open_set! {
    /// The type of a result: whether it completes its request.
    ///
    /// Extensions may define values, for peers that both declared the extension. Clients treat all other values as an
    /// invalid response. Results of older revisions have no type, which means [`COMPLETE`](Self::COMPLETE).
    ///
    /// Since 2026-07-28.
    pub struct ResultType {
        /// The final result.
        COMPLETE = "complete",
        /// The server requires input; the client provides it and sends the request again.
        INPUT_REQUIRED = "input_required",
        /// The request continues as a task (extension `io.modelcontextprotocol/tasks`).
        TASK = "task",
    }
}
