//! Functions of any number of parameters that block.

use crate::handlers::extract::function::{Signature, for_each_arity};
use crate::handlers::extract::param::{ArgumentHandles, HandlerParam, Refusal, ToolKind};
use crate::serve::context::RequestContext;

/// The functions that can be tools which block: not async, otherwise as [`HandlerFunction`](super::HandlerFunction) says.
/// `Params` is inferred: the types of the parameters.
///
/// It is implemented for all such functions. See [`blocking_tool_fn`](crate::blocking_tool_fn) for an example.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a tool that blocks",
    label = "breaks one of the rules below",
    note = "it is not async, and has up to eight parameters of these types: `RequestContext`, `State<T>`, `Principal`, another \
            type with `FromContext` of the module `extract`, and one struct of arguments",
    note = "a struct of arguments derives `serde::Deserialize` and `schemars::JsonSchema`",
    note = "it is called many times, so a closure cannot move captured values out: clone them for each call"
)]
pub trait BlockingFunction<Params>: Send + Sync + 'static {
    /// What the function returns.
    type Output;

    /// The values of the parameters.
    #[doc(hidden)]
    type Values: Send + 'static;

    /// Describes the parameters.
    #[doc(hidden)]
    fn describe(signature: &mut Signature);

    /// Makes the values of the parameters.
    #[doc(hidden)]
    fn extract(
        ctx: RequestContext,
        handles: ArgumentHandles,
    ) -> impl Future<Output = Result<Self::Values, Refusal>> + Send + 'static;

    /// Calls the function.
    #[doc(hidden)]
    fn call(&self, values: Self::Values) -> Self::Output;
}

macro_rules! blocking_functions {
    ($([$($param:ident: $of:ident),*],)*) => {$(
        #[doc(hidden)]
        #[diagnostic::do_not_recommend]
        impl<F, R, $($param, $of,)*> BlockingFunction<($(($param, $of),)*)> for F
        where
            F: Fn($($param),*) -> R + Send + Sync + 'static,
            R: 'static,
            $($param: HandlerParam<ToolKind, $of>,)*
            $($of: 'static,)*
        {
            type Output = R;
            type Values = ($($param,)*);

            fn describe(signature: &mut Signature) {
                let _ = &signature;
                $($param::describe(signature);)*
            }

            async fn extract(ctx: RequestContext, handles: ArgumentHandles) -> Result<Self::Values, Refusal> {
                let _ = (&ctx, &handles);
                Ok(($($param::extract(&ctx, &handles).await?,)*))
            }

            #[allow(non_snake_case, reason = "values are named after their types")]
            fn call(&self, ($($param,)*): Self::Values) -> R {
                self($($param),*)
            }
        }
    )*};
}

for_each_arity!(blocking_functions);
