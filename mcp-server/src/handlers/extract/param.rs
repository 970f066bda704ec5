//! The parameters of functions.

use std::any::type_name;
use std::future::ready;

use mcp_types::OrderedMap;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::handlers::arguments::{self, FindHandles};
use crate::handlers::error::HandlerError;
use crate::handlers::extract::function::{HandlerKind, Signature};
use crate::handlers::extract::values::FromContext;
use crate::handlers::schema;
use crate::handlers::text_values;
use crate::serve::context::RequestContext;
use crate::uri_template::UriVariables;

/// The parameters that the function of a handler can have. `ParamKind` is inferred: it tells types that are decoded from the
/// arguments of the request ([`ArgumentsParam`]) from those that are made from its context ([`ContextParam`]).
///
/// Implement [`FromContext`] instead of this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of this handler",
    note = "take `RequestContext`, `State<T>`, `Principal`, another type of `mcp_server::extract`, or one struct of arguments, \
            which derives `serde::Deserialize` and `schemars::JsonSchema`",
    note = "implement `mcp_server::extract::FromContext` for types of your own"
)]
pub trait HandlerParam<Kind: HandlerKind, ParamKind>: Sized + Send + 'static {
    /// Adds the parameter to the signature of the function.
    fn describe(signature: &mut Signature);

    /// Makes the value of the parameter.
    fn extract(ctx: &RequestContext, input: &Kind::Input) -> impl Future<Output = Result<Self, Refusal>> + Send;
}

/// Marks parameters that are decoded from the arguments of a request, or from the variables of its URI.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are no values")]
pub enum ArgumentsParam {}

/// Marks parameters that are made from the context of a request.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are no values")]
pub enum ContextParam {}

/// Marks the variables of a URI as they are.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are no values")]
pub enum VariablesParam {}

/// Why a function was not called.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "it is not part of the documented API")]
pub enum Refusal {
    /// The arguments, or the variables of the URI, are not valid.
    Arguments(String),
    /// A value could not be made from the context.
    Failed(HandlerError),
}

impl<T: FromContext, Kind: HandlerKind> HandlerParam<Kind, ContextParam> for T {
    fn describe(signature: &mut Signature) {
        T::require(&mut signature.requirements);
    }

    async fn extract(ctx: &RequestContext, _: &Kind::Input) -> Result<Self, Refusal> {
        T::from_context(ctx).await.map_err(Refusal::Failed)
    }
}

/// The handlers of tools, whose arguments are JSON.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are no values")]
pub enum ToolKind {}

impl HandlerKind for ToolKind {
    type Input = ArgumentHandles;
}

/// Finds the handles in the arguments of a tool, if they can have any.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it is not part of the documented API")]
pub struct ArgumentHandles(pub(crate) Option<FindHandles>);

impl<A: DeserializeOwned + JsonSchema + Send + 'static> HandlerParam<ToolKind, ArgumentsParam> for A {
    fn describe(signature: &mut Signature) {
        signature.take_arguments(type_name::<A>(), Some(schema::of_arguments::<A>()));
        signature.find_handles = arguments::find_handles::<A>();
    }

    async fn extract(ctx: &RequestContext, ArgumentHandles(find): &ArgumentHandles) -> Result<Self, Refusal> {
        arguments::decode_with_handles(*find, ctx).await.map_err(Refusal::Failed)?.map_err(Refusal::Arguments)
    }
}

/// The handlers of prompts, whose arguments are text.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are no values")]
pub enum PromptKind {}

impl HandlerKind for PromptKind {
    type Input = OrderedMap<String>;
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> HandlerParam<PromptKind, ArgumentsParam> for A {
    fn describe(signature: &mut Signature) {
        signature.take_arguments(type_name::<A>(), Some(schema::of_arguments::<A>()));
    }

    fn extract(_: &RequestContext, input: &OrderedMap<String>) -> impl Future<Output = Result<Self, Refusal>> + Send {
        let decoded = text_values::decode(input.iter().map(|(name, value)| (name, value.as_str())));
        ready(decoded.map_err(|fault| Refusal::Arguments(fault.to_string())))
    }
}

/// The handlers of resource templates, whose arguments are the variables of the URI.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are no values")]
pub enum TemplateKind {}

impl HandlerKind for TemplateKind {
    type Input = UriVariables;
}

impl<V: DeserializeOwned + Send + 'static> HandlerParam<TemplateKind, ArgumentsParam> for V {
    fn describe(signature: &mut Signature) {
        signature.take_arguments(type_name::<V>(), None);
    }

    fn extract(_: &RequestContext, input: &UriVariables) -> impl Future<Output = Result<Self, Refusal>> + Send {
        ready(input.decode().map_err(|fault| Refusal::Arguments(fault.to_string())))
    }
}

impl HandlerParam<TemplateKind, VariablesParam> for UriVariables {
    fn describe(_: &mut Signature) {}

    fn extract(_: &RequestContext, input: &Self) -> impl Future<Output = Result<Self, Refusal>> + Send {
        ready(Ok(input.clone()))
    }
}

/// The handlers of resources with a fixed URI, which have no arguments.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are no values")]
pub enum ResourceKind {}

impl HandlerKind for ResourceKind {
    type Input = ();
}
