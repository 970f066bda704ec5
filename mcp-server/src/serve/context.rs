//! What a handler knows about its request, and what it can do with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_kernel::server::{Delivery, Principal, RequestScope};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::TraceContext;
use mcp_types::{
    ClientCapabilities, ClientCapability, Era, Implementation, InputResponses, LoggingLevel, Method, Number,
    ProgressToken, RawJson, RequestId, Revision,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connection::handle::ConnectionHandle;
use crate::connection::shared::Shared;
use crate::extensions::Extensions;
use crate::serve::cancel::CancelSignal;
use crate::serve::telemetry::{self, Stopwatch};
use crate::server::Server;

/// Everything about one request: what it says about itself, and the way to its client.
///
/// It is cheap to clone, and stays valid in tasks that outlive the request; what they say then goes nowhere.
///
/// When a client cancels a request, its handler is dropped where it waits. What the handler spawned elsewhere goes on:
/// give it a clone of this, and have it watch [`cancelled`](Self::cancelled). The end of a session, because its client
/// deletes it or because it expires, cancels its requests in the same way, and then runs what handlers have left to be done
/// with [`ConnectionHandle::on_close`]. A server that shuts down lets handlers finish first, for as long as its transport
/// is told to drain. An event of level `debug` tells how each handler ended, and after what time.
#[derive(Clone)]
pub struct RequestContext(Arc<Inner>);

struct Inner {
    origin: Origin,
    /// What was asked and answered so far; most requests ask nothing, and have no room for it.
    #[cfg(feature = "mrtr")]
    round: Mutex<Option<Box<mcp_mrtr::Round>>>,
    connection: ConnectionHandle,
    server: Server,
    extensions: Mutex<Extensions>,
    cancel: CancelSignal,
    stopwatch: Option<Stopwatch>,
}

/// Where the answers of a round come from.
enum Origin {
    /// The request came from the client, with all that belongs to it.
    Client { scope: Arc<RequestScope>, params: PayloadBuf },
    /// The server asked by itself, and serves the request once more.
    Round { request: RequestContext, responses: InputResponses, state: Option<String> },
}

impl RequestContext {
    pub(crate) fn new(
        scope: Arc<RequestScope>,
        params: PayloadBuf,
        shared: Arc<Shared>,
        server: Server,
        extensions: Extensions,
    ) -> Self {
        Self(Arc::new(Inner {
            origin: Origin::Client { scope, params },
            #[cfg(feature = "mrtr")]
            round: Mutex::default(),
            connection: ConnectionHandle(shared),
            server,
            extensions: Mutex::new(extensions),
            cancel: CancelSignal::default(),
            stopwatch: telemetry::stopwatch(),
        }))
    }

    /// Measures the time since the request was admitted, if the event that reports it is enabled.
    pub(crate) fn stopwatch(&self) -> Option<Stopwatch> {
        self.0.stopwatch
    }

    /// The same request once more, with answers that the server got by itself.
    pub(crate) fn again(&self, responses: InputResponses, state: Option<String>) -> Self {
        Self(Arc::new(Inner {
            origin: Origin::Round { request: self.clone(), responses, state },
            #[cfg(feature = "mrtr")]
            round: Mutex::default(),
            connection: self.0.connection.clone(),
            server: self.0.server.clone(),
            extensions: Mutex::new(self.extensions().clone()),
            cancel: CancelSignal::default(),
            stopwatch: self.0.stopwatch,
        }))
    }

    #[cfg(feature = "mrtr")]
    pub(crate) fn round(&self) -> MutexGuard<'_, Option<Box<mcp_mrtr::Round>>> {
        self.0.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn scope(&self) -> &RequestScope {
        match &self.0.origin {
            Origin::Client { scope, .. } => scope,
            Origin::Round { request, .. } => request.scope(),
        }
    }

    /// The request as it came from the client, which is the one that can be cancelled.
    fn original(&self) -> &Self {
        match &self.0.origin {
            Origin::Client { .. } => self,
            Origin::Round { request, .. } => request.original(),
        }
    }

    pub(crate) fn cancel(&self) {
        self.original().0.cancel.set();
    }

    /// The revision by whose rules the request is served.
    // S2.7
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.scope().revision()
    }

    /// The era of that revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.scope().era()
    }

    /// Whether there is no way to ask the client something while the request runs.
    // S2.22
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.scope().is_stateless()
    }

    /// The id of the request on the wire.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        self.scope().id()
    }

    /// What is asked for.
    #[must_use]
    pub fn method(&self) -> &Method {
        self.scope().method()
    }

    /// The parameters of the request, as they came.
    #[must_use]
    pub fn params(&self) -> &PayloadBuf {
        match &self.0.origin {
            Origin::Client { params, .. } => params,
            Origin::Round { request, .. } => request.params(),
        }
    }

    /// Whether nobody waits for the answer any more.
    // S2.9
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.original().0.cancel.is_set()
    }

    /// Waits until nobody waits for the answer any more.
    pub async fn cancelled(&self) {
        self.original().0.cancel.wait().await;
    }

    /// Reports progress, if the client wants to hear of it.
    ///
    /// Values must grow. Whole numbers and fractions are both fine, with or without a total.
    ///
    /// ```
    /// # use mcp_server::{Progress, RequestContext};
    /// # fn example(ctx: RequestContext) {
    /// ctx.progress(0.5);
    /// ctx.progress((3, 10));
    /// ctx.progress(Progress::new(4).total(10).message("copying"));
    /// # }
    /// ```
    // S2.12
    pub fn progress(&self, progress: impl Into<Progress>) {
        if !self.scope().may_report_progress() {
            return;
        }
        let Progress { progress, total, message } = progress.into();
        let _ = self
            .shared()
            .tell(Some(self.scope().key()), |kernel| kernel.progress(self.scope().key(), progress, total, message));
    }

    /// The token under which the client hears of progress.
    #[must_use]
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.scope().progress_token()
    }

    /// Sends a log message to the client: any JSON, such as a text. Below the client's level it is dropped.
    // S2.15
    pub fn log<T: Serialize + ?Sized>(&self, level: LoggingLevel, data: &T) {
        self.log_from(None, level, data);
    }

    /// Sends a log message in the name of a logger.
    pub fn log_as<T: Serialize + ?Sized>(&self, logger: &str, level: LoggingLevel, data: &T) {
        self.log_from(Some(logger), level, data);
    }

    fn log_from<T: Serialize + ?Sized>(&self, logger: Option<&str>, level: LoggingLevel, data: &T) {
        // A modern client says with each request what it wants; a legacy one may change its mind meanwhile.
        if self.era() == Era::Modern && !self.scope().may_log(level) {
            return;
        }
        if let Ok(data) = RawJson::new(data) {
            let (key, logger) = (self.scope().key(), logger.map(str::to_owned));
            let _ = self.shared().tell(Some(key), |kernel| kernel.log(Some(key), level, data, logger));
        }
    }

    /// Tells the client something that belongs to this request, such as what an extension defines.
    ///
    /// Returns whether it is on its way. What has a method of its own here cannot be told this way.
    pub fn notify(&self, method: &Method, params: &impl Serialize) -> bool {
        let Ok(params) = mcp_types::RawObject::new(params) else { return false };
        let key = self.scope().key();
        matches!(self.shared().tell(Some(key), |kernel| kernel.tell(Some(key), method, &params)), Ok(Delivery::Queued))
    }

    /// What the client can do, for this request.
    #[must_use]
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.scope().capabilities()
    }

    /// Whether the client declared a capability.
    // S2.21
    #[must_use]
    pub fn supports(&self, capability: ClientCapability) -> bool {
        self.scope().supports(capability)
    }

    /// Who the client says it is: for display and logs, never for decisions.
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        self.scope().client_info()
    }

    /// Who is behind the request, as the transport made sure; nobody on stdio.
    // S2.27
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.scope().principal()
    }

    /// The request's place in a distributed trace.
    #[must_use]
    pub fn trace_context(&self) -> &TraceContext {
        self.scope().trace_context()
    }

    /// The answers to the questions of the round before, as they came.
    // S2.24
    #[must_use]
    pub fn input_responses(&self) -> &InputResponses {
        match &self.0.origin {
            Origin::Client { scope, .. } => scope.input_responses(),
            Origin::Round { responses, .. } => responses,
        }
    }

    /// Whether the round before got an answer to a question.
    // S2.38
    #[must_use]
    pub fn has_input_response(&self, key: &str) -> bool {
        self.input_responses().contains(key)
    }

    /// The answer to a question of the round before.
    ///
    /// # Errors
    ///
    /// Fails if the answer is not a `T`.
    // S2.35
    pub fn input_response_as<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, serde_json::Error> {
        self.input_responses().get(key).map(|answer| answer.decode()).transpose()
    }

    /// The state that the client brought back from the round before. Anybody could have written it: check it.
    // S2.26
    #[must_use]
    pub fn request_state(&self) -> Option<&str> {
        match &self.0.origin {
            Origin::Client { scope, .. } => scope.request_state(),
            Origin::Round { state, .. } => state.as_deref(),
        }
    }

    /// The state of the round before, if it was JSON. Anybody could have written it: check it.
    ///
    /// # Errors
    ///
    /// Fails if the state is not a `T`.
    // S2.36
    pub fn request_state_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        // The message was checked; the JSON inside of this text was not.
        self.request_state().map(|state| RawJson::parse(state)?.decode()).transpose()
    }

    /// Whether the client asks again after a round of questions, or of waiting.
    // S2.39
    #[must_use]
    pub fn is_retry(&self) -> bool {
        !self.input_responses().is_empty() || self.request_state().is_some()
    }

    /// The connection that the request came on.
    #[must_use]
    pub fn connection(&self) -> &ConnectionHandle {
        &self.0.connection
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// What the application put into the server, by its type.
    #[must_use]
    pub fn state<T: std::any::Any + Send + Sync>(&self) -> Option<&T> {
        self.server().state()
    }

    /// What the transport or a layer knows about the request, by its type.
    #[must_use]
    pub fn extension<T: std::any::Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extensions().share()
    }

    /// Gives the handler a value, by its type: what a layer found out about the request.
    pub fn insert_extension<T: std::any::Any + Send + Sync>(&self, value: T) {
        let value = Arc::new(value);
        let old = self.extensions().insert_shared(value);
        // It may do anything when it goes.
        drop(old);
    }

    fn extensions(&self) -> MutexGuard<'_, Extensions> {
        self.0.extensions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.connection.0
    }
}

impl std::fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestContext").field("scope", self.scope()).finish_non_exhaustive()
    }
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "report it with `RequestContext::progress`"]
pub struct Progress {
    progress: Number,
    total: Option<Number>,
    message: Option<String>,
}

impl Progress {
    /// So far.
    pub fn new(progress: impl Into<Number>) -> Self {
        Self { progress: progress.into(), total: None, message: None }
    }

    /// Of how much.
    pub fn total(self, total: impl Into<Number>) -> Self {
        Self { total: Some(total.into()), ..self }
    }

    /// What is being done.
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }
}

macro_rules! progress_from {
    ($($number:ty),*) => {$(
        impl From<$number> for Progress {
            fn from(progress: $number) -> Self {
                Self::new(progress)
            }
        }

        impl From<($number, $number)> for Progress {
            fn from((progress, total): ($number, $number)) -> Self {
                Self::new(progress).total(total)
            }
        }
    )*};
}

progress_from!(f64, i32, i64, u32, u64, usize);
