//! A call of a tool whose handler runs in a task, or may do so later.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_kernel::server::{Connection as Kernel, DetachedRequest, RequestScope};
use mcp_mrtr::{Journal, Round};
use mcp_types::jsonrpc::{self, PayloadBuf};
use mcp_types::{Era, ErrorObject, InputResponses, RawObject};
use tracing::{Instrument, Span};

use crate::asking::error::AskError;
use crate::asking::rounds;
use crate::connection::catch_panic::CatchPanic;
use crate::connection::request_origin::RequestOrigin;
use crate::connection::shared::Shared;
use crate::extensions::Extensions;
#[cfg(feature = "validate")]
use crate::handlers::arguments::arguments_of;
use crate::serve::context::RequestContext;
use crate::serve::end::Outcome;
use crate::serve::endpoint::{Endpoint, EndpointFuture, ResponseFuture};
use crate::serve::response::Response;
use crate::serve::telemetry;
use crate::server::Server;
use crate::tasks::port::{TaskPort, TaskSlot};

/// The future of a call of a tool that runs in a task, or that may [become](Self::attach) one.
///
/// Arguments and results are validated as those of other calls, and [layers](crate::Tool::layer) of the tool are called. A
/// panic is an error. Dropping the future cancels the call.
#[must_use = "futures do nothing unless polled"]
pub struct TaskRun {
    ctx: RequestContext,
    slot: Arc<TaskSlot>,
    handler: CatchPanic,
    /// The span of the run. `None` if it is that of a request, whose connection records its end.
    span: Option<Span>,
}

impl TaskRun {
    /// Calls the tool of a request, which is not a task yet: server-to-client requests of its handler follow the rules of other
    /// calls, and end a modern call with [`Response::InputRequired`].
    pub fn new(request: &RequestContext) -> Self {
        Self::start(request.clone(), TaskSlot::default(), None)
    }

    /// Calls the tool of a request that no connection knows, in a task.
    ///
    /// # Errors
    ///
    /// Returns an error if the parameters are not those of a message.
    pub fn detached(
        server: &Server,
        request: DetachedRequest,
        params: &RawObject,
        extensions: Extensions,
        port: Arc<dyn TaskPort>,
    ) -> Result<Self, ErrorObject> {
        let params = PayloadBuf::parse(params.as_str(), &jsonrpc::Limits::default())
            .map_err(|fault| ErrorObject::invalid_params(fault.to_string()))?;
        let config = Arc::clone(server.config());
        let kernel = match request.revision.era() {
            Era::Modern => Kernel::modern_request(config),
            Era::Legacy => Kernel::legacy_request(config, request.revision),
        };
        let (scope, shared) = (Arc::new(RequestScope::from(request)), Arc::new(Shared::new(kernel)));
        let span = telemetry::run_span(&scope, &params, &shared, server);
        let request =
            RequestContext::new(scope, params, shared, server.clone(), RequestOrigin { extensions, received: None });
        let slot = TaskSlot::default();
        slot.set(port);
        Ok(Self::start(request, slot, Some(span)))
    }

    fn start(request: RequestContext, slot: TaskSlot, span: Option<Span>) -> Self {
        let slot = Arc::new(slot);
        let ctx = request.in_task(Arc::clone(&slot));
        let handler: ResponseFuture = Box::pin(EndpointFuture::new(Endpoint::new(call_tool), ctx.clone()));
        let handler = handler.instrument(span.clone().unwrap_or_else(Span::current));
        Self { ctx, slot, handler: CatchPanic::new(handler), span }
    }

    /// Returns the context of the handler.
    #[must_use]
    pub fn context(&self) -> &RequestContext {
        &self.ctx
    }

    /// Turns the call into a task: from now on its context uses the port. Returns the steps and responses of the handler so
    /// far.
    pub fn attach(&self, port: Arc<dyn TaskPort>) -> RoundJournal {
        self.slot.set(port);
        // The round has ended, so that the handler can only use the port from now on.
        self.ctx.round().take().map(|round| RoundJournal::of_round(&round)).unwrap_or_default()
    }
}

impl Future for TaskRun {
    type Output = Result<Response, ErrorObject>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut served = std::task::ready!(Pin::new(&mut this.handler).poll(cx));
        rounds::reject_mixed_styles(&this.ctx, &mut served);
        if let Some(span) = &this.span {
            telemetry::record_end(span, &served);
        }
        this.ctx.end(Outcome::of(&served));
        Poll::Ready(served)
    }
}

impl Drop for TaskRun {
    /// Tasks that the handler spawned have to learn of its end.
    fn drop(&mut self) {
        self.ctx.end(Outcome::Cancelled);
    }
}

impl std::fmt::Debug for TaskRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskRun").field("ctx", &self.ctx).finish_non_exhaustive()
    }
}

/// Calls a tool that its caller could see when the request was admitted.
fn call_tool(ctx: RequestContext) -> ResponseFuture {
    let registry = ctx.server().registry();
    let name = ctx.params().get("name").and_then(|name| serde_json::from_str::<String>(name.get()).ok());
    let Some(tool) = name.as_ref().and_then(|name| registry.tools.get(name)) else {
        let name = name.unwrap_or_default();
        let error = ErrorObject::invalid_params(format!("the server does not have the tool `{name}` of this task"));
        return Box::pin(std::future::ready(Err(error)));
    };
    let errors = ctx.server().settings().argument_errors;
    #[cfg(feature = "validate")]
    if let Some(validators) = registry.validators.get(tool.name()).cloned() {
        return match validators.check_arguments(arguments_of(ctx.params())) {
            Some(fault) => Box::pin(std::future::ready(errors.respond(fault))),
            None => validators.check_result_of((tool.handler)(ctx, errors)),
        };
    }
    (tool.handler)(ctx, errors)
}

/// What a handler has stored in the rounds of a multi round-trip request, for the task that continues it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RoundJournal {
    /// The steps and responses of a handler that awaits its requests.
    pub journal: Journal,
    /// The input responses of a handler that returns its requests.
    pub input_responses: InputResponses,
    /// The state that such a handler returned with them, as tasks store it.
    pub request_state: Option<String>,
}

impl RoundJournal {
    /// Returns what the client of a request has brought, and what its handler has added.
    ///
    /// # Errors
    ///
    /// Returns an error if the `requestState` of the request is not valid, or was used before.
    pub async fn of(ctx: &RequestContext) -> Result<Self, AskError> {
        if ctx.round().is_open() {
            return ctx.round().with(|| Ok(Round::default()), |round| Self::of_round(round));
        }
        if ctx.era() == Era::Legacy || !ctx.is_retry() {
            return Ok(Self::default());
        }
        Ok(match rounds::open_for_task(ctx).await? {
            rounds::RetryState::Journal(round) => Self::of_round(&round),
            rounds::RetryState::Application(request_state) => {
                Self { input_responses: ctx.input_responses().clone(), request_state, ..Self::default() }
            }
        })
    }

    fn of_round(round: &Round) -> Self {
        Self { journal: round.to_journal(), ..Self::default() }
    }
}
