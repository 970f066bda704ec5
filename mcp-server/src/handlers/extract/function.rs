//! Functions of any number of parameters.

use std::any::type_name;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::handlers::arguments::{self, FindHandles};
use crate::handlers::extract::Requirements;
use crate::handlers::extract::param::{HandlerParam, Refusal};
use crate::handlers::schema::{self, ArgumentsSchema};
use crate::serve::context::RequestContext;

/// What a function handles: calls of a tool, a prompt, a resource or a resource template.
pub trait HandlerKind: 'static {
    /// The input of the request, as far as it is not in its context.
    type Input: Send + Sync + 'static;
}

/// The async functions that can be handlers: of up to eight parameters in any order, of which at most one is a struct of
/// arguments, and the others implement [`FromContext`](super::FromContext). `Params` is inferred: the types of the parameters.
///
/// It is implemented for all such functions. See [`tool_fn`](crate::tool_fn) for an example.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a handler",
    label = "breaks one of the rules below",
    note = "it must be async, with up to eight parameters of these types: `RequestContext`, `State<T>`, `Principal`, another type \
            with `FromContext` of the module `extract`, and one struct of arguments",
    note = "a struct of arguments derives `serde::Deserialize`, and `schemars::JsonSchema` for tools and prompts",
    note = "its future must be `Send`: nothing that is not `Send`, such as an `Rc` or a `MutexGuard`, may be held over an `await`",
    note = "it is called many times, so an async closure cannot capture values, and no closure can move them out: clone \
            them for each call, as in `move |..| {{ let value = value.clone(); async move {{ .. }} }}`"
)]
pub trait HandlerFunction<Kind: HandlerKind, Params>: Send + Sync + 'static {
    /// What the function returns.
    type Output;

    /// Describes the parameters.
    #[doc(hidden)]
    fn describe(signature: &mut Signature);

    /// Makes the values of the parameters, and calls the function.
    #[doc(hidden)]
    fn call(
        function: Arc<Self>,
        ctx: RequestContext,
        input: Kind::Input,
    ) -> impl Future<Output = Result<Self::Output, Refusal>> + Send + 'static;
}

/// What the parameters of a function need and say.
#[derive(Default)]
#[expect(missing_debug_implementations, reason = "it is not part of the documented API")]
pub struct Signature {
    pub(crate) requirements: Requirements,
    /// The type of the arguments, and their schema if it is needed.
    arguments: Option<(&'static str, Option<Result<ArgumentsSchema, serde_json::Error>>)>,
    /// Finds the handles in the arguments of a tool.
    pub(crate) find_handles: Option<FindHandles>,
    pub(crate) fault: Option<String>,
}

impl Signature {
    pub(crate) fn of<Kind: HandlerKind, Params, F: HandlerFunction<Kind, Params>>() -> Self {
        let mut signature = Self::default();
        F::describe(&mut signature);
        signature
    }

    #[cfg(feature = "blocking")]
    pub(crate) fn of_blocking<Params, F: super::BlockingFunction<Params>>() -> Self {
        let mut signature = Self::default();
        F::describe(&mut signature);
        signature
    }

    /// The signature of a tool's function that takes the context and arguments.
    pub(crate) fn of_arguments<A: DeserializeOwned + JsonSchema>() -> Self {
        let arguments = Some((type_name::<A>(), Some(schema::of_arguments::<A>())));
        Self { arguments, find_handles: arguments::find_handles::<A>(), ..Self::default() }
    }

    pub(super) fn take_arguments(
        &mut self,
        name: &'static str,
        schema: Option<Result<ArgumentsSchema, serde_json::Error>>,
    ) {
        if let Some((first, _)) = &self.arguments {
            self.fault = Some(format!(
                "its function takes two structs of arguments, `{first}` and `{name}`: make them one struct"
            ));
            return;
        }
        self.arguments = Some((name, schema));
    }

    /// The schema of the arguments; that of no arguments, if the function takes none.
    pub(crate) fn schema(&mut self) -> Result<ArgumentsSchema, serde_json::Error> {
        match self.arguments.take() {
            Some((_, Some(schema))) => schema,
            Some((_, None)) | None => schema::of_arguments::<crate::NoArguments>(),
        }
    }
}

/// Calls a macro with the parameters of the functions, up to eight, each with its kind.
macro_rules! for_each_arity {
    ($implement:ident) => {
        $implement! {
            [],
            [A: OfA],
            [A: OfA, B: OfB],
            [A: OfA, B: OfB, C: OfC],
            [A: OfA, B: OfB, C: OfC, D: OfD],
            [A: OfA, B: OfB, C: OfC, D: OfD, E: OfE],
            [A: OfA, B: OfB, C: OfC, D: OfD, E: OfE, G: OfG],
            [A: OfA, B: OfB, C: OfC, D: OfD, E: OfE, G: OfG, H: OfH],
            [A: OfA, B: OfB, C: OfC, D: OfD, E: OfE, G: OfG, H: OfH, I: OfI],
        }
    };
}

#[cfg(feature = "blocking")]
pub(super) use for_each_arity;

macro_rules! functions {
    ($([$($param:ident: $of:ident),*],)*) => {$(
        #[doc(hidden)]
        #[diagnostic::do_not_recommend]
        impl<F, Fut, Kind, $($param, $of,)*> HandlerFunction<Kind, ($(($param, $of),)*)> for F
        where
            Kind: HandlerKind,
            F: Fn($($param),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output: 'static> + Send + 'static,
            $($param: HandlerParam<Kind, $of>,)*
            $($of: 'static,)*
        {
            type Output = Fut::Output;

            fn describe(signature: &mut Signature) {
                let _ = &signature;
                $($param::describe(signature);)*
            }

            #[allow(non_snake_case, reason = "values are named after their types")]
            async fn call(function: Arc<Self>, ctx: RequestContext, input: Kind::Input) -> Result<Fut::Output, Refusal> {
                let _ = (&ctx, &input);
                $(let $param = $param::extract(&ctx, &input).await?;)*
                Ok(function($($param),*).await)
            }
        }
    )*};
}

for_each_arity!(functions);
