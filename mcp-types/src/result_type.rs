//! What a result means for the request it answers.

use crate::open_set::open_set;

open_set! {
    /// Whether a result ends its request.
    ///
    /// Extensions may add values, but only between peers that both declared the extension: a client
    /// treats any other value as an invalid response (M-8, M-9). Results of older revisions have
    /// none, which means [`COMPLETE`](Self::COMPLETE) (M-10).
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
