//! Hand-written protocol types and constructors.

mod client_capability;
mod content;
mod elicitation;
mod error;
mod header_param;
pub(crate) mod id;
mod input;
mod logging_level;
pub mod meta;
mod resource_contents;
mod result_body;
mod result_type;
mod subscription_filter;
pub mod tasks;
mod tool;

pub use self::client_capability::ClientCapability;
pub use self::elicitation::{ElicitValue, FieldChoice, FieldKind, FormDraft, FormField, InvalidFormContent};
pub use self::error::{
    ErrorCode, ErrorObject, MissingRequiredClientCapabilityData, ResourceNotFoundData, UnsupportedProtocolVersionData,
    UrlElicitationRequiredData,
};
pub use self::header_param::HeaderParam;
pub use self::id::{ProgressToken, RequestId};
pub use self::logging_level::LoggingLevel;
pub use self::meta::Meta;
pub use self::result_body::{ResultBody, ResultMembers};
pub use self::result_type::ResultType;
