//! Settings of a client.

use std::sync::{Arc, Mutex};

use mcp_kernel::CallOptions;
use mcp_kernel::observe::{Network, Observer};
use mcp_mrtr::RetryLimits;
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::TraceContext;
use mcp_types::{LoggingMessageNotificationParams, Method, Root};

use crate::context::MessageContext;
use crate::list::ListLimits;
use crate::request_handlers::RequestHandlers;
use crate::revision_cache::RevisionCache;
use crate::session::{EventHandler, RestartHandler, SessionLossPolicy};
use crate::transport::CredentialSource;
use crate::transport::{Clock, TransportKind};

pub(crate) type LogHandler = Arc<dyn Fn(MessageContext, LoggingMessageNotificationParams) + Send + Sync>;
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
    /// Maximum number of cached results.
    pub(crate) max_cached_results: usize,
    pub(crate) trace_context: Option<Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>>,
    /// Where the detected revision of the server is shared, and the key of the server there.
    pub(crate) revision_cache: Option<(RevisionCache, String)>,
    pub(crate) on_session_lost: Arc<dyn SessionLossPolicy>,
    pub(crate) on_event: Option<EventHandler>,
    pub(crate) on_restart: Option<RestartHandler>,
    pub(crate) on_log: Option<LogHandler>,
    pub(crate) on_notification: Option<NotificationHandler>,
}
