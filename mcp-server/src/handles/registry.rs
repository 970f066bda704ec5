//! The kinds of handles that a server has.

use std::any::TypeId;

use crate::build::error::BuildError;
use crate::build::registry::Registry;
use crate::handles::kind::{Handles, Vault};
use crate::handles::value::HandleValue;

/// The kinds of handles of a server, by the types of their values.
#[derive(Default)]
pub(crate) struct HandleKinds(Vec<Kind>);

struct Kind {
    value: TypeId,
    name: &'static str,
    vault: Vault,
}

const MAX_NAME_BYTES: usize = 32;

impl HandleKinds {
    pub(crate) fn insert<T: HandleValue>(&mut self, handles: Handles<T>) -> Result<(), BuildError> {
        let (value, name) = (TypeId::of::<T>(), T::NAME);
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_valid) {
            return Err(BuildError::InvalidHandles { name: name.to_owned() });
        }
        if self.0.iter().any(|kind| kind.name == name || kind.value == value) {
            return Err(BuildError::Duplicate { what: "kind of handles", name: name.to_owned() });
        }
        self.0.push(Kind { value, name, vault: handles.vault });
        Ok(())
    }

    pub(crate) fn get<T: HandleValue>(&self) -> Option<&Vault> {
        let value = TypeId::of::<T>();
        self.0.iter().find(|kind| kind.value == value).map(|kind| &kind.vault)
    }

    /// Refuses tools with handles of which the server does not have the kind.
    pub(crate) fn check(&self, registry: &Registry) -> Result<(), BuildError> {
        for tool in &registry.tools.items {
            let is_missing = |value: TypeId| self.0.iter().all(|kind| kind.value != value);
            if let Some(missing) = tool.handles.kinds().find(|used| is_missing(used.value)) {
                let (tool, value) = (tool.name().to_owned(), missing.value_name);
                return Err(BuildError::MissingHandles { tool, value });
            }
        }
        Ok(())
    }
}
