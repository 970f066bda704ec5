//! What a result means for the request it answers.

use crate::codec::open_set::open_set;

open_set! {
    /// Whether a result ends its request.
    ///
    /// Extensions may add values, but only between peers that both declared the extension: a client treats any other
    /// value as an invalid response. Results of older revisions have none, which means [`COMPLETE`](Self::COMPLETE).
    ///
    /// Since 2026-07-28.
    pub struct ResultType {
        /// The final result.
        COMPLETE = "complete",
        /// The server asks for input; the client answers by sending the request again.
        INPUT_REQUIRED = "input_required",
        /// The work goes on as a task (extension `io.modelcontextprotocol/tasks`).
        TASK = "task",
    }
}
