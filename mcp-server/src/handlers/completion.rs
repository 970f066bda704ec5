//! Completion of the arguments of prompts and of the variables of resource templates.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use mcp_types::{CompleteResult, Completion, OrderedMap};

use crate::handlers::error::{BoxError, HandlerError, unsupported};
use crate::serve::context::RequestContext;
use crate::serve::endpoint::BoxFuture;

/// The maximum number of values in a result, by the protocol.
const MAX_VALUES: usize = 100;

/// The input of a [`Completer`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompletionInput {
    /// The value of the argument as far as it was typed.
    pub value: String,
    /// The values of the other arguments, as far as the client sent them.
    pub arguments: OrderedMap<String>,
}

/// Suggests values for an argument: an async function of a [`RequestContext`] and a [`CompletionInput`], which returns the
/// best suggestion first.
///
/// The function returns `Vec<String>`, or a `Result` of it with any error, as those of tools
/// ([`IntoToolResult`](crate::IntoToolResult)); see [`IntoCompletion`]. The client gets at most 100 values, their total
/// number, and whether there are more.
#[diagnostic::on_unimplemented(
    message = "this function cannot complete an argument",
    label = "not an async function of a `RequestContext` and a `CompletionInput` that returns `Vec<String>`",
    note = "write `async fn complete(ctx: RequestContext, typed: CompletionInput) -> Vec<String>`, or with a `Result` of it whose \
            error is text or implements `std::error::Error + Send + Sync`",
    note = "its future must be `Send`: nothing that is not `Send`, such as an `Rc` or a `MutexGuard`, may be held over an `await`",
    note = "it is called many times, so an async closure cannot capture values, and no closure can move them out: clone \
            them for each call, as in `move |ctx, typed| {{ let value = value.clone(); async move {{ .. }} }}`"
)]
pub trait Completer: Send + Sync + 'static {
    /// Returns why the completer cannot be registered, if there is a reason.
    #[doc(hidden)]
    fn registration_fault(&self) -> Option<&'static str> {
        None
    }

    /// Returns the suggested values, or the error of the completer.
    fn complete(&self, ctx: RequestContext, typed: CompletionInput) -> BoxFuture<Result<Vec<String>, HandlerError>>;
}

#[diagnostic::do_not_recommend]
impl<F, Fut> Completer for F
where
    F: Fn(RequestContext, CompletionInput) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoCompletion> + Send + 'static,
{
    fn registration_fault(&self) -> Option<&'static str> {
        <Fut::Output>::registration_fault()
    }

    fn complete(&self, ctx: RequestContext, typed: CompletionInput) -> BoxFuture<Result<Vec<String>, HandlerError>> {
        let suggesting = self(ctx, typed);
        Box::pin(async move { suggesting.await.into_completion() })
    }
}

/// The types that the function of a [`Completer`] can return: `Vec<String>`, or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a completer",
    note = "return `Vec<String>`, or a `Result` of it whose error is text or implements `std::error::Error + Send + Sync`"
)]
pub trait IntoCompletion {
    /// Returns why a completer with this result cannot be registered, if there is a reason.
    #[doc(hidden)]
    #[must_use]
    fn registration_fault() -> Option<&'static str> {
        None
    }

    /// Converts the value into the suggested values.
    ///
    /// # Errors
    ///
    /// Returns the error of the completer.
    fn into_completion(self) -> Result<Vec<String>, HandlerError>;
}

impl IntoCompletion for Vec<String> {
    fn into_completion(self) -> Result<Self, HandlerError> {
        Ok(self)
    }
}

impl<E: Into<BoxError> + 'static> IntoCompletion for Result<Vec<String>, E> {
    fn registration_fault() -> Option<&'static str> {
        unsupported::<E>()
    }

    fn into_completion(self) -> Result<Vec<String>, HandlerError> {
        self.map_err(HandlerError::new)
    }
}

/// Suggests the choices of an enum that begin with what was typed, in any case.
struct Choices(Arc<[String]>);

impl Completer for Choices {
    fn complete(&self, _: RequestContext, typed: CompletionInput) -> BoxFuture<Result<Vec<String>, HandlerError>> {
        let typed = typed.value.to_lowercase();
        let fits = |choice: &&String| choice.to_lowercase().starts_with(&typed);
        Box::pin(ready(Ok(self.0.iter().filter(fits).cloned().collect())))
    }
}

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers {
    /// Those of the application.
    given: BTreeMap<String, Arc<dyn Completer>>,
    /// Those of enums, which apply where the application has none.
    choices: BTreeMap<String, Arc<dyn Completer>>,
}

impl Completers {
    pub(crate) fn insert(&mut self, argument: &str, completer: impl Completer) {
        self.given.insert(argument.to_owned(), Arc::new(completer));
    }

    pub(crate) fn insert_choices(&mut self, argument: &str, choices: Vec<String>) {
        self.choices.insert(argument.to_owned(), Arc::new(Choices(choices.into())));
    }

    pub(crate) fn get(&self, argument: &str) -> Option<&Arc<dyn Completer>> {
        self.given.get(argument).or_else(|| self.choices.get(argument))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.given.is_empty() && self.choices.is_empty()
    }

    /// Returns whether the application added a completer.
    pub(crate) fn are_given(&self) -> bool {
        !self.given.is_empty()
    }
}

/// The result of `completion/complete`, within the limit of the protocol.
pub(crate) fn result(mut values: Vec<String>) -> CompleteResult {
    let total = values.len();
    values.truncate(MAX_VALUES);
    let mut completion = Completion::new(values);
    completion.total = i64::try_from(total).ok();
    completion.has_more = Some(total > MAX_VALUES);
    CompleteResult::new(completion)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never more than a hundred.
    //
    #[test]
    fn what_is_too_much_is_cut() {
        let many = result((0..150).map(|number| number.to_string()).collect()).completion;
        assert_eq!((many.values.len(), many.total, many.has_more), (100, Some(150), Some(true)));
        let few = result(vec!["a".into()]).completion;
        assert_eq!((few.values.len(), few.total, few.has_more), (1, Some(1), Some(false)));
    }
}
