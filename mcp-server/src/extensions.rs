//! Values by their type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// At most one value of each type: the application's own state, or what a transport knows about a request.
#[derive(Clone, Default)]
pub struct Extensions(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Starts empty, without taking memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value; one of the same type that is there already is replaced.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// Adds a value that others hold as well; returns what was there of the same type.
    pub fn insert_shared<T: Any + Send + Sync>(&mut self, value: Arc<T>) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.insert(TypeId::of::<T>(), value)
    }

    /// The value of a type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// The value of a type, to be kept.
    #[must_use]
    pub fn share<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }

    /// Removes the value of a type.
    pub fn remove<T: Any + Send + Sync>(&mut self) -> Option<Arc<T>> {
        self.0.remove(&TypeId::of::<T>())?.downcast().ok()
    }
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extensions").field("len", &self.0.len()).finish()
    }
}
