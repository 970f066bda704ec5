//! A map of values by their type.

use std::any::{Any, TypeId};
use std::sync::Arc;

type Value = Arc<dyn Any + Send + Sync>;

/// A map with at most one value of each type: the application's state, or what a transport attaches to a request.
///
/// Clones are cheap, and share the values.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Kept inline, as most maps have at most two values: over HTTP, the head of the request and what its token says.
    first: Option<(TypeId, Value)>,
    second: Option<(TypeId, Value)>,
    /// Boxed, as it is rarely used and maps are moved with each request.
    #[expect(clippy::box_collection, reason = "a vector would make each map larger")]
    others: Option<Box<Vec<(TypeId, Value)>>>,
}

impl Extensions {
    /// Creates an empty map, without allocating.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts a value, and replaces one of the same type.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.insert_shared(Arc::new(value));
    }

    /// Inserts a shared value; returns the previous value of the same type.
    pub fn insert_shared<T: Any + Send + Sync>(&mut self, value: Arc<T>) -> Option<Arc<dyn Any + Send + Sync>> {
        let id = TypeId::of::<T>();
        if let Some((_, there)) = self.iter_mut().find(|(other, _)| *other == id) {
            return Some(std::mem::replace(there, value));
        }
        let value: (TypeId, Value) = (id, value);
        if self.first.is_none() {
            self.first = Some(value);
        } else if self.second.is_none() {
            self.second = Some(value);
        } else {
            self.others.get_or_insert_default().push(value);
        }
        None
    }

    fn iter(&self) -> impl Iterator<Item = &(TypeId, Value)> {
        self.first.iter().chain(&self.second).chain(self.others.iter().flat_map(|others| &**others))
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut (TypeId, Value)> {
        let others = self.others.iter_mut().flat_map(|others| &mut **others);
        self.first.iter_mut().chain(&mut self.second).chain(others)
    }

    pub(crate) fn contains(&self, id: TypeId) -> bool {
        self.find(id).is_some()
    }

    fn find(&self, id: TypeId) -> Option<&Value> {
        self.iter().find(|(other, _)| *other == id).map(|(_, value)| value)
    }

    /// Returns the value of a type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.find(TypeId::of::<T>())?.downcast_ref()
    }

    /// Returns a shared pointer to the value of a type.
    #[must_use]
    pub fn share<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.find(TypeId::of::<T>())?).downcast().ok()
    }

    /// Removes and returns the value of a type.
    pub fn remove<T: Any + Send + Sync>(&mut self) -> Option<Arc<T>> {
        let id = TypeId::of::<T>();
        let is_it = |entry: &mut (TypeId, Value)| entry.0 == id;
        let removed = self.first.take_if(is_it).or_else(|| self.second.take_if(is_it)).or_else(|| {
            let others = self.others.as_mut()?;
            let index = others.iter().position(|(other, _)| *other == id)?;
            Some(others.swap_remove(index))
        });
        removed?.1.downcast().ok()
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extensions").field("len", &self.iter().count()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One value of each type, wherever it is kept.
    #[test]
    fn values_are_found_by_their_type() {
        let mut all = Extensions::new();
        assert!(all.is_empty());
        all.insert(1_u8);
        all.insert("two");
        all.insert(3_u16);
        assert_eq!((all.get(), all.get(), all.get::<u16>()), (Some(&1_u8), Some(&"two"), Some(&3)));
        assert!(all.insert_shared(Arc::new("deux")).is_some() && all.insert_shared(Arc::new(4_u32)).is_none());
        assert_eq!((all.remove::<u8>().as_deref(), all.remove::<u8>()), (Some(&1), None));
        all.insert("zwei");
        all.insert(5_u8);
        assert_eq!((all.get::<&str>(), all.share::<u8>().as_deref(), all.get::<i8>()), (Some(&"zwei"), Some(&5), None));
        assert_eq!(format!("{all:?}"), "Extensions { len: 4 }");
        for removed in [all.remove::<&str>().is_some(), all.remove::<u16>().is_some(), all.remove::<u32>().is_some()] {
            assert!(removed);
        }
        assert!(all.remove::<u8>().is_some() && all.is_empty());
    }
}
