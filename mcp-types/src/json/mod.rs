//! JSON as text: validated by a scanner, preserved exactly, and parsed into values on demand.

pub mod base64;
pub(crate) mod excerpt;
mod number;
mod object_buf;
mod ordered_map;
mod raw;
mod raw_object;
pub(crate) mod scan;
mod schema_budget;
pub(crate) mod tree;
pub(crate) mod validated;
pub(crate) mod write;

pub use self::number::Number;
pub use self::object_buf::{ObjectBuf, ObjectRef};
pub use self::ordered_map::OrderedMap;
pub use self::raw::RawJson;
pub use self::raw_object::RawObject;
pub use self::schema_budget::SchemaBudget;
pub use self::tree::parse_value;
