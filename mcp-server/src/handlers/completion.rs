//! Completion of the arguments of prompts and of the variables of resource templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_types::{CompleteResult, Completion, OrderedMap};

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
/// The client gets at most 100 values, their total number, and whether there are more.
pub trait Completer: Send + Sync + 'static {
    /// Returns the suggested values.
    fn complete(&self, ctx: RequestContext, typed: CompletionInput) -> BoxFuture<Vec<String>>;
}

impl<F, Fut> Completer for F
where
    F: Fn(RequestContext, CompletionInput) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<String>> + Send + 'static,
{
    fn complete(&self, ctx: RequestContext, typed: CompletionInput) -> BoxFuture<Vec<String>> {
        Box::pin(self(ctx, typed))
    }
}

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<String, Arc<dyn Completer>>);

impl Completers {
    pub(crate) fn insert(&mut self, argument: &str, completer: impl Completer) {
        self.0.insert(argument.to_owned(), Arc::new(completer));
    }

    pub(crate) fn get(&self, argument: &str) -> Option<&Arc<dyn Completer>> {
        self.0.get(argument)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
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
