//! Tools whose functions block.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::handlers::arguments;
use crate::handlers::error::HandlerError;
use crate::handlers::error_text;
use crate::handlers::extract::Signature;
use crate::handlers::function::Arguments;
use crate::handlers::tool::{ArgumentErrors, Tool, respond};
use crate::handlers::tool_result::IntoToolResult;
use crate::serve::context::RequestContext;

/// Creates a tool from a function that blocks: that computes for long, or that waits for files, processes or databases without
/// `await`. It runs on the threads that tokio has for such functions. Requires the feature `blocking`.
///
/// Handlers of a connection share its task, and functions of [`tool`](crate::tool()) that block keep all others waiting.
///
/// A function that runs cannot be stopped. If its request is cancelled, its result is dropped; a function that takes long
/// should stop when [`RequestContext::is_cancelled`] returns `true`. One that has not started yet is not called.
///
/// The server must run on tokio; otherwise calls of the tool fail, and the log says why.
///
/// # Examples
///
/// ```
/// use mcp_server::{RequestContext, blocking_tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Primes { up_to: u32 }
///
/// let primes = blocking_tool("primes", |ctx: RequestContext, Primes { up_to }: Primes| {
///     let is_prime = |number: &u32| (2..*number).all(|divisor| number % divisor != 0);
///     let primes = (2..up_to).take_while(|_| !ctx.is_cancelled()).filter(is_prime);
///     primes.count().to_string()
/// });
/// ```
pub fn blocking_tool<A, F, R>(name: impl Into<String>, function: F) -> Tool
where
    A: Arguments + Send,
    F: Fn(RequestContext, A) -> R + Send + Sync + 'static,
    R: IntoToolResult + Send + 'static,
{
    let function = Arc::new(function);
    Tool::typed::<R>(name, Signature::of_arguments::<A>, |find| {
        Arc::new(move |ctx: RequestContext, errors: ArgumentErrors| {
            let function = Arc::clone(&function);
            Box::pin(async move {
                let arguments: A = match arguments::decode_with_handles(find, &ctx).await {
                    Ok(Ok(arguments)) => arguments,
                    Ok(Err(fault)) => return errors.respond(fault),
                    Err(error) => return error_text::of_tool(&ctx, &error),
                };
                let call = {
                    let (ctx, span) = (ctx.clone(), tracing::Span::current());
                    move || span.in_scope(|| function(ctx, arguments))
                };
                match run(call).await {
                    Ok(returned) => respond(&ctx, returned),
                    Err(error) => error_text::of_tool(&ctx, &error),
                }
            })
        })
    })
}

/// Runs a function on a thread for blocking functions, and waits for its result.
async fn run<R: Send + 'static>(call: impl FnOnce() -> R + Send + 'static) -> Result<R, HandlerError> {
    let Ok(runtime) = Handle::try_current() else {
        return Err(HandlerError::not_set_up("a `blocking_tool` needs a server that runs on tokio"));
    };
    let mut running = AbortOnDrop(runtime.spawn_blocking(call));
    match (&mut running.0).await {
        Ok(returned) => Ok(returned),
        Err(error) => match error.try_into_panic() {
            // It is reported where the panics of all handlers are.
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(HandlerError::new("the server shuts down")),
        },
    }
}

/// Withdraws a function that has not started when the request ends.
struct AbortOnDrop<R>(JoinHandle<R>);

impl<R> Drop for AbortOnDrop<R> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
