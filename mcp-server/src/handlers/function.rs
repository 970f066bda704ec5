//! The functions of handlers whose parameters are fixed, and their arguments.
//!
//! The traits stand for bounds on traits of other crates, so that the errors of the compiler say what to do. Closures infer the
//! types of their parameters from the supertraits, which is why futures are parameters of the traits: an associated type would
//! refer to the type of the closure, and the compiler infers nothing from such a bound.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::serve::context::RequestContext;

/// The types that can be the arguments of a tool or a prompt: all that derive `serde::Deserialize` and `schemars::JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool or prompt",
    label = "`{Self}` lacks `serde::Deserialize`, `schemars::JsonSchema`, or both",
    note = "add `#[derive(serde::Deserialize, schemars::JsonSchema)]` to `{Self}`, and to the types of its fields",
    note = "arguments own their values: use `String` instead of `&str`"
)]
pub trait Arguments: DeserializeOwned + JsonSchema + 'static {}

#[diagnostic::do_not_recommend]
impl<A: DeserializeOwned + JsonSchema + 'static> Arguments for A {}

/// The async functions of a [`RequestContext`] and an `Input`, such as the arguments of a tool: `async |ctx, input: Input| ..`.
/// `Fut` and `R` are inferred: the future and the result of the function.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a handler",
    label = "not an async function of a `RequestContext` and `{Input}` that can be called many times",
    note = "write `async |ctx, input: {Input}| ..`, or an `async fn` with these parameters; functions with other parameters are for \
            `tool_fn`, `prompt_fn` and `template_fn`",
    note = "it is called many times, so an async closure cannot capture values, and no closure can move them out: clone \
            them for each call, as in `move |ctx, input| {{ let value = value.clone(); async move {{ .. }} }}`",
    note = "for a tool that is not async, use `blocking_tool`, or return `std::future::ready(..)` if it never blocks"
)]
pub trait ContextFunction<Input, Fut, R>: Fn(RequestContext, Input) -> Fut + Send + Sync + 'static {
    /// Calls the function.
    #[doc(hidden)]
    fn start(&self, ctx: RequestContext, input: Input) -> impl Future<Output = R> + Send + 'static
    where
        Fut: Send + 'static;
}

#[diagnostic::do_not_recommend]
impl<F, Fut, R, Input> ContextFunction<Input, Fut, R> for F
where
    F: Fn(RequestContext, Input) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R>,
{
    fn start(&self, ctx: RequestContext, input: Input) -> impl Future<Output = R> + Send + 'static
    where
        Fut: Send + 'static,
    {
        self(ctx, input)
    }
}

/// The async functions of a [`RequestContext`]: `async |ctx| ..`. `Fut` and `R` are inferred: the future and the result of the
/// function.
#[diagnostic::on_unimplemented(
    message = "this function cannot be the handler of a resource",
    label = "not an async function of a `RequestContext` that can be called many times",
    note = "write `async |ctx| ..`, or an `async fn` with this parameter; functions with other parameters are for `resource_fn`",
    note = "it is called many times, so an async closure cannot capture values, and no closure can move them out: clone \
            them for each call, as in `move |ctx| {{ let value = value.clone(); async move {{ .. }} }}`"
)]
pub trait ReadFunction<Fut, R>: Fn(RequestContext) -> Fut + Send + Sync + 'static {
    /// Calls the function.
    #[doc(hidden)]
    fn start(&self, ctx: RequestContext) -> impl Future<Output = R> + Send + 'static
    where
        Fut: Send + 'static;
}

#[diagnostic::do_not_recommend]
impl<F, Fut, R> ReadFunction<Fut, R> for F
where
    F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R>,
{
    fn start(&self, ctx: RequestContext) -> impl Future<Output = R> + Send + 'static
    where
        Fut: Send + 'static,
    {
        self(ctx)
    }
}
