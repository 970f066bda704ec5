//! Listen streams with notifications of tasks.

use mcp_kernel::RequestKey;
use mcp_kernel::server::Delivery;
use mcp_types::tasks::TaskNotificationParams;
use mcp_types::{Method, RawObject, SubscriptionFilter};

use crate::connection::handle::{ConnectionHandle, WeakConnectionHandle};
use crate::serve::sent_notification::SentNotification;
use crate::server::Server;

/// A listen stream on which a client gets the changes of tasks, until it ends.
#[derive(Clone, Debug)]
pub struct TaskListener {
    connection: WeakConnectionHandle,
    stream: RequestKey,
}

impl TaskListener {
    pub(crate) fn new(connection: &ConnectionHandle, stream: RequestKey) -> Self {
        Self { connection: connection.downgrade(), stream }
    }

    /// Sends the state of a task; returns whether the stream is still open. A stream that is not read ends.
    // TK-32
    pub fn notify(&self, task: &TaskNotificationParams) -> bool {
        let Some(connection) = self.connection.upgrade() else { return false };
        // Plain data can always be serialized.
        let Ok(mut params) = RawObject::new(task) else { return true };
        let shared = &connection.0;
        let sent = SentNotification::start_on_stream(shared, self.stream, &Method::NOTIFICATIONS_TASKS);
        if let Some(traced) = sent.as_ref().and_then(|sent| sent.add_trace_to(&params)) {
            params = traced;
        }
        let delivery = shared.lock().kernel.notify_listener(self.stream, &Method::NOTIFICATIONS_TASKS, &params);
        shared.wake(None);
        matches!(delivery, Ok(Delivery::Queued))
    }

    /// Returns whether both are the same stream.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.stream == other.stream && self.connection.is_same(&other.connection)
    }
}

/// Tells the runtime of a listen stream that was opened, if it is one for tasks.
pub(crate) fn started(server: &Server, connection: &ConnectionHandle, stream: RequestKey, filter: &SubscriptionFilter) {
    if let Some(runtime) = &server.settings().tasks
        && let Ok(Some(task_ids)) = filter.decode_task_ids()
    {
        runtime.listen(TaskListener::new(connection, stream), task_ids);
    }
}

/// Tells the runtime of a listen stream that has ended, if it was one for tasks.
pub(crate) fn ended(server: &Server, connection: &ConnectionHandle, stream: RequestKey, filter: &SubscriptionFilter) {
    if let Some(runtime) = &server.settings().tasks
        && let Ok(Some(task_ids)) = filter.decode_task_ids()
    {
        runtime.stop_listening(&TaskListener::new(connection, stream), task_ids);
    }
}
