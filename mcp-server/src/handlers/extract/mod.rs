//! What the functions of handlers take from a request: see [`tool_fn`](crate::tool_fn).

#[cfg(feature = "blocking")]
mod blocking_function;
mod function;
mod param;
mod requirements;
mod values;

#[cfg(feature = "blocking")]
pub use blocking_function::BlockingFunction;
pub use function::HandlerFunction;
// Bounds and markers, whose names only the errors of the compiler show.
#[doc(hidden)]
pub use function::{HandlerKind, Signature};
#[doc(hidden)]
pub use param::{
    ArgumentHandles, ArgumentsParam, ContextParam, HandlerParam, PromptKind, Refusal, ResourceKind, TemplateKind,
    ToolKind, VariablesParam,
};
pub use requirements::Requirements;
pub(crate) use requirements::check_state;
pub use values::{Extension, FromContext, ProgressReporter, State};

pub use crate::connection::session::Session;
