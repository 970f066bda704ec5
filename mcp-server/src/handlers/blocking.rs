//! Tools whose functions block.

use std::panic::resume_unwind;
use std::sync::Arc;

use mcp_types::ErrorObject;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::handlers::arguments;
use crate::handlers::error::HandlerError;
use crate::handlers::error_text;
use crate::handlers::extract::{ArgumentHandles, BlockingFunction, Refusal, Signature};
use crate::handlers::function::Arguments;
use crate::handlers::tool::{ArgumentErrors, Tool, respond};
use crate::handlers::tool_result::IntoToolResult;
use crate::serve::context::RequestContext;
use crate::serve::response::Response;

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
/// [`blocking_tool_fn`] is for functions with other parameters.
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
                let for_function = ctx.clone();
                run(&ctx, move || function(for_function, arguments)).await
            })
        })
    })
}

/// Creates a tool from a function that blocks, whose parameters are, in any order and number up to eight, a struct of arguments
/// and values that are taken from the request. It is to [`blocking_tool`] what [`tool_fn`](crate::tool_fn) is to
/// [`tool`](crate::tool()). Requires the feature `blocking`.
///
/// The values are taken from the request before the function is moved to its thread.
///
/// # Examples
///
/// ```
/// use mcp_server::extract::State;
/// use mcp_server::{Principal, Server, blocking_tool_fn};
///
/// struct Reports { folder: std::path::PathBuf }
///
/// fn count_reports(State(reports): State<Reports>, user: Principal) -> std::io::Result<String> {
///     let files = std::fs::read_dir(reports.folder.join(&*user.subject))?;
///     Ok(files.count().to_string())
/// }
///
/// let reports = Reports { folder: "/var/lib/reports".into() };
/// let server = Server::builder("reports", "1.0").state(reports).tool(blocking_tool_fn("count_reports", count_reports)).build()?;
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
pub fn blocking_tool_fn<Params, F>(name: impl Into<String>, function: F) -> Tool
where
    F: BlockingFunction<Params>,
    F::Output: IntoToolResult + Send + 'static,
{
    let function = Arc::new(function);
    Tool::typed::<F::Output>(name, Signature::of_blocking::<Params, F>, |find| {
        Arc::new(move |ctx: RequestContext, errors: ArgumentErrors| {
            let function = Arc::clone(&function);
            let extracted = F::extract(ctx.clone(), ArgumentHandles(find));
            Box::pin(async move {
                match extracted.await {
                    Ok(values) => run(&ctx, move || function.call(values)).await,
                    Err(Refusal::Arguments(fault)) => errors.respond(fault),
                    Err(Refusal::Failed(error)) => error_text::of_tool(&ctx, &error),
                }
            })
        })
    })
}

/// Runs a function on a thread for blocking functions, and makes the response of what it returns.
async fn run<R>(ctx: &RequestContext, function: impl FnOnce() -> R + Send + 'static) -> Result<Response, ErrorObject>
where
    R: IntoToolResult + Send + 'static,
{
    let span = tracing::Span::current();
    match run_on_thread(move || span.in_scope(function)).await {
        Ok(returned) => respond(ctx, returned),
        Err(error) => error_text::of_tool(ctx, &error),
    }
}

/// Runs a function on a thread for blocking functions, and waits for its result.
async fn run_on_thread<R: Send + 'static>(call: impl FnOnce() -> R + Send + 'static) -> Result<R, HandlerError> {
    let Ok(runtime) = Handle::try_current() else {
        return Err(HandlerError::not_set_up("a tool that blocks needs a server that runs on tokio"));
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
