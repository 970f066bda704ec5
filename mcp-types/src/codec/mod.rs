//! Macros and helpers for the serialization of the protocol types.

pub(crate) mod closed_set;
pub(crate) mod constant;
pub(crate) mod object;
mod one_or_many;
pub(crate) mod open_set;
pub(crate) mod setters;
pub(crate) mod tagged;
pub(crate) mod variants;
pub(crate) mod visit;

pub use self::closed_set::UnknownValue;
pub use self::one_or_many::OneOrMany;
