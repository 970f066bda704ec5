//! The future of a server-to-client request.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_types::{ProgressNotificationParams, RequestMeta};

use crate::asking::error::AskError;
use crate::asking::options::AskOptions;

/// A request of the server to its client, which is sent when it is awaited. Dropping the future cancels the request.
///
/// Created by [`RequestContext`](crate::RequestContext) for requests that belong to a request of the client, and by
/// [`ConnectionHandle`](crate::ConnectionHandle) for those that do not. Options are set before the future is awaited.
///
/// The options concern legacy clients. A modern client gets no request: it retries its own request with the input
/// response, for which it has as long as `ServerBuilder::state_lifetime` allows, and without progress or metadata.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use mcp_server::{HandlerError, RequestContext};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Confirm { sure: bool }
///
/// async fn clear(ctx: RequestContext) -> Result<&'static str, HandlerError> {
///     let asked = ctx.elicit("confirm", "Delete 3 files?").timeout(Duration::from_secs(60));
///     let Confirm { sure } = asked.await?.accepted()?;
///     Ok(if sure { "deleted" } else { "kept" })
/// }
/// ```
#[must_use = "the request is sent when it is awaited"]
pub struct ServerRequest<'a, T>(State<'a, T>);

/// The result of a server-to-client request, later.
type Sent<'a, T> = Pin<Box<dyn Future<Output = Result<T, AskError>> + Send + 'a>>;

enum State<'a, T> {
    New {
        options: AskOptions,
        send: Box<dyn FnOnce(AskOptions) -> Sent<'a, T> + Send + 'a>,
    },
    Sent(Sent<'a, T>),
    /// The future is being started; it stays so only if that panics.
    Starting,
}

impl<'a, T> ServerRequest<'a, T> {
    pub(crate) fn new<Fut>(options: AskOptions, send: impl FnOnce(AskOptions) -> Fut + Send + 'a) -> Self
    where
        Fut: Future<Output = Result<T, AskError>> + Send + 'a,
    {
        Self(State::New { options, send: Box::new(move |options| Box::pin(send(options))) })
    }

    /// Sets how long the client may take in all, or `None` for no limit. Defaults to 10 minutes.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.set(|options| options.time.total_timeout = limit.into());
        self
    }

    /// Sets how long the client may take without reporting progress, or `None` for no limit. Defaults to no limit for
    /// elicitation, sampling and roots requests, because users take their time, and to 60 seconds for others.
    pub fn idle_timeout(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.set(|options| options.time.idle_timeout = idle.into());
        self
    }

    /// Sets a function that is called with each progress notification of the client.
    pub fn on_progress(mut self, watcher: impl FnMut(ProgressNotificationParams) + Send + 'static) -> Self {
        self.set(|options| options.watcher = Some(Box::new(watcher)));
        self
    }

    /// Sets the `_meta` of the request, which replaces that of its parameters.
    pub fn meta(mut self, meta: RequestMeta) -> Self {
        self.set(|options| options.meta = Some(Box::new(meta)));
        self
    }

    /// Changes the options of a request that was not sent yet; later they have no effect.
    fn set(&mut self, change: impl FnOnce(&mut AskOptions)) {
        if let State::New { options, .. } = &mut self.0 {
            change(options);
        }
    }
}

impl<T> Future for ServerRequest<'_, T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Sent(sent) = &mut self.0 {
            return sent.as_mut().poll(cx);
        }
        let State::New { options, send } = std::mem::replace(&mut self.0, State::Starting) else {
            return Poll::Pending;
        };
        let mut sent = send(options);
        let outcome = sent.as_mut().poll(cx);
        self.0 = State::Sent(sent);
        outcome
    }
}

impl<T> std::fmt::Debug for ServerRequest<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_sent = !matches!(self.0, State::New { .. });
        f.debug_struct("ServerRequest").field("is_sent", &is_sent).finish_non_exhaustive()
    }
}
