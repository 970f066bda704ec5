//! What a client was told when it was built.

use std::sync::{Arc, Mutex};

use mcp_kernel::CallOptions;
use mcp_mrtr::RetryLimits;
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::TraceContext;
use mcp_types::{LoggingMessageNotificationParams, Method, Root};

use crate::list::ListLimits;
use crate::request_handlers::Answers;
use crate::revision_cache::RevisionCache;
use crate::session::{DecideSessionLost, EventListener};
use crate::transport::CredentialSource;
use crate::transport::{Clock, TransportKind};

/// What never changes after a client was built.
pub(crate) struct Settings {
    pub(crate) kind: TransportKind,
    /// Where the credentials of requests come from, if they may change.
    pub(crate) credentials: Option<Arc<dyn CredentialSource>>,
    pub(crate) clock: Clock,
    pub(crate) answers: Arc<Answers>,
    pub(crate) roots: Option<Arc<Mutex<Vec<Root>>>>,
    pub(crate) calls: CallOptions,
    pub(crate) rounds: RetryLimits,
    pub(crate) lists: ListLimits,
    /// How many answers may be kept for as long as the server says.
    pub(crate) cache: usize,
    pub(crate) trace: Option<Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>>,
    /// Where the detected revision of the server is shared, and the key of the server there.
    pub(crate) revision_cache: Option<(RevisionCache, String)>,
    pub(crate) on_session_lost: Arc<dyn DecideSessionLost>,
    pub(crate) on_event: Option<EventListener>,
    pub(crate) on_log: Option<Arc<dyn Fn(LoggingMessageNotificationParams) + Send + Sync>>,
    pub(crate) on_notification: Option<Arc<dyn Fn(Method, PayloadBuf) + Send + Sync>>,
}
