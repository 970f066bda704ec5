//! Items with unique names.

use std::collections::HashMap;
use std::sync::Arc;

use crate::build::error::BuildError;
use crate::handlers::prompt::Prompt;
use crate::handlers::resource::Resource;
use crate::handlers::template::Template;
use crate::handlers::tool::Tool;
use crate::serve::context::RequestContext;
use crate::visibility::predicate::Visible;

/// Something that is listed and found by its name or URI.
pub(crate) trait Item: Visible {
    const KIND: &'static str;

    /// What lists have of it.
    type Definition: Clone;

    fn key(&self) -> &str;

    fn definition(&self) -> &Self::Definition;
}

/// Implements [`Item`] by members of the definition.
macro_rules! items {
    ($($kind:ident: $definition:ident, $key:ident, $what:literal);* $(;)?) => {$(
        impl Item for $kind {
            const KIND: &'static str = $what;

            type Definition = mcp_types::$definition;

            fn key(&self) -> &str {
                &self.definition.$key
            }

            fn definition(&self) -> &mcp_types::$definition {
                &self.definition
            }
        }
    )*};
}

items! {
    Tool: Tool, name, "tool";
    Prompt: Prompt, name, "prompt";
    Resource: Resource, uri, "resource";
    Template: ResourceTemplate, uri_template, "template";
}

/// Items with unique names, in the order in which they were added.
#[derive(Clone)]
pub(crate) struct NamedList<T> {
    pub(crate) items: Vec<Arc<T>>,
    /// The position of each item, by its name.
    index: HashMap<String, usize>,
    /// The names that items had before their registry got a prefix, by their names now.
    originals: HashMap<String, String>,
    /// The number of items that some viewers cannot see.
    restricted: usize,
    /// The items that were added or removed since the last update.
    pub(crate) changed: Vec<Arc<T>>,
}

impl<T> Default for NamedList<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: HashMap::new(), originals: HashMap::new(), restricted: 0, changed: Vec::new() }
    }
}

impl<T: Item> NamedList<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.items.get(*self.index.get(name)?)
    }

    /// Adds an item. An error has the name that is there already.
    pub(crate) fn add(&mut self, item: T) -> Result<(), BuildError> {
        self.add_renamed(Arc::new(item), None)
    }

    /// Adds an item with the name that it had before it got a prefix.
    pub(crate) fn add_renamed(&mut self, item: Arc<T>, original: Option<String>) -> Result<(), BuildError> {
        self.check_name(item.key(), original.as_deref())?;
        self.insert(item, original);
        Ok(())
    }

    /// Returns an error if there is an item of a name already.
    fn check_name(&self, name: &str, original: Option<&str>) -> Result<(), BuildError> {
        if !self.index.contains_key(name) {
            return Ok(());
        }
        let first = self.originals.get(name).map(String::as_str);
        Err(BuildError::duplicate(T::KIND, name.to_owned(), first, original))
    }

    /// Returns an error if there is an item of a name in another list already.
    pub(crate) fn check_names(&self, others: &Self) -> Result<(), BuildError> {
        let mut names = others.items.iter().map(|item| item.key());
        names.try_for_each(|name| self.check_name(name, others.originals.get(name).map(String::as_str)))
    }

    /// Adds all items of another list, whose names have been [checked](Self::check_names).
    pub(crate) fn insert_all(&mut self, mut others: Self) {
        for item in others.items {
            let original = others.originals.remove(item.key());
            self.insert(item, original);
        }
    }

    fn insert(&mut self, item: Arc<T>, original: Option<String>) {
        let name = item.key().to_owned();
        if let Some(original) = original {
            self.originals.insert(name.clone(), original);
        }
        self.index.insert(name, self.items.len());
        self.restricted += usize::from(item.predicate().is_some());
        self.changed.push(Arc::clone(&item));
        self.items.push(item);
    }

    /// Takes the items, each with the name that it had before it got a prefix.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (T, String)>
    where
        T: Clone,
    {
        let Self { items, mut originals, changed, .. } = std::mem::take(self);
        drop(changed);
        items.into_iter().map(move |item| {
            let original = originals.remove(item.key()).unwrap_or_else(|| item.key().to_owned());
            (Arc::unwrap_or_clone(item), original)
        })
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let Some(removed) = self.index.remove(name) else { return false };
        self.originals.remove(name);
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
