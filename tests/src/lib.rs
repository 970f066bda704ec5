//! What keeps the workspace honest.
//!
//! Test support lives here, tests in `tests/`: [`registry`](REGISTRY) reaches every generated type by
//! its name, [`Sampler`] makes up values of any type in any revision from the model of facts, [`fuzz`]
//! holds the bodies of the fuzz targets, and `fixture` is a server with everything.

#![forbid(unsafe_code)]

#[cfg(feature = "types")]
mod codec;
#[cfg(feature = "fixture")]
pub mod fixture;
pub mod fuzz;
#[cfg(feature = "types")]
mod model;
#[cfg(feature = "types")]
mod registry;
#[cfg(feature = "types")]
mod sampler;

#[cfg(feature = "types")]
pub use codec::{Codec, Described, Generated};
#[cfg(feature = "types")]
pub use model::{Facts, Model};
#[cfg(feature = "types")]
pub use registry::REGISTRY;
#[cfg(feature = "types")]
pub use sampler::{Random, Sampler, Scope};

/// The guide, whose example has to compile.
#[cfg(all(doctest, feature = "fixture"))]
#[doc = include_str!("../../docs/picking-crates.md")]
mod picking_crates {}

/// The codec of a generated type, by its name in the official schemas.
#[cfg(feature = "types")]
#[must_use]
pub fn codec(name: &str) -> Option<&'static Codec> {
    REGISTRY.iter().find(|(known, _)| *known == name).map(|(_, codec)| codec)
}
