//! Input requests of a task for a legacy client, which gets them while it waits for the result.

use mcp_types::{InputRequest, RawObject, RequestMeta};

use crate::asking::legacy_rounds;
use crate::asking::options::AskOptions;
use crate::asking::request::ServerRequest;
use crate::serve::context::RequestContext;

impl RequestContext {
    /// Sends an input request of a task to the legacy client that waits for its result with this request.
    ///
    /// # Errors
    ///
    /// The future returns an error if no request can be sent to the client, or if it responds with an error.
    // B-86
    pub fn forward(&self, request: InputRequest, task_id: &str) -> ServerRequest<'_, RawObject> {
        let mut meta = RequestMeta::default();
        meta.set_related_task(task_id);
        ServerRequest::new(AskOptions::of_users(), move |mut options| async move {
            options.meta = Some(Box::new(meta));
            legacy_rounds::send_one(self, request, options).await
        })
    }
}
