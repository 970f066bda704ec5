//! The methods that are counted by their names.

use std::ptr;

use mcp_types::Method;
use mcp_types::gate::{self, MethodFacts};

use crate::names::OTHER;

/// The number of a known method, or one more for all others: a client can choose any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodId(u8);

impl MethodId {
    pub(crate) fn of(method: &Method) -> Self {
        let methods = gate::methods();
        let index = gate::method(method).map_or(methods.len(), |facts| {
            // Facts are elements of the table, so the index is a matter of addresses. Each request needs it twice, and a
            // search would be a quarter of what its metrics cost.
            ptr::from_ref(facts).addr().wrapping_sub(methods.as_ptr().addr()) / size_of::<MethodFacts>()
        });
        Self(u8::try_from(index).unwrap_or(u8::MAX))
    }

    /// All numbers, the last for unknown methods.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=gate::methods().len()).map(|index| Self(u8::try_from(index).unwrap_or(u8::MAX)))
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn name(self) -> &'static str {
        self.facts().map_or(OTHER, |facts| facts.name)
    }

    fn facts(self) -> Option<&'static MethodFacts> {
        gate::methods().get(self.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_methods_have_their_names() {
        for facts in gate::methods() {
            let method = Method::from(facts.name);
            let id = MethodId::of(&method);
            assert_eq!(id.name(), facts.name);
        }
        assert_eq!(MethodId::of(&Method::from("unknown")).name(), OTHER);
        assert_eq!(MethodId::all().count(), gate::methods().len() + 1);
    }
}
