//! Items with unique names.

use std::collections::HashMap;
use std::sync::Arc;

use crate::handlers::prompt::Prompt;
use crate::handlers::resource::{Resource, Template};
use crate::handlers::tool::Tool;
use crate::serve::context::RequestContext;
use crate::visibility::predicate::Visible;

/// Something that is listed and found by its name or URI.
pub(crate) trait Item: Visible {
    /// What lists have of it.
    type Definition: Clone;

    fn key(&self) -> &str;

    fn definition(&self) -> &Self::Definition;
}

/// Implements [`Item`] by members of the definition.
macro_rules! items {
    ($($kind:ident: $key:ident),* $(,)?) => {$(
        impl Item for $kind {
            type Definition = mcp_types::$kind;

            fn key(&self) -> &str {
                &self.definition.$key
            }

            fn definition(&self) -> &mcp_types::$kind {
                &self.definition
            }
        }
    )*};
}

items!(Tool: name, Prompt: name, Resource: uri);

impl Item for Template {
    type Definition = mcp_types::ResourceTemplate;

    fn key(&self) -> &str {
        &self.definition.uri_template
    }

    fn definition(&self) -> &mcp_types::ResourceTemplate {
        &self.definition
    }
}

/// Items with unique names, in the order in which they were added.
#[derive(Clone)]
pub(crate) struct NamedList<T> {
    pub(crate) items: Vec<Arc<T>>,
    /// The position of each item, by its name.
    index: HashMap<String, usize>,
    /// The number of items that some viewers cannot see.
    restricted: usize,
    /// The items that were added or removed since the last update.
    pub(crate) changed: Vec<Arc<T>>,
}

impl<T> Default for NamedList<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: HashMap::new(), restricted: 0, changed: Vec::new() }
    }
}

impl<T: Item> NamedList<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.items.get(*self.index.get(name)?)
    }

    /// Adds an item; returns whether there was none of its name.
    pub(crate) fn add(&mut self, item: T) -> bool {
        if self.index.contains_key(item.key()) {
            return false;
        }
        self.index.insert(item.key().to_owned(), self.items.len());
        self.restricted += usize::from(item.predicate().is_some());
        let item = Arc::new(item);
        self.changed.push(Arc::clone(&item));
        self.items.push(item);
        true
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let Some(removed) = self.index.remove(name) else { return false };
        let item = self.items.remove(removed);
        self.index.values_mut().filter(|index| **index > removed).for_each(|index| *index -= 1);
        self.restricted -= usize::from(item.predicate().is_some());
        self.changed.push(item);
        true
    }

    /// Returns whether some viewers cannot see some of the items.
    pub(crate) fn is_restricted(&self) -> bool {
        self.restricted > 0
    }

    /// Returns an item, if it is visible for a request.
    pub(crate) fn find(&self, name: &str, ctx: &RequestContext) -> Option<&Arc<T>> {
        self.get(name).filter(|item| is_visible(&***item, ctx))
    }
}

/// Returns whether an item is visible for a request. Most items have no predicate.
pub(crate) fn is_visible(item: &impl Visible, ctx: &RequestContext) -> bool {
    item.predicate().is_none_or(|predicate| predicate.admits(&ctx.viewer()))
}
