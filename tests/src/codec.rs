//! Every generated type behind the same two functions.

use std::fmt::Debug;

use mcp_types::{Restrict, Restriction, Revision, restrict_to};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads and writes one type.
#[derive(Clone, Copy)]
pub struct Codec {
    round_trip: fn(&str) -> Result<String, String>,
    restrict: Option<RestrictFn>,
    #[cfg(feature = "schemas")]
    schema: fn() -> schemars::Schema,
}

/// What every generated type can do.
pub trait Generated: DeserializeOwned + Serialize + PartialEq + Debug + Described {}

impl<T: DeserializeOwned + Serialize + PartialEq + Debug + Described> Generated for T {}

#[cfg(feature = "schemas")]
pub use schemars::JsonSchema as Described;

/// Without the feature `schemas` nothing is asked of a type.
#[cfg(not(feature = "schemas"))]
pub trait Described {}

#[cfg(not(feature = "schemas"))]
impl<T> Described for T {}

type RestrictFn = fn(&str, Revision) -> Result<(String, Restriction), String>;

impl Codec {
    /// The codec of a type that revisions differ about.
    #[must_use]
    pub const fn of<T: Generated + Restrict>() -> Self {
        Self { restrict: Some(restrict::<T>), ..Self::uniform::<T>() }
    }

    /// The codec of a type that is the same wherever it exists.
    #[must_use]
    pub const fn uniform<T: Generated>() -> Self {
        Self {
            round_trip: round_trip::<T>,
            restrict: None,
            #[cfg(feature = "schemas")]
            schema: || schemars::SchemaGenerator::default().into_root_schema_for::<T>(),
        }
    }

    /// Decodes, encodes, decodes again and compares; returns what was encoded.
    ///
    /// # Errors
    ///
    /// Says what failed.
    pub fn round_trip(&self, text: &str) -> Result<String, String> {
        (self.round_trip)(text)
    }

    /// The JSON Schema that the type derives.
    #[cfg(feature = "schemas")]
    #[must_use]
    pub fn schema(&self) -> serde_json::Value {
        (self.schema)().to_value()
    }

    /// Decodes, cuts down to a revision and encodes; `None` if there is nothing that revisions differ about.
    #[must_use]
    pub fn restrict(&self, text: &str, revision: Revision) -> Option<Result<(String, Restriction), String>> {
        self.restrict.map(|restrict| restrict(text, revision))
    }
}

fn round_trip<T: Generated>(text: &str) -> Result<String, String> {
    let value: T = serde_json::from_str(text).map_err(|fault| format!("decode: {fault}"))?;
    let encoded = serde_json::to_string(&value).map_err(|fault| format!("encode: {fault}"))?;
    let again: T = serde_json::from_str(&encoded).map_err(|fault| format!("decode again: {fault}"))?;
    if value == again { Ok(encoded) } else { Err(format!("{value:?} became {again:?}")) }
}

fn restrict<T: DeserializeOwned + Serialize + Restrict>(
    text: &str,
    revision: Revision,
) -> Result<(String, Restriction), String> {
    let mut value: T = serde_json::from_str(text).map_err(|fault| format!("decode: {fault}"))?;
    let restriction = restrict_to(&mut value, revision);
    let encoded = serde_json::to_string(&value).map_err(|fault| format!("encode: {fault}"))?;
    Ok((encoded, restriction))
}
