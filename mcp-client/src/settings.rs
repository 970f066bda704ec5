//! Settings of a client.

use std::sync::{Arc, Mutex};

use mcp_kernel::CallOptions;
use mcp_kernel::observe::{Network, Observer};
use mcp_mrtr::RetryLimits;
use mcp_types::jsonrpc::{self, PayloadBuf};
use mcp_types::meta::TraceContext;
use mcp_types::{LoggingMessageNotificationParams, Method, Root};
use tracing::Span;

use crate::context::MessageContext;
use crate::list::ListLimits;
use crate::request_handlers::RequestHandlers;
use crate::revision_cache::RevisionCache;
use crate::session::{EventHandler, RestartHandler, SessionLossPolicy};
use crate::tasks::FollowLimits;
use crate::transport::CredentialSource;
use crate::transport::{Clock, TransportKind};

pub(crate) type LogHandler = Arc<dyn Fn(MessageContext, LoggingMessageNotificationParams) + Send + Sync>;
/// Returns the trace context of a message to the server.
pub(crate) type TraceContextSource = Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>;
/// Sets the parent of the span of a message of the server.
pub(crate) type TraceParent = Arc<dyn Fn(&Span, &TraceContext) + Send + Sync>;
pub(crate) type NotificationHandler = Arc<dyn Fn(MessageContext, Method, PayloadBuf) + Send + Sync>;

/// Settings of a client, which do not change after it was built.
pub(crate) struct Settings {
    pub(crate) kind: TransportKind,
    /// How messages travel, for metrics.
    pub(crate) network: Network,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// The source of the credentials of requests, if they may change.
    pub(crate) credentials: Option<Arc<dyn CredentialSource>>,
    pub(crate) clock: Clock,
    pub(crate) request_handlers: Arc<RequestHandlers>,
    pub(crate) roots: Option<Arc<Mutex<Vec<Root>>>>,
    pub(crate) call_options: CallOptions,
    pub(crate) retry_limits: RetryLimits,
    pub(crate) list_limits: ListLimits,
    /// The limits of tasks; `None` if the client does not follow them.
    pub(crate) follow_limits: Option<FollowLimits>,
    /// Maximum number of streams on which servers report the changes of tasks.
    pub(crate) max_task_streams: usize,
    /// The limits of received messages.
    pub(crate) message_limits: jsonrpc::Limits,
    /// Maximum number of cached results.
    pub(crate) max_cached_results: usize,
    pub(crate) trace_context: Option<TraceContextSource>,
    pub(crate) trace_parent: Option<TraceParent>,
    /// Where the detected revision of the server is shared, and the key of the server there.
    pub(crate) revision_cache: Option<(RevisionCache, String)>,
    pub(crate) on_session_lost: Arc<dyn SessionLossPolicy>,
    pub(crate) on_event: Option<EventHandler>,
    pub(crate) on_restart: Option<RestartHandler>,
    pub(crate) on_log: Option<LogHandler>,
    pub(crate) on_notification: Option<NotificationHandler>,
}

impl Settings {
    /// Returns whether messages that the client sends or handles by itself are traced and reported.
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_some() || self.trace_context.is_some() || self.trace_parent.is_some()
    }
}
