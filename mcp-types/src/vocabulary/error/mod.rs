//! JSON-RPC errors.

mod code;
mod data;
mod object;

pub use self::code::ErrorCode;
pub use self::data::{
    MissingRequiredClientCapabilityData, ResourceNotFoundData, UnsupportedProtocolVersionData,
    UrlElicitationRequiredData,
};
pub use self::object::ErrorObject;
