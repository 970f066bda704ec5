//! What the functions of handlers take from a request: see [`tool_fn`](crate::tool_fn).

mod function;
mod param;
mod requirements;
mod values;

#[doc(hidden)]
pub use function::Signature;
pub use function::{HandlerFunction, HandlerKind};
pub use param::{
    HandlerParam, PromptArguments, ResourceRead, TemplateVariables, ToolArguments, ViaArguments, ViaContext,
    ViaVariables,
};
#[doc(hidden)]
pub use param::{Refusal, ToolInput};
pub use requirements::Requirements;
pub(crate) use requirements::check_state;
pub use values::{Extension, FromContext, ProgressReporter, State};
