//! Describing a server: the builder, its errors, and what is registered.

pub(crate) mod builder;
pub(crate) mod capabilities;
mod compose;
pub(crate) mod error;
pub(crate) mod hooks;
mod instances;
pub(crate) mod named_list;
pub(crate) mod registry;
mod scopes;
pub(crate) mod settings;
