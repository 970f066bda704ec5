//! What a server offers, and what handlers take and return.

pub(crate) mod arguments;
#[cfg(feature = "blocking")]
pub(crate) mod blocking;
pub(crate) mod completion;
#[cfg(feature = "validate")]
pub(crate) mod constraints;
pub(crate) mod contents;
pub(crate) mod definition;
pub(crate) mod error;
pub(crate) mod error_text;
pub(crate) mod extension_method;
pub mod extract;
pub(crate) mod function;
pub(crate) mod layered;
pub(crate) mod notification;
pub(crate) mod prompt;
pub(crate) mod raw;
pub(crate) mod resource;
pub(crate) mod schema;
pub(crate) mod subscription;
pub(crate) mod template;
pub(crate) mod text_values;
pub(crate) mod tool;
pub(crate) mod tool_result;
#[cfg(feature = "validate")]
pub(crate) mod validate;
